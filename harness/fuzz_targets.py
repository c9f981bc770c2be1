"""The functions that a fuzzer calls: for any bytes they return values within their limits or raise documented errors.

A target is created once and then called with bytes, of which the first ones select the schema. Every exception that it
raises is a defect of the decoder.

Rules of this file: no fuzzer here, so that several fuzzers can call the same targets.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from harness.avro_cases import Maker
from harness.fuzz_credentials import CREDENTIALS
from harness.fuzz_target import Run, Target, check, not_empty
from strata.serdes.avro.decoder import Limits, compile_decoder
from strata.serdes.errors import DecodeError, DecodeReason, FrameError, RegistryError, SchemaError
from strata.serdes.framing import inflated, join, open_frame, write_indexes
from strata.serdes.model import JSON, PROTOBUF, Schema
from strata.serdes.settings import ClientSettings
from strata.serdes.subject_name_strategies import Context

__all__ = ["TARGETS"]

_LIMITS = Limits(max_depth=20, max_weightless=100)  # low, so that inputs of a few hundred bytes reach them
_VALUES_PER_BYTE = 64  # allows for the defaults that each record may add
_PAIRS = 60
_MOST_FRAMES = 32

_TREE = {"type": "record", "name": "T", "fields": [{"name": "kids", "type": {"type": "array", "items": "T"}}]}
_CHAIN = {"type": "record", "name": "C", "fields": [{"name": "next", "type": ["null", "C"]}]}
_BUSH = {"type": "record", "name": "B", "fields": [{"name": "m", "type": {"type": "map", "values": ["int", "B"]}}]}
_NULLS = {"type": "array", "items": {"type": "array", "items": "null"}}
_EMPTY = {"type": "map", "values": {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}}
_WIDE = {"type": "record", "name": "W", "fields": [{"name": f"f{n}", "type": "boolean"} for n in range(40)]}
_RECURSIVE = [_TREE, _CHAIN, _BUSH, _NULLS, _EMPTY, {"type": "array", "items": _WIDE}]


def _extent(value: Any) -> tuple[int, int]:
    """Return the number of values, and their depth."""
    count, deepest, left = 0, 0, [(value, 1)]
    while left:
        one, depth = left.pop()
        count, deepest = count + 1, max(deepest, depth)
        if isinstance(one, Mapping):
            left += [(inner, depth + 1) for inner in one.values()]
        elif isinstance(one, list | tuple):
            left += [(inner, depth + 1) for inner in one]
    return count, deepest


# Avro


def avro_pairs() -> list[tuple[str, str, bytes]]:
    """Return writer schema, reader schema and a payload of each pair: a few recursive schemas, and many random ones."""
    own = [(json.dumps(one), json.dumps(one), b"\2\0") for one in _RECURSIVE]
    maker = Maker(Random(31))  # noqa: S311 - the same schemas each time
    return own + [(case.writer, case.reader, case.payload) for case in (maker.case() for _ in range(_PAIRS))]


def _avro_seeds() -> list[bytes]:
    return [bytes([index]) + payload for index, (_, _, payload) in enumerate(avro_pairs())]


def _avro() -> Run:
    decoders = [
        (compile_decoder(writer, reader, limits=_LIMITS, tagged_unions=True), _nesting(reader))
        for writer, reader, _ in avro_pairs()
    ]

    def run(data: bytes) -> None:
        decode, nesting = decoders[data[0] % len(decoders)]
        payload = data[1:]
        try:
            count, depth = _extent(decode(payload))
        except DecodeError as error:
            check(error.reason in list(DecodeReason), f"an unknown reason {error.reason}")
            check(error.offset is None or 0 <= error.offset <= len(payload), f"byte {error.offset} of {len(payload)}")
            check(len(str(error)) < 1000, "a message without end")
            return
        check(count <= (len(payload) + _LIMITS.max_weightless + 1) * _VALUES_PER_BYTE, f"{count} values")
        check(depth <= nesting * (_LIMITS.max_depth + 1), f"{depth} deep")

    return not_empty(run)


def _nesting(schema: str) -> int:
    """Return a bound on the nesting of a schema's values without recursion."""
    return 2 + 2 * _extent(json.loads(schema))[1]


def _arrow() -> Run:
    from strata.serdes.arrow import BatchDecoder, UnsupportedSchema

    pairs: list[tuple[BatchDecoder, Callable[[bytes], Any]] | None] = []
    for writer, reader, _ in avro_pairs():
        try:
            batches = BatchDecoder(reader, {1: writer}, limits=_LIMITS)
        except UnsupportedSchema:
            pairs.append(None)
        else:
            pairs.append((batches, compile_decoder(_unchecked(writer), _unchecked(reader), limits=_LIMITS)))

    def run(data: bytes) -> None:
        pair = pairs[data[0] % len(pairs)]
        if pair is None:
            return
        batches, decode = pair
        payloads = list(_cut(data[2:], data[1] % _MOST_FRAMES + 1)) if len(data) > 1 else [b""]
        batch = batches.decode([join(1, payload) for payload in payloads])
        batch.validate(full=True)
        check(batch.num_rows == len(payloads), f"{batch.num_rows} rows of {len(payloads)} frames")
        check(batch.nbytes < 10_000 + len(data) * 1000, f"{batch.nbytes} bytes of {len(data)}")
        told = [error and error["reason"] for error in batch.column("error").to_pylist()]
        for payload, reason in zip(payloads, told, strict=True):
            check(_reason(decode, payload) == reason, f"{reason} of {payload!r}")

    return not_empty(run)


def _arrow_seeds() -> list[bytes]:
    """Return batches of one frame, and of many equal frames."""
    pairs = enumerate(avro_pairs())
    return [bytes([at, count - 1]) + payload * count for at, (_, _, payload) in pairs for count in (1, _MOST_FRAMES)]


def _unchecked(schema: str) -> str:
    """Return the schema with uuids as strings, since batches do not validate them."""
    return schema.replace('"logicalType": "uuid"', '"was": "uuid"')


def _cut(data: bytes, count: int) -> Iterator[bytes]:
    for piece in range(count):
        yield data[piece * len(data) // count : (piece + 1) * len(data) // count]


def _reason(decode: Callable[[bytes], Any], payload: bytes) -> str | None:
    """Return the reason why the deserializer rejects a payload, in the form that batches use."""
    try:
        decode(payload)
    except DecodeError as error:
        return f"{error.reason}: {error.detail}" if error.reason == DecodeReason.RESOLUTION else str(error.reason)
    return None


# Frames


def _framing() -> Run:
    def run(data: bytes) -> None:
        indexed, in_header = bool(data[0] & 1), bool(data[0] & 2)
        at = data[0] >> 2
        header, record = (data[1 : at + 1], data[at + 1 :]) if in_header else (None, data[1:])
        try:
            frame = open_frame(record, header, indexed=indexed)
        except FrameError:
            return
        check(record.endswith(frame.payload) or record[:2] == b"\3\5", "a payload that is not in the record")
        check((frame.indexes != ()) == indexed, f"the path {frame.indexes}")
        if isinstance(frame.indexes, tuple) and frame.indexes:
            check(len(write_indexes(frame.indexes)) <= len(data) + 1, f"the path {frame.indexes}")

    return not_empty(run)


def _framing_seeds() -> list[bytes]:
    guid = b"\1" + bytes(range(16))
    prefixes = [join(7, b"payload"), join(7, write_indexes((3, 70)) + b"x"), guid + b"payload", guid + b"\4\0\2x"]
    prefixes += [b"\3\0" + guid[1:] + b"\2payload", b"\3\5" + guid[1:] + zlib.compress(b"\2payload")]
    headers = [bytes([len(guid) << 2 | 2]) + guid + b"payload", bytes([(len(guid) + 1) << 2 | 3]) + guid + b"\0x"]
    return [bytes([flag]) + prefix for flag in (0, 1) for prefix in prefixes] + headers


class _Registry:
    """A registry of some schemas, with the methods that deserializers call."""

    settings = ClientSettings.of("http://nowhere.invalid")

    def __init__(self, schemas: list[Schema]) -> None:
        self._schemas = schemas

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:  # noqa: ARG002 - as the client's
        if schema_id >= len(self._schemas):
            raise RegistryError(404, 40403, "Schema not found")
        return self._schemas[schema_id]

    def get_schema_by_guid(self, guid: object) -> Schema:  # noqa: ARG002 - as the client's
        return self._schemas[0]

    def get_schema_by_glue_version(self, version: object) -> Schema:  # noqa: ARG002 - as the client's
        return self._schemas[0]


def _frames(deserializers: list[Callable[..., Any]], check_value: Callable[[Any, int], None]) -> Run:
    """Return a target for whole records, preceded by a byte that selects the deserializer."""

    def run(data: bytes) -> None:
        record, headers = data[1:], []
        if data[0] & 0x80:
            headers, record = [("__value_schema_id", record[:17])], record[17:]
        try:
            value = deserializers[data[0] % len(deserializers)](record, Context(None, "value", headers))
        except (DecodeError, FrameError, RegistryError, SchemaError) as error:
            check(len(str(error)) < 2000, "a message without end")
        else:
            check_value(value, len(data) if headers else 1 + len(inflated(record)))

    return not_empty(run)


# JSON

_JSON: list[Any] = [
    {"type": "object", "properties": {"id": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["id"]},
    {"type": "array", "items": {"anyOf": [{"type": "string", "pattern": "^(a+)+$"}, {"type": "number", "minimum": 0}]}},
    {"type": ["object", "null"], "patternProperties": {"^x-": {"format": "date-time"}}, "additionalProperties": False},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "unevaluatedProperties": False},
    {"oneOf": [{"multipleOf": 0.1}, {"uniqueItems": True, "type": "array"}, {"contains": {"const": 1}}]},
    True,
]
_JSON_VALUES: list[Any] = [
    {"id": 1, "next": {"id": 2, "next": {"id": -3}}},
    ["aaaa", 1.5, 10**30],
    {"x-at": "2024-02-29T00:00:00Z"},
    {"any": [None, True, "\U0001f68b"]},
    [[[[[[[]]]]]]],
]


def _json() -> Run:
    from strata.serdes.json_schema import JsonDeserializer

    client: Any = _Registry([Schema(json.dumps(one), JSON) for one in _JSON])

    def check_size(value: Any, size: int) -> None:
        count, _ = _extent(value)
        check(count <= size, f"{count} values of {size} bytes")

    return _frames([JsonDeserializer(client), JsonDeserializer(client, None, None, {"validate": False})], check_size)


def _json_seeds() -> list[bytes]:
    payloads = [json.dumps(one).encode() for one in _JSON_VALUES] + [b"[" * 1200, b"1e999", b'{"id":' + b"9" * 1000]
    payloads += [b"[" * 300 + b"]" * 300, b'{"next":' * 300 + b"7" + b"}" * 300]
    return [bytes([0]) + join(index % len(_JSON), payload) for index, payload in enumerate(payloads)]


# Protobuf

_PROTOBUF = [
    """syntax = "proto3"; package f;
    import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
    import "google/protobuf/struct.proto"; import "google/protobuf/any.proto"; import "google/protobuf/wrappers.proto";
    import "google/protobuf/field_mask.proto"; import "google/type/money.proto";
    message Other { string note = 1; }
    message Order {
      enum Kind { WEB = 0; STORE = 1; }
      message Line { string sku = 1; repeated sint32 n = 2; message Part { Order order = 1; } }
      int64 id = 1; repeated Line lines = 2; map<string, Kind> kinds = 3; map<int32, Order> orders = 4;
      oneof by { string mail = 5; int32 phone = 6; Order other = 7; }
      google.protobuf.Timestamp at = 8; google.protobuf.Duration took = 9; google.protobuf.Struct more = 10;
      google.protobuf.Any any = 11; google.protobuf.DoubleValue price = 12; google.protobuf.FieldMask mask = 13;
      google.type.Money total = 14; bytes raw = 15; double d = 16; float f = 17; fixed64 x = 18; bool ok = 19;
    }""",
    """syntax = "proto2"; package g;
    message Old {
      required int32 id = 1; optional group Part = 2 { optional string name = 1; optional Old inner = 2; }
      extensions 100 to 200; optional string text = 3 [default = "none"]; repeated int32 n = 4 [packed = true];
    }
    extend Old { optional string more = 100; }""",
]


def _protobuf() -> Run:
    from strata.serdes.protobuf import ProtobufDeserializer

    client: Any = _Registry([Schema(one, PROTOBUF) for one in _PROTOBUF])

    def check_size(value: Any, size: int) -> None:
        if isinstance(value, dict):
            check(_extent(value)[0] <= size * 8, f"{_extent(value)[0]} values of {size} bytes")
        else:
            written = len(value.SerializePartialToString())
            check(written <= size * 8, f"{written} bytes of {size}")

    return _frames([ProtobufDeserializer(client), ProtobufDeserializer(client, as_dict=True)], check_size)


def _protobuf_seeds() -> list[bytes]:
    payloads = [
        (0, (1,), b"\x08\x07\x12\x05\x0a\x01x\x10\x04\x1a\x05\x0a\x01k\x10\x01\x2a\x01m"),
        (0, (1,), b"\x42\x06\x08\x80\xe2\xcf\xaa\x06\x4a\x02\x08\x05\x62\x09\x09" + bytes(7) + b"\x40"),
        (0, (1,), b"\x52\x0b\x0a\x09\x0a\x01a\x12\x04\x1a\x02hi\x5a\x06\x0a\x04f/f.\x6a\x03\x0a\x01a"),
        (0, (1,), b"\x42\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        (0, (1,), b"\x5a\x1f\x0a\x1ax/google.protobuf.Duration\x12\x01\x08"),
        (0, (1, 0, 0), b"\x0a\x02\x08\x01"),
        (0, (0,), b"\x0a\x01a"),
        (1, (0,), b"\x08\x01\x13\x0a\x01a\x12\x02\x08\x02\x14\x22\x02\x01\x02\xa2\x06\x01x"),
    ]
    return [
        bytes([flag]) + join(schema, write_indexes(path) + payload)
        for flag in (0, 1)
        for schema, path, payload in payloads
    ]


TARGETS = {
    "framing": Target(_framing, _framing_seeds),
    "avro": Target(_avro, _avro_seeds),
    "arrow": Target(_arrow, _arrow_seeds),
    "json": Target(_json, _json_seeds),
    "protobuf": Target(_protobuf, _protobuf_seeds),
    **CREDENTIALS,
}
