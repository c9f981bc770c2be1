"""How a worker that decodes Protobuf and JSON deals with its registry; no Spark session is needed."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

from serdes.client import ClientSettings, Reference, RegistryClient, Schema
from serdes.errors import RegistryError
from serdes.framing import join
from spark_udfs.formats import reader_of
from spark_udfs.outcomes import RegistryNotUsable
from spark_udfs.payloads import PayloadDecoder, payload_decoder
from spark_udfs.plan import Mode, Plan, ReaderSource, plan

PROTO = 'syntax = "proto3"; message M { int32 n = 1; }'
JSON = '{"properties": {"n": {"type": "integer"}}}'
FORMATS = [
    pytest.param("PROTOBUF", PROTO, b"\0\x08\x05", id="protobuf"),
    pytest.param("JSON", JSON, b'{"n": 5}', id="json"),
]


def _plan(url: str, kind: str, text: str, **options: Any) -> Plan:
    settings = ClientSettings.of(url, **{"retries": 1, "backoff": 0.01, "timeout": 5.0, **options})
    return plan(settings, ReaderSource(text, format=kind), mode=Mode.DEADLETTER)


def _binary(*frames: bytes | None) -> pa.Array:
    return pa.array(frames, pa.binary())


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_one_request_for_each_id(scripted_registry: Any, kind: str, text: str, payload: bytes) -> None:
    """However many frames, batches and copies of the plan there are, a process asks once for an id, known or not."""
    known = scripted_registry.add_text(text, {"schemaType": kind})
    decided = _plan(scripted_registry.url, kind, text)
    frames = _binary(*[join(known, payload), join(99, payload), None] * 500)

    for _ in range(3):
        decoded = payload_decoder(pickle.loads(pickle.dumps(decided))).decode(frames)

    assert {known: 1, 99: 1} == dict(scripted_registry.asked)
    assert [{"n": 5}, None, None] * 500 == decoded.field("value").to_pylist()
    assert [True, False, True] * 500 == decoded.field("error").is_null().to_pylist()


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_registry_out_of_order(scripted_registry: Any, kind: str, text: str, payload: bytes) -> None:
    """A registry that does not answer ends the task and makes no dead letters; the task that runs again decodes."""
    known = scripted_registry.add_text(text, {"schemaType": kind})
    decoder = payload_decoder(_plan(scripted_registry.url, kind, text))
    scripted_registry.status = 503
    with pytest.raises(RegistryNotUsable, match=f"schema id {known} could not be looked up"):
        decoder.decode(_binary(join(known, payload)))
    scripted_registry.status = None

    assert [{"n": 5}] == decoder.decode(_binary(join(known, payload))).field("value").to_pylist()


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_unknown_id_that_appears(scripted_registry: Any, kind: str, text: str, payload: bytes) -> None:
    """An id that the registry did not know is asked for again after a while."""
    decoder = payload_decoder(_plan(scripted_registry.url, kind, text, missing_ttl=0))
    frames = _binary(join(1, payload))

    assert "unknown schema id" == decoder.decode(frames).field("error")[0].as_py()["reason"]

    scripted_registry.add_text(text, {"schemaType": kind})

    assert [{"n": 5}] == decoder.decode(frames).field("value").to_pylist()


# what the registry has under the id, reason
UNUSABLE = [
    pytest.param("PROTOBUF", "message M { Nowhere f = 1; }", "unusable writer schema", id="a type of nowhere"),
    pytest.param("PROTOBUF", "no schema", "unusable writer schema", id="no schema"),
    pytest.param("AVRO", '"string"', "writer schema is AVRO", id="another format"),
]


@pytest.mark.parametrize(("kind", "text", "reason"), UNUSABLE)
def test_unusable_writer_schema(scripted_registry: Any, kind: str, text: str, reason: str) -> None:
    """A writer schema that cannot be read makes dead letters, and is asked for once."""
    schema_id = scripted_registry.add_text(text, {"schemaType": kind})
    frames = _binary(*[join(schema_id, bytes([0, index])) for index in range(3)])

    decoded = payload_decoder(_plan(scripted_registry.url, "PROTOBUF", PROTO)).decode(frames)

    assert [reason] * 3 == [one["reason"] for one in decoded.field("error").to_pylist()]
    assert {schema_id: 1} == dict(scripted_registry.asked)


@pytest.mark.parametrize(
    ("status", "error_code", "outcome"),
    [
        pytest.param(404, 40402, "unusable writer schema", id="the registry does not have it"),
        pytest.param(500, 50001, None, id="the registry is out of order"),
    ],
)
def test_reference_to_nowhere(
    registry: RegistryClient, monkeypatch: pytest.MonkeyPatch, status: int, error_code: int, outcome: str | None
) -> None:
    """A writer schema whose reference is gone makes dead letters; one that cannot be looked up ends the task."""
    base = registry.register("payloads-base", Schema('syntax = "proto3"; message B {}', "PROTOBUF")).version or 0
    top = 'syntax = "proto3"; import "b.proto"; message M { int32 n = 1; B b = 2; }'
    schema = Schema(top, "PROTOBUF", (Reference("b.proto", "payloads-base", base),))
    frames = _binary(join(registry.register("payloads-top", schema).schema_id, b"\0\x08\x05"))
    decided = _plan(registry.settings.urls[0], "PROTOBUF", PROTO)
    assert decided.payload is not None

    def gone(*_: Any, **__: Any) -> None:
        raise RegistryError(status, error_code, "gone")

    with RegistryClient.from_settings(decided.registry) as client:
        monkeypatch.setattr(client, "get_version", gone)
        decoder = PayloadDecoder(decided, reader_of(decided.payload), client)
        if outcome is None:
            with pytest.raises(RegistryNotUsable, match="gone"):
                decoder.decode(frames)
        else:
            assert outcome == decoder.decode(frames).field("error")[0].as_py()["reason"]


def test_column_that_is_not_binary(registry: RegistryClient) -> None:
    """A text column is refused: its bytes are no frames any more. A long binary one is read."""
    decoder = payload_decoder(_plan(registry.settings.urls[0], "JSON", JSON))

    with pytest.raises(TypeError, match="the column to decode is string"):
        decoder.decode(pa.array(["a"]))
    assert "frame too short" == decoder.decode(pa.array([b"a"], pa.large_binary())).field("error")[0].as_py()["reason"]


def test_places_over_many_parts(registry: RegistryClient) -> None:
    """In a batch of many parts every value and every error stays at the place of its frame."""
    schema_id = registry.register("payloads-parts", Schema(JSON, "JSON")).schema_id
    damaged = {3, 255, 256, 700, 999}
    frames = [join(schema_id, b'{"n": "x"}' if n in damaged else b'{"n": %d}' % n) for n in range(1000)]

    decoded = payload_decoder(_plan(registry.settings.urls[0], "JSON", JSON)).decode(_binary(*frames))

    assert [None if n in damaged else {"n": n} for n in range(1000)] == decoded.field("value").to_pylist()
    assert {n: frames[n] for n in damaged} == {
        n: error["frame"] for n, error in enumerate(decoded.field("error").to_pylist()) if error is not None
    }
