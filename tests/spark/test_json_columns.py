"""JSON frames are decoded to columns: types, schema evolution, damage; no Spark session is needed."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.payload_columns import FrameRefused, PayloadColumn
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.errors import SchemaError
from strata.serdes.framing import join, split
from strata.serdes.json_schema import JsonSerializer
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def schema_of(document: Any, *references: Reference) -> Schema:
    """Return a JSON Schema."""
    return Schema(json.dumps(document), "JSON", references)


def column_of(client: RegistryClient, reader: Any, **options: Any) -> PayloadColumn:
    """Return a column of frames, decoded with a document or schema."""
    return PayloadColumn(client, reader if isinstance(reader, Schema) else schema_of(reader), **options)


@pytest.fixture
def client(registry: RegistryClient) -> Iterator[RegistryClient]:
    """Yield the registry's client while compatibility checks are off."""
    registry.set_config("NONE")
    yield registry
    registry.set_config("BACKWARD")


def frame_of(client: RegistryClient, payload: Any, document: Any = True) -> bytes:
    """Return the frame of a value, or of raw bytes, under a schema that is registered for it."""
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return join(client.register("json-columns", schema_of(document)).schema_id, text)


def integers(low: int) -> dict[str, Any]:
    """Return integers from a number on."""
    return {"type": "integer", "minimum": low}


INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
POINT = {"type": "object", "properties": {"x": NUM, "y": NUM}}
A_POINT = "struct<x:double,y:double>"
# schema, Spark type, values, the column where it differs
TYPES: list[Any] = [
    pytest.param(STR, "string", ["zürich", "", None], None, id="string"),
    pytest.param({"type": "string", "format": "date-time"}, "string", ["2026-01-01T00:00:00Z"], None, id="date-time"),
    pytest.param(INT, "bigint", [-(2**63), 2**63 - 1, None], None, id="integer"),
    pytest.param(INT, "bigint", [1.0, -2e3], [1, -2000], id="integer written as a number"),
    pytest.param(NUM, "double", [0.1, -1e300], None, id="number"),
    pytest.param(NUM, "double", [1, 2**60 + 1, 10**30], [1.0, 2.0**60, 1e30], id="number without fraction"),
    pytest.param({"type": "boolean"}, "boolean", [True, False], None, id="boolean"),
    pytest.param({"type": "null"}, "void", [None], None, id="null"),
    pytest.param({"type": "array", "items": STR}, "array<string>", [["a", None], [], None], None, id="array"),
    pytest.param({"type": "array"}, "array<string>", [["a", {"b": 1}]], [['"a"', '{"b":1}']], id="array of anything"),
    pytest.param(
        {"items": [integers(0), INT], "additionalItems": False, "type": "array"},
        "array<bigint>", [[1, 2]], None, id="tuple of one type",
    ),
    pytest.param(
        {"items": [integers(0)], "type": "array"},
        "array<string>", [[1, "a"]], [["1", '"a"']], id="open tuple",
    ),
    pytest.param(
        {"$schema": DRAFT_2020, "prefixItems": [integers(0)], "items": NUM},
        "array<double>", [[1, 2.5]], None, id="tuple and rest",
    ),
    pytest.param(POINT, A_POINT, [{"x": 1.5, "y": None}, None], None, id="object"),
    pytest.param(
        POINT,
        A_POINT, [{"x": 1.5, "z": "not asked for"}], [{"x": 1.5, "y": None}], id="absent and additional",
    ),
    pytest.param({"properties": {"a b": STR}}, "struct<a b:string>", [{"a b": "x"}], None, id="properties alone"),
    pytest.param(
        {"type": "object", "additionalProperties": INT},
        "map<string,bigint>", [{"a": 1, "b": None}, {}], None, id="map",
    ),
    pytest.param(
        {"patternProperties": {"^a": INT, "^b": NUM}, "additionalProperties": False, "type": "object"},
        "map<string,double>", [{"a": 1.0, "b": 2.5}], None, id="map by patterns",
    ),
    pytest.param({"type": "object"}, "string", [{"a": [1, 2.0]}], ['{"a":[1,2.0]}'], id="object of anything"),
    pytest.param(
        {"type": "object", "patternProperties": {"^a": INT}},
        "string", [{"b": "x"}], ['{"b":"x"}'], id="open patterns",
    ),
    pytest.param(True, "string", ["a", 1, {}, [None], None], ['"a"', "1", "{}", "[null]", None], id="anything"),
    pytest.param(True, "string", [10**30, [[2**64]]], [str(10**30), f"[[{2**64}]]"], id="anything, long integers"),
    pytest.param({"type": ["string", "null"], "minLength": 1}, "string", ["a", None], None, id="or null"),
    pytest.param(
        {"oneOf": [{"type": "null"}, POINT]},
        A_POINT, [{"x": 1.0, "y": 2.0}, None], None, id="oneOf with null",
    ),
    pytest.param({"type": ["integer", "number"]}, "double", [1.5], None, id="integer or number"),
    pytest.param({"type": ["string", "integer"]}, "string", ["1", 1], ['"1"', "1"], id="string or integer"),
    pytest.param({"anyOf": [integers(0), {"type": "integer", "maximum": -9}]}, "bigint", [1, -9], None, id="alike"),
    pytest.param({"oneOf": [POINT, STR]}, "string", [{"x": 1}, "a"], ['{"x":1}', '"a"'], id="object or string"),
    pytest.param(
        {"allOf": [POINT, {"properties": {"z": INT, "x": integers(0)}}]},
        "struct<x:bigint,y:double,z:bigint>", [{"x": 1, "y": 2.0, "z": 3}], None, id="allOf",
    ),
    pytest.param(
        {**POINT, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
        A_POINT, [{"x": 1.0, "y": None}], None, id="oneOf that only requires",
    ),
    pytest.param(
        {**POINT, "if": {"required": ["x"]}, "then": {"required": ["y"]}, "not": {"required": ["z"]}},
        A_POINT, [{"x": 1.0, "y": 2.0}], None, id="conditions",
    ),
    pytest.param({"enum": ["a", "b", None]}, "string", ["a", None], None, id="enum of strings"),
    pytest.param({"enum": [1, 2.5]}, "double", [2.5], None, id="enum of numbers"),
    pytest.param({"enum": ["a", 1]}, "string", ["a", 1], ['"a"', "1"], id="enum of several"),
    pytest.param({"type": "string", "enum": ["a"]}, "string", ["a"], None, id="type and enum"),
    pytest.param({"const": True}, "boolean", [True], None, id="const"),
    pytest.param(
        {"$ref": "#/definitions/p", "definitions": {"p": POINT}},
        A_POINT, [{"x": 1.0, "y": 2.0}], None, id="ref",
    ),
    pytest.param(
        {"$schema": DRAFT_4, "id": "http://x/y", "properties": {"a": {"$ref": "#/definitions/p"}},
         "definitions": {"p": POINT}},
        f"struct<a:{A_POINT}>", [{"a": None}], None, id="draft 4",
    ),
    pytest.param(
        {"$schema": DRAFT_2020, "$defs": {"p": {"$anchor": "here", **POINT}},
         "$ref": "#here", "properties": {"z": STR}},
        "struct<x:double,y:double,z:string>", [{"x": 1.0, "y": 2.0, "z": "a"}], None, id="2020-12, beside a ref",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "kind", "values", "expected"), TYPES)
def test_types(client: RegistryClient, document: Any, kind: str, values: list[Any], expected: list[Any] | None) -> None:
    """Each schema becomes a Spark type, at the top and inside, and its values arrive."""
    frames = [frame_of(client, one) for one in values]
    inside = [frame_of(client, {"f": one}) for one in values]
    nested = {"properties": {"f": document}}
    if isinstance(document, dict) and "$schema" in document:
        nested["$schema"] = document["$schema"]
    column = column_of(client, document)

    assert kind == column.type.simpleString()
    assert (values if expected is None else expected) == column.read(*frames)
    if "$ref" not in json.dumps(document):
        column = column_of(client, nested)
        assert f"struct<f:{kind}>" == column.type.simpleString()
        assert [{"f": one} for one in (values if expected is None else expected)] == column.read(*inside)


LOOP = {"definitions": {"n": {"properties": {"v": STR, "next": {"$ref": "#/definitions/n"}}}}}
NINE = {f"d{n}": {"properties": {f"p{i}": {"$ref": f"#/definitions/d{n + 1}"} for i in range(9)}} for n in range(9)}
MULTIPLYING = {"definitions": {**NINE, "d9": {}}, "$ref": "#/definitions/d0"}
LINKS = {f"d{n}": {"properties": {"p": {"$ref": f"#/definitions/d{n + 1}"}}} for n in range(500)}
CHAIN = {"definitions": {**LINKS, "d500": {}}, "$ref": "#/definitions/d0"}
# document, columns, error, its message
REFUSED: list[Any] = [
    pytest.param(
        {**LOOP, "properties": {"a": {"items": {"$ref": "#/definitions/n"}}}},
        None, UnsupportedSchema, r"at a\[\]\.next: the schema contains itself", id="recursive",
    ),
    pytest.param(
        {"properties": {"a": {"$ref": "#"}}},
        None, UnsupportedSchema, r"at a\.a: the schema contains itself", id="the whole",
    ),
    pytest.param(
        {"properties": {"a": {"additionalProperties": {"$ref": "#/properties/a"}}}},
        None, UnsupportedSchema, r"at a\{\}\{\}: the schema", id="map of itself",
    ),
    pytest.param(CHAIN, None, UnsupportedSchema, "more than 100 levels deep", id="a long chain"),
    pytest.param(MULTIPLYING, None, UnsupportedSchema, "more than 10000 types", id="types that multiply"),
    pytest.param(POINT, ["x", "z"], ValueError, "no column z; the reader schema has x, y", id="no such column"),
    pytest.param(POINT, [], ValueError, "no column is chosen", id="no columns"),
    pytest.param(STR, ["x"], ValueError, "needs an object with properties", id="columns of a string"),
    pytest.param({"type": "what"}, None, SchemaError, "not a valid JSON Schema", id="no schema"),
    pytest.param(
        {"$ref": "http://elsewhere/x.json"},
        None, SchemaError, "not found|not a valid JSON Schema", id="nothing is fetched",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("document", "columns", "error", "says"), REFUSED)
def test_refused(client: RegistryClient, document: Any, columns: Any, error: type[Exception], says: str) -> None:
    """A schema that cannot be a column is refused before any task runs, with the place."""
    with pytest.raises(error, match=says):
        _ = column_of(client, document, columns=columns).type


def test_columns_leave_out(client: RegistryClient) -> None:
    """Only the requested properties are decoded, in that order; the others may be recursive or damaged."""
    document = {"properties": {"a": INT, "b": {"$ref": "#"}, "c": STR}}
    column = column_of(client, document, columns=["c", "a"])

    assert "struct<c:string,a:bigint>" == column.type.simpleString()
    assert [{"c": "x", "a": 1}] == column.read(frame_of(client, {"a": 1, "b": "no object", "c": "x"}))


ORDER = {
    "properties": {
        "id": INT,
        "ok": {"type": "boolean"},
        "lines": {"type": "array", "items": {"properties": {"price": NUM, "sku": STR}}},
        "by": {"type": "object", "additionalProperties": INT},
    }
}
ORDER_1 = {"id": 1, "ok": True, "lines": [{"price": 1.5, "sku": "a"}], "by": {"k": 1}}
# payload, reason
DAMAGED: list[Any] = [
    pytest.param({"id": "1"}, "invalid value: expected integer, got string at id", id="string for an integer"),
    pytest.param({"id": 1.5}, "invalid value: expected integer, got number at id", id="fraction for an integer"),
    pytest.param({"id": True}, "invalid value: expected integer, got boolean at id", id="boolean for an integer"),
    pytest.param({"id": 2**63}, "out of range", id="integer beyond 64 bits"),
    pytest.param({"id": 10**40}, "out of range", id="integer far beyond"),
    pytest.param({"ok": 1}, "invalid value: expected boolean, got integer at ok", id="integer for a boolean"),
    pytest.param({"lines": {}}, "invalid value: expected array, got object at lines", id="object for an array"),
    pytest.param({"lines": [1]}, "invalid value: expected object, got integer at lines[]", id="integer in an array"),
    pytest.param(
        {"lines": [{}, {"price": True}]},
        "invalid value: expected number, got boolean at lines[].price", id="boolean for a number",
    ),
    pytest.param({"lines": [{"price": 10**400}]}, "malformed", id="number beyond doubles"),
    pytest.param(
        {"lines": [{"sku": []}]},
        "invalid value: expected string, got array at lines[].sku", id="array for a string",
    ),
    pytest.param(
        {"by": {"secret": "x"}},
        "invalid value: expected integer, got string at by{}", id="in a map, its key not told",
    ),
    pytest.param({"by": []}, "invalid value: expected object, got array at by", id="array for a map"),
    pytest.param([], "invalid value: expected object, got array", id="array for the whole"),
    pytest.param(b"", "malformed", id="nothing"),
    pytest.param(b'{"id": 1', "malformed", id="cut"),
    pytest.param(b'{"id": 1}}', "malformed", id="trailing bytes"),
    pytest.param(b'{"id": NaN}', "malformed", id="NaN"),
    pytest.param(b'{"ok": "\xff"}', "malformed", id="no UTF-8"),
    pytest.param(b"[" * 100_000, "malformed", id="deep, unfinished"),
    pytest.param(b"[" * 100_000 + b"]" * 100_000, "malformed", id="deep"),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "reason"), DAMAGED)
def test_damaged(client: RegistryClient, payload: Any, reason: str) -> None:
    """A payload that does not fit is a dead letter that names the column; its neighbours are not affected."""
    good, bad = frame_of(client, ORDER_1), frame_of(client, payload)

    assert [ORDER_1, (reason, split(bad)[0]), ORDER_1] == column_of(client, ORDER).read(good, bad, good)


def test_deep_text(client: RegistryClient) -> None:
    """A value that is kept as text may be as deep as the parser reads."""
    payload = b"[" * 900 + b"]" * 900

    assert [payload.decode()] == column_of(client, True).read(frame_of(client, payload))


def test_three_versions_in_one_column(client: RegistryClient) -> None:
    """Frames of several versions, written by the serializer, may be mixed with nulls."""
    versions: list[Any] = [
        {"title": "O", "properties": {"id": INT, "gone": STR}},
        {"title": "O", "properties": {"id": INT, "by": STR}},
        {"title": "O", "properties": {"id": NUM}},
    ]
    values = [{"id": 1, "gone": "x"}, {"id": 2, "by": "me"}, {"id": 2.5}]
    frames = [
        JsonSerializer(client, json.dumps(document))(value, topic="json-growing")
        for document, value in zip(versions, values, strict=True)
    ]
    column = column_of(client, client.get_version("json-growing-value", 2).schema)

    assert 3 == len({split(one)[0] for one in frames if one})
    assert [
        {"id": 1, "by": None},
        None,
        {"id": 2, "by": "me"},
        ("invalid value: expected integer, got number at id", split(frames[2] or b"")[0]),
    ] == column.read(frames[0], None, frames[1], frames[2])


def test_references(client: RegistryClient) -> None:
    """A `$ref` resolves to the schema registered under its name, through further references."""
    unit = client.register("json-columns-unit", schema_of({"enum": ["m", "km"]})).version
    length = schema_of(
        {"properties": {"n": NUM, "unit": {"$ref": "unit.json"}}},
        Reference("unit.json", "json-columns-unit", unit or 0),
    )
    version = client.register("json-columns-length", length).version
    way = schema_of(
        {"properties": {"legs": {"type": "array", "items": {"$ref": "length.json"}}}},
        Reference("length.json", "json-columns-length", version or 0),
    )
    way_id = client.register("json-columns-way", way).schema_id
    good = {"legs": [{"n": 1.5, "unit": "m"}]}
    frames = [join(way_id, json.dumps(one).encode()) for one in (good, {"legs": [{"n": 1.5, "unit": "ft"}]})]

    assert "struct<legs:array<struct<n:double,unit:string>>>" == column_of(client, way).type.simpleString()
    assert [good, {"legs": [{"n": 1.5, "unit": "ft"}]}] == column_of(client, way).read(*frames)
    refused = ("invalid value: expected 'm' or 'km', got another string (rule enum)", way_id)
    assert [good, refused] == column_of(client, way, validate=True).read(*frames)


def test_validate(client: RegistryClient) -> None:
    """On request a payload is validated against its writer schema, and not against the reader's."""
    strict = {"properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}
    reader = {"properties": {"n": {"type": "integer", "maximum": 5}}}
    frames = [frame_of(client, one, strict) for one in ({"n": 7}, {"n": -1}, {})]

    assert [{"n": 7}, {"n": -1}, {"n": None}] == column_of(client, reader).read(*frames)
    number = split(frames[0])[0]
    assert [
        {"n": 7},
        ("invalid value: expected a number of at least 0, got a smaller one (rule properties/n/minimum)", number),
        ("invalid value: expected a value, got none: the property is required (rule required)", number),
    ] == column_of(client, reader, validate=True).read(*frames)


def test_other_frames(client: RegistryClient) -> None:
    """Frames of other formats and of no schema are dead letters that say so; GUIDs work like ids."""
    avro = client.register("json-columns-avro", '"string"').schema_id
    guids = JsonSerializer(client, json.dumps(ORDER), conf={"schema.id.serializer": "guid"})(
        ORDER_1, topic="json-guids"
    )

    assert [
        ORDER_1,
        ("writer schema is AVRO", avro),
        ("unknown schema id", 99999),
        ("unknown schema guid", None),
        ("frame too short", None),
        ("wrong magic byte 0x7b", None),
        ("wrong magic byte 0x03 (frame of AWS Glue's registry)", None),
    ] == column_of(client, ORDER).read(
        guids, join(avro, b""), join(99999, b"{}"), b"\1" * 20, b"", b'{"id": 1}', b"\3\0" + bytes(16)
    )


def test_failfast(client: RegistryClient) -> None:
    """FAILFAST names record, reason and column, and never the value."""
    column = column_of(client, ORDER, mode=Mode.FAILFAST, origin=["topic", "offset"])
    bad = frame_of(client, {"by": {"secret": "secret"}})

    with pytest.raises(FrameRefused) as caught:
        column.decode(pa.array([None, bad], pa.binary()), pa.array(["t", "t"]), pa.array([1, 2]))

    expected = "invalid value: expected integer, got string (at field by{})"
    assert f"a frame cannot be decoded (schema id {split(bad)[0]}, topic t, offset 2): {expected}" == str(caught.value)
    assert [None] == column_of(client, ORDER, mode=Mode.PERMISSIVE).read(bad)


# arguments of the source, of the plan, the error's message
WRONG: list[Any] = [
    pytest.param(
        {"reader_schema": '"int"'},
        {"message": "a.B"}, "message needs a Protobuf schema, and the reader schema is AVRO", id="message of Avro",
    ),
    pytest.param(
        {"reader_schema": '"int"'},
        {"validate": True}, "validate needs a JSON Schema, and the reader schema is AVRO", id="validate Avro",
    ),
    pytest.param(
        {"reader_schema": "{}", "format": "JSON"},
        {"message": "a.B"}, "the reader schema is JSON", id="message of JSON",
    ),
    pytest.param(
        {"reader_schema": "{}", "format": "XML"},
        {}, "got 'XML'", id="no such format",
    ),
    pytest.param(
        {"reader_schema": Schema("{}", "JSON"), "format": "AVRO"},
        {}, "expected a reader schema of format AVRO, got JSON", id="other format than said",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("source", "options", "says"), WRONG)
def test_options_of_other_formats(registry: RegistryClient, source: Any, options: Any, says: str) -> None:
    """An option without a meaning for the reader schema's format is refused, not ignored."""
    with pytest.raises(ValueError, match=says):
        plan_decode(registry.settings, ReaderSource(**source), mode=Mode.PERMISSIVE, **options)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "ok", "lines", "by", "sku"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(VALUES, max_size=4), junk=st.binary(max_size=6))
def test_any_values(client: RegistryClient, values: list[Any], junk: bytes) -> None:
    """Any payload is a row or a dead letter with its bytes; text columns hold it all."""
    schema_id = split(frame_of(client, ORDER_1))[0]
    good = join(schema_id, json.dumps(ORDER_1).encode())
    frames = [join(schema_id, json.dumps(one).encode()) for one in values]

    rows = column_of(client, ORDER).read(good, *frames, join(schema_id, junk), good)

    assert ORDER_1 == rows[0] == rows[-1]
    texts = column_of(client, True).read(*frames)
    assert values == [None if one is None else json.loads(one) for one in texts]
