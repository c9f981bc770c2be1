"""Frames with unusable schemas are refused, and a topic full of them costs little."""

import pytest

from strata.serdes import avro, json_schema, protobuf
from strata.serdes.avro import AvroDeserializer
from strata.serdes.client import RegistryClient
from strata.serdes.errors import RegistryError, SchemaError
from strata.serdes.framing import join
from strata.serdes.json_schema import JsonDeserializer
from strata.serdes.protobuf import ProtobufDeserializer

PROTO = 'syntax = "proto3"; message A { Nowhere a = 1; }'
UNUSABLE = [
    pytest.param(
        AvroDeserializer,
        {"schema": '"a.Other"'},
        avro.serializer,
        "parse",
        [b"\x02", b"\x04"],
        "not defined",
        id="Avro",
    ),
    pytest.param(
        JsonDeserializer,
        {"schema": '{"$ref": "nowhere.json"}', "schemaType": "JSON"},
        json_schema.serializer,
        "validator_of",
        [b"1", b"2"],
        "JSON Schema cannot be used",
        id="JSON",
    ),
    pytest.param(
        ProtobufDeserializer,
        {"schema": PROTO, "schemaType": "PROTOBUF"},
        protobuf.serializer,
        "link",
        [b"\x00", b"\x02\x02"],  # two paths in the schema
        "cannot be linked",
        id="Protobuf",
    ),
]


def counting(monkeypatch, module, name):
    """Count the calls of a module's function from now on."""
    calls, real = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given, **more: calls.append(1) or real(*given, **more))
    return calls


@pytest.fixture
def serving(scripted_servers, answer):
    """Return a factory of a client of a server with a script, and of the list of its requests."""

    def make(*bodies, **options):
        server = scripted_servers(*(one if isinstance(one, answer) else answer(body=one) for one in bodies))
        return RegistryClient(server.url, retries=0, **options), server.requests

    return make


@pytest.mark.parametrize(("kind", "body", "module", "name", "payloads", "says"), UNUSABLE)
def test_it_is_compiled_once(serving, monkeypatch, kind, body, module, name, payloads, says):
    """The schema is compiled once for any number of frames and topics, and each frame gets the full error."""
    client, requests = serving(body)
    calls = counting(monkeypatch, module, name)
    deserialize = kind(client, conf={"subject.name.strategy.type": "TOPIC"})

    for payload in payloads * 2:
        for topic in (None, "a", "b"):
            with pytest.raises(SchemaError, match=f"cannot use schema 6: .*{says}"):
                deserialize(join(6, payload), topic=topic)

    assert 1 == len(calls)
    assert 1 == sum("/schemas/ids/" in one.path for one in requests)


def test_another_deserializer_tries_again(serving, monkeypatch):
    """Another deserializer does not share the cached failure and tries again."""
    client, _ = serving({"schema": '"a.Other"'})
    calls = counting(monkeypatch, avro.serializer, "parse")

    for _ in range(2):
        with pytest.raises(SchemaError):
            AvroDeserializer(client)(join(6, b""))

    assert 2 == len(calls)


@pytest.mark.parametrize(("missing_ttl", "requests_made"), [(60.0, 2), (0.0, 4)])
def test_a_reference_that_is_not_there_is_asked_for_now_and_then(serving, answer, missing_ttl, requests_made):
    """A missing reference is requested again after `missing_ttl` seconds, like a missing id."""
    schema = {"schema": '"a.Other"', "references": [{"name": "a.Other", "subject": "other", "version": 1}]}
    gone = answer(404, {"error_code": 40402, "message": "Version 1 not found."})
    client, requests = serving(schema, gone, missing_ttl=missing_ttl)
    deserialize = AvroDeserializer(client)

    for _ in range(3):
        with pytest.raises(RegistryError, match=r"Version 1 not found\."):
            deserialize(join(6, b""))

    assert requests_made == len(requests)


@pytest.mark.parametrize(("missing_ttl", "compilations"), [(60.0, 1), (0.0, 3)])
def test_a_latest_version_that_cannot_be_read(serving, monkeypatch, missing_ttl, compilations):
    """An unreadable latest version is tried again after `missing_ttl` seconds, since a better one may follow."""
    latest = {"subject": "s-value", "version": 2, "id": 7, "schema": '"a.Other"'}
    written = {"subject": "s-value", "version": 1, "id": 6, "schema": '"int"'}
    script = [written, latest, written, [1, 2], latest, [1, 2], latest, [1, 2]]
    client, _ = serving(*script, missing_ttl=missing_ttl)
    conf = {"use.latest.version": True, "subject.name.strategy.type": "TOPIC"}
    deserialize = AvroDeserializer(client, conf=conf)
    seen = []
    real = avro.serializer.parse
    monkeypatch.setattr(avro.serializer, "parse", lambda text, *more: seen.append(text) or real(text, *more))

    for _ in range(3):
        with pytest.raises(SchemaError, match=r"cannot use schema 6: the type a\.Other is not defined"):
            deserialize(join(6, b"\x02"), topic="s")

    assert compilations == seen.count('"a.Other"')


def test_damaged_paths_put_nothing_good_out(serving, monkeypatch):
    """Paths without a message are not cached, so that they evict nothing."""
    client, _ = serving({"schema": 'syntax = "proto3"; message A {}', "schemaType": "PROTOBUF"}, cache_size=2)
    deserialize = ProtobufDeserializer(client)
    deserialize(join(6, b"\x00"))
    read = counting(monkeypatch, ProtobufDeserializer, "_reader")

    for index in range(1, 9):
        with pytest.raises(SchemaError, match=r"cannot use schema 6: .* has no message at"):
            deserialize(join(6, bytes([2, 2 * index])))
    deserialize(join(6, b"\x00"))

    assert 8 == len(read)
