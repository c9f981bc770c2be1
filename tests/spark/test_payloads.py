"""A worker that decodes any format handles its registry's failures; no Spark session is needed."""

import json
import pickle
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from harness.payload_columns import kind_of
from strata.serdes.client import ClientSettings, Reference, RegistryClient, Schema
from strata.serdes.errors import RegistryError
from strata.serdes.framing import join
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.avro_decoder import AvroDecoder, avro_decoder
from strata.spark_udfs.decoding.payload_decoder import PayloadDecoder, payload_decoder
from strata.spark_udfs.decoding.payload_formats import reader_of
from strata.spark_udfs.decoding.plan import DecodePlan, ReaderSource, plan_decode
from strata.spark_udfs.decoding.writer_schemas import RegistryNotUsable
from strata.spark_udfs.response_cache import SharedResponses

AVRO = '{"type": "record", "name": "M", "fields": [{"name": "n", "type": "int"}]}'
PROTO = 'syntax = "proto3"; message M { int32 n = 1; }'
JSON = '{"properties": {"n": {"type": "integer"}}}'
FORMATS = [
    pytest.param("AVRO", AVRO, b"\x0a", id="avro"),
    pytest.param("PROTOBUF", PROTO, b"\0\x08\x05", id="protobuf"),
    pytest.param("JSON", JSON, b'{"n": 5}', id="json"),
]


def _plan(url: str, kind: str, text: str, **options: Any) -> DecodePlan:
    settings = ClientSettings.of(url, **{"retries": 1, "backoff": 0.01, "timeout": 60.0, **options})
    return plan_decode(settings, ReaderSource(text, format=kind), mode=Mode.DEADLETTER)


def _decoder(plan: DecodePlan, client: RegistryClient | None = None) -> AvroDecoder | PayloadDecoder:
    """Return a worker's decoder: that of the process, or one with a client of its own."""
    if client is None:
        return avro_decoder(plan) if plan.payload is None else payload_decoder(plan)
    return AvroDecoder(plan, client) if plan.payload is None else PayloadDecoder(plan, reader_of(plan.payload), client)


def _binary(*frames: bytes | None) -> pa.Array:
    return pa.array(frames, pa.binary())


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_one_request_for_each_id(scripted_registry: Any, kind: str, text: str, payload: bytes) -> None:
    """For any number of frames, batches and copies of the plan, a process requests an id once, known or not."""
    known = scripted_registry.add_text(text, {"schemaType": kind})
    decided = _plan(scripted_registry.url, kind, text)
    frames = _binary(*[join(known, payload), join(99, payload), None] * 500)

    for _ in range(3):
        decoded = _decoder(pickle.loads(pickle.dumps(decided))).decode(frames)

    assert {known: 1, 99: 1} == dict(scripted_registry.asked)
    assert [{"n": 5}, None, None] * 500 == decoded.field("value").to_pylist()
    assert [True, False, True] * 500 == decoded.field("error").is_null().to_pylist()


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_registry_out_of_order(scripted_registry: Any, kind: str, text: str, payload: bytes) -> None:
    """A registry that does not answer fails the task and makes no dead letters; when the task runs again it decodes."""
    known = scripted_registry.add_text(text, {"schemaType": kind})
    decoder = _decoder(_plan(scripted_registry.url, kind, text))
    scripted_registry.status = 503
    with pytest.raises(RegistryNotUsable, match=f"schema id {known} could not be looked up"):
        decoder.decode(_binary(join(known, payload)))
    scripted_registry.status = None

    assert [{"n": 5}] == decoder.decode(_binary(join(known, payload))).field("value").to_pylist()


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_registry_that_is_away(scripted_registry: Any, tmp_path: Path, kind: str, text: str, payload: bytes) -> None:
    """Without the registry workers can use the ids that one of them has cached, and no others."""
    known, unknown = (scripted_registry.add_text(text, {"schemaType": kind}) for _ in range(2))
    decided = _plan(scripted_registry.url, kind, text)

    def worker() -> AvroDecoder | PayloadDecoder:
        transport = SharedResponses(decided.registry, tmp_path / "answers")
        return _decoder(decided, RegistryClient.from_settings(decided.registry, transport=transport))

    worker().decode(_binary(join(known, payload)))
    scripted_registry.close()

    assert [{"n": 5}] == worker().decode(_binary(join(known, payload))).field("value").to_pylist()
    with pytest.raises(RegistryNotUsable, match=f"schema id {unknown} could not be looked up: .*does not answer"):
        worker().decode(_binary(join(unknown, payload)))


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_unknown_id_that_appears(scripted_registry: Any, kind: str, text: str, payload: bytes) -> None:
    """An unknown id is requested again after a while."""
    decoder = _decoder(_plan(scripted_registry.url, kind, text, missing_ttl=0))
    frames = _binary(join(1, payload))

    assert "unknown schema id" == decoder.decode(frames).field("error")[0].as_py()["reason"]

    scripted_registry.add_text(text, {"schemaType": kind})

    assert [{"n": 5}] == decoder.decode(frames).field("value").to_pylist()


# format of the reader, format and text of the registry's schema for the id, payload, reason
UNUSABLE = [
    ("PROTOBUF", "PROTOBUF", "message M { Nowhere f = 1; }", b"\0", "unusable writer schema"),
    ("PROTOBUF", "PROTOBUF", "no schema", b"\0", "unusable writer schema"),
    ("PROTOBUF", "AVRO", '"string"', b"\0", "writer schema is AVRO"),
    ("AVRO", "PROTOBUF", 'syntax = "proto3";', b"\2a", "writer schema is PROTOBUF"),
    ("AVRO", "AVRO", '{"type": "nonsense"}', b"\2a", "unusable writer schema"),
    (
        "AVRO",
        "AVRO",
        '"string"',
        b"\2a",
        "resolution: the reader schema has record M where the writer schema has string",
    ),
]


@pytest.mark.parametrize(("reader", "kind", "text", "payload", "reason"), UNUSABLE)
def test_unusable_writer_schema(
    scripted_registry: Any, reader: str, kind: str, text: str, payload: bytes, reason: str
) -> None:
    """A writer schema that cannot be read, or not as the reader schema, makes dead letters, and is requested once."""
    schema_id = scripted_registry.add_text(text, {} if kind == "AVRO" else {"schemaType": kind})
    frames = _binary(*[join(schema_id, payload)] * 3)

    decoded = _decoder(_plan(scripted_registry.url, reader, {"AVRO": AVRO, "PROTOBUF": PROTO}[reader])).decode(frames)

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
    """A writer schema whose reference is gone makes dead letters; one that cannot be looked up fails the task."""
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


@pytest.mark.parametrize(("kind", "text", "payload"), FORMATS)
def test_column_that_is_not_binary(registry: RegistryClient, kind: str, text: str, payload: bytes) -> None:
    """A text column is refused, since its bytes are no longer frames; a long binary column is decoded."""
    decoder = _decoder(_plan(registry.settings.urls[0], kind, text))
    frame = join(registry.register(f"payloads-long-{kind}", Schema(text, kind)).schema_id, payload)

    with pytest.raises(TypeError, match="expected a binary column of frames, got string"):
        decoder.decode(pa.array(["a"]))
    assert [{"n": 5}] == decoder.decode(pa.array([frame], pa.large_binary())).field("value").to_pylist()


def test_places_over_many_parts(registry: RegistryClient) -> None:
    """In a batch of many parts every value and every error stays at the place of its frame."""
    schema_id = registry.register("payloads-parts", Schema(JSON, "JSON")).schema_id
    damaged = {3, 255, 256, 700, 999}
    long = {5, 6, 300, 999}
    frames = [
        join(schema_id, (b'{"n": "x"}' if n in damaged else b'{"n": %d}' % n) + b" " * 2**20 * (n in long))
        for n in range(1000)
    ]

    decoded = payload_decoder(_plan(registry.settings.urls[0], "JSON", JSON)).decode(_binary(*frames))

    assert [None if n in damaged else {"n": n} for n in range(1000)] == decoded.field("value").to_pylist()
    assert {n: frames[n] for n in damaged} == {
        n: error["frame"] for n, error in enumerate(decoded.field("error").to_pylist()) if error is not None
    }


DEEP_PROTO = """syntax = "proto2"; message M { required int64 n = 1; optional string s = 2; repeated Part parts = 3;
  map<string, double> by = 4; optional uint64 big = 5; repeated sint32 packed = 6 [packed = true];
  optional group G = 7 { optional bytes raw = 8; } message Part { optional string name = 1; repeated Leaf leaves = 2; }
  message Leaf { optional bool t = 1; optional float f = 2; } }"""
DEEP_MESSAGE = kind_of(Schema(DEEP_PROTO, "PROTOBUF"))(
    n=-300,
    s="aübb",
    parts=[{"name": "abc", "leaves": [{"t": True, "f": 2.0}, {}]}, {}],
    by={"eee": 1.5},
    big=2**64 - 1,
    packed=[-1, 300],
    g={"raw": b"\xff"},
)
DEEP_JSON = {
    "properties": {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "parts": {"type": "array", "items": {"properties": {"name": {"type": "string"}, "t": {"type": "boolean"}}}},
        "by": {"type": "object", "additionalProperties": {"type": "number"}},
        "any": {},
    }
}
DEEP_VALUE = {
    "n": -300,
    "s": "aübb",
    "parts": [{"name": "abc", "t": True}, {}],
    "by": {"eee": 1.5},
    "any": [1, {"k": None}],
}


@pytest.mark.parametrize(
    ("kind", "text", "payload"),
    [
        pytest.param("PROTOBUF", DEEP_PROTO, b"\0" + DEEP_MESSAGE.SerializeToString(), id="protobuf"),
        pytest.param("JSON", json.dumps(DEEP_JSON), json.dumps(DEEP_VALUE, ensure_ascii=False).encode(), id="json"),
    ],
)
def test_many_damaged_frames(registry: RegistryClient, kind: str, text: str, payload: bytes) -> None:
    """Each of 5,000 damaged frames is a value or a dead letter with its bytes, and the reasons are few."""
    schema_id = registry.register(f"payloads-damaged-{kind}", Schema(text, kind)).schema_id
    good, chance = join(schema_id, payload), Random(2026)
    frames = [_damaged(good, chance) for _ in range(5_000)]

    decoded = payload_decoder(_plan(registry.settings.urls[0], kind, text)).decode(_binary(good, *frames))

    decoded.validate(full=True)
    errors = decoded.field("error").to_pylist()
    assert errors[0] is None
    assert decoded.field("value").is_null().to_pylist() == [one is not None for one in errors]
    assert [one["frame"] for one in errors if one] == [
        frame for one, frame in zip(errors[1:], frames, strict=True) if one
    ]
    assert 1_000 < sum(one is not None for one in errors) < 5_000
    assert len({one["reason"] for one in errors if one}) < 30


def _damaged(good: bytes, chance: Random) -> bytes:
    """Return the frame with some bytes changed, perhaps cut, perhaps longer, perhaps with bytes inserted."""
    changed = bytearray(good)
    for _ in range(chance.randrange(4)):
        changed[chance.randrange(5, len(changed))] = chance.choice(
            (0, 1, 0x22, 0x7F, 0x80, 0xFF, chance.randrange(256))
        )
    if chance.random() < 0.1:
        start = chance.randrange(5, len(changed))
        changed[start:start] = changed[start : start + chance.randrange(9)]
    end = chance.choice((None, None, None, chance.randrange(len(changed))))
    return bytes(changed[:end]) + chance.choice((b"", b"", b"", b"\0"))
