"""Each Avro type and logical type is encoded and decoded as the specification and a second implementation do it."""

import io
import json
import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.avro import Branch, compile_decoder, compile_encoder
from strata.serdes.errors import DecodeError, EncodeError

SUIT = {"type": "enum", "name": "Suit", "symbols": ["CLUBS", "HEARTS"]}
POINT = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
LIST = {
    "type": "record",
    "name": "L",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "L"]}],
}


def logical(kind, name, **more):
    """Return a schema with a logical type."""
    return {"type": kind, "logicalType": name, **more}


def fixed(size, **more):
    """Return a fixed of a size."""
    return {"type": "fixed", "name": "F", "size": size, **more}


CODEC = [
    ("null", "null", None, b""),
    ("true", "boolean", True, b"\x01"),
    ("false", "boolean", False, b"\x00"),
    ("int zero", "int", 0, b"\x00"),
    ("int minus one", "int", -1, b"\x01"),
    ("int 63", "int", 63, b"\x7e"),
    ("int 64", "int", 64, b"\x80\x01"),
    ("int -64", "int", -64, b"\x7f"),
    ("int -65", "int", -65, b"\x81\x01"),
    ("int largest", "int", 2**31 - 1, b"\xfe\xff\xff\xff\x0f"),
    ("int smallest", "int", -(2**31), b"\xff\xff\xff\xff\x0f"),
    ("long largest", "long", 2**63 - 1, b"\xfe" + b"\xff" * 8 + b"\x01"),
    ("long smallest", "long", -(2**63), b"\xff" * 9 + b"\x01"),
    ("float", "float", 1.5, b"\x00\x00\xc0\x3f"),
    ("double", "double", -0.1, b"\x9a\x99\x99\x99\x99\x99\xb9\xbf"),
    ("double infinity", "double", math.inf, b"\x00\x00\x00\x00\x00\x00\xf0\x7f"),
    ("bytes alone have no length", "bytes", b"\x00\xff", b"\x00\xff"),
    ("bytes alone, logical", logical("bytes", "decimal", precision=4, scale=2), Decimal("-1.27"), b"\x81"),
    ("bytes in an array", {"type": "array", "items": "bytes"}, [b"\x00\xff", b""], b"\x04\x04\x00\xff\x00\x00"),
    ("string", "string", "héllo €", b"\x14h\xc3\xa9llo \xe2\x82\xac"),
    ("string of 64 bytes", "string", "a" * 64, b"\x80\x01" + b"a" * 64),
    ("string empty", "string", "", b"\x00"),
    ("fixed", fixed(3), b"abc", b"abc"),
    ("fixed of nothing", fixed(0), b"", b""),
    ("enum", SUIT, "HEARTS", b"\x02"),
    ("array", {"type": "array", "items": "int"}, [1, -1], b"\x04\x02\x01\x00"),
    ("array empty", {"type": "array", "items": "int"}, [], b"\x00"),
    (
        "array of arrays",
        {"type": "array", "items": {"type": "array", "items": "int"}},
        [[], [7]],
        b"\x04\x00\x02\x0e\x00\x00",
    ),
    ("array of nulls", {"type": "array", "items": "null"}, [None] * 3, b"\x06\x00"),
    ("map", {"type": "map", "values": "long"}, {"a": 1, "b": 2}, b"\x04\x02a\x02\x02b\x04\x00"),
    ("map empty", {"type": "map", "values": "long"}, {}, b"\x00"),
    ("union null", ["null", "string"], None, b"\x00"),
    ("union string", ["null", "string"], "a", b"\x02\x02a"),
    ("union null last", ["string", "null"], None, b"\x02"),
    ("union of many", ["null", "int", "string", SUIT], "x", b"\x04\x02x"),
    ("record", POINT, {"x": -2, "y": "z"}, b"\x03\x02z"),
    ("record without fields", {"type": "record", "name": "E", "fields": []}, {}, b""),
    ("record in itself", LIST, {"v": 1, "next": {"v": 2, "next": None}}, b"\x02\x02\x04\x00"),
    ("date", logical("int", "date"), date(1969, 12, 31), b"\x01"),
    ("date, last", logical("int", "date"), date(9999, 12, 31), b"\xc0\x82\xe6\x02"),
    ("time-millis", logical("int", "time-millis"), time(0, 0, 1, 5000), b"\xda\x0f"),
    ("time-micros", logical("long", "time-micros"), time(23, 59, 59, 999999), b"\xfe\xff\xba\xdd\x83\x05"),
    ("timestamp-millis", logical("long", "timestamp-millis"), datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC), b"\xb8\x17"),
    (
        "timestamp-millis early",
        logical("long", "timestamp-millis"),
        datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
        b"\x01",
    ),
    ("timestamp-micros", logical("long", "timestamp-micros"), datetime(1970, 1, 1, 0, 0, 0, 7, UTC), b"\x0e"),
    ("timestamp-nanos", logical("long", "timestamp-nanos"), 7, b"\x0e"),
    (
        "local-timestamp-millis",
        logical("long", "local-timestamp-millis"),
        datetime.fromisoformat("1970-01-01T00:00:01"),
        b"\xd0\x0f",
    ),
    (
        "local-timestamp-micros",
        logical("long", "local-timestamp-micros"),
        datetime.fromisoformat("1969-12-31T23:59:59.999999"),
        b"\x01",
    ),
    ("uuid", logical("string", "uuid"), UUID(int=1), b"\x48" + b"00000000-0000-0000-0000-000000000001"),
    ("uuid fixed", fixed(16, logicalType="uuid"), UUID(int=258), b"\x00" * 14 + b"\x01\x02"),
    ("decimal fixed", fixed(4, logicalType="decimal", precision=9, scale=2), Decimal("-1.00"), b"\xff\xff\xff\x9c"),
    (
        "decimals",
        {"type": "array", "items": logical("bytes", "decimal", precision=30, scale=10)},
        [Decimal("0E-10"), Decimal("12345678901234567890.1234567890")],
        b"\x04\x02\x00\x1a\x01\x8e\xe9\x0f\xf6\xc3\x73\xe0\xee\x4e\x3f\x0a\xd2\x00",
    ),
    ("duration stays bytes", fixed(12, logicalType="duration"), b"\x01" * 12, b"\x01" * 12),
    ("decimal without precision stays bytes", fixed(2, logicalType="decimal"), b"ab", b"ab"),
    ("decimal too wide for its fixed stays bytes", fixed(1, logicalType="decimal", precision=3), b"a", b"a"),
    ("logical type on the wrong type", logical("string", "timestamp-millis"), "a", b"\x02a"),
    ("logical type unknown", logical("long", "moon-phase"), 1, b"\x02"),
]
ENDING = [row for row in CODEC if not row[0].startswith("bytes alone")]
"""A lone `bytes` takes the whole payload: it cannot be too short or too long."""


@pytest.mark.parametrize(("schema", "value", "payload"), [row[1:] for row in CODEC], ids=[row[0] for row in CODEC])
def test_value_and_bytes(schema, value, payload):
    """A value is encoded as the specification says and decoded to the same value."""
    text = json.dumps(schema)

    assert payload == compile_encoder(text)(value)
    assert value == compile_decoder(text)(payload)
    assert type(value) is type(compile_decoder(text)(payload))


@pytest.mark.parametrize(("schema", "value", "payload"), [row[1:] for row in ENDING], ids=[row[0] for row in ENDING])
def test_the_end_of_a_value(schema, value, payload):
    """A payload cut anywhere is an error with the reason `truncated`, and so are bytes after the value, with theirs."""
    decode = compile_decoder(json.dumps(schema))

    ends = [(payload[:length], "truncated") for length in range(len(payload))]
    for damaged, reason in [*ends, (payload + b"\x00", "trailing bytes")]:
        with pytest.raises(DecodeError) as caught:
            decode(damaged)
        assert caught.value.reason == reason


@pytest.mark.parametrize(("schema", "value", "payload"), [row[1:] for row in ENDING], ids=[row[0] for row in ENDING])
def test_values_may_be_skipped(schema, value, payload):
    """A field that the reader schema lacks is skipped, whatever its type."""
    writer = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}, {"name": "b", "type": "int"}]}
    reader = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "int"}]}

    assert compile_decoder(json.dumps(writer), json.dumps(reader))(payload + b"\x54") == {"b": 42}


BLOCKS = [
    ("two blocks", b"\x02\x02\x04\x04\x06\x00", [1, 2, 3]),
    ("sized block", b"\x03\x04\x02\x04\x00", [1, 2]),
    ("sized and plain", b"\x01\x02\x02\x02\x04\x00", [1, 2]),
]


@pytest.mark.parametrize(("payload", "value"), [row[1:] for row in BLOCKS], ids=[row[0] for row in BLOCKS])
def test_blocks(payload, value):
    """Arrays may come in several blocks, with or without the length of each."""
    assert value == compile_decoder('{"type": "array", "items": "int"}')(payload)


def test_a_map_key_that_comes_twice_keeps_the_last():
    """If a map key comes twice, the last value counts, as in every implementation."""
    assert compile_decoder('{"type": "map", "values": "int"}')(b"\x04\x02a\x02\x02a\x04\x00") == {"a": 2}


def test_numeric_times():
    """On request times stay numbers, in the reader's unit."""
    millis = json.dumps(logical("long", "timestamp-millis"))
    micros = json.dumps(logical("long", "timestamp-micros"))

    assert compile_decoder(millis, numeric_times=True)(b"\xb8\x17") == 1500
    assert compile_decoder(millis, micros, numeric_times=True)(b"\xb8\x17") == 1_500_000
    assert compile_decoder(micros, millis, numeric_times=True)(b"\xb8\x17") == 1
    assert compile_decoder(json.dumps(logical("int", "date")), numeric_times=True)(b"\x01") == -1


def test_tagged_unions():
    """On request a value of a real union carries its branch's index; a nullable one does not."""
    schema = json.dumps([POINT, "null", "int", {"type": "array", "items": ["null", "int"]}])
    decode = compile_decoder(schema, tagged_unions=True)

    assert Branch(0, {"x": 1, "y": ""}) == decode(b"\x00\x02\x00")
    assert decode(b"\x02") is None
    assert Branch(2, 5) == decode(b"\x04\x0a")
    assert Branch(3, [None, 5]) == decode(b"\x06\x04\x00\x02\x0a\x00")
    assert b"\x04\x0a" == compile_encoder(schema)(Branch(2, 5))


def test_deep_schemas():
    """Types nested deeper than Python nests its blocks decode and encode like any other."""
    schema, value = "int", 7
    for level in range(50):
        schema = {
            "type": "record",
            "name": f"R{level}",
            "fields": [{"name": "a", "type": {"type": "array", "items": schema}}],
        }
        value = {"a": [value]}
    text = json.dumps(schema)

    payload = compile_encoder(text)(value)

    assert b"\x02" * 50 + b"\x0e" + b"\x00" * 50 == payload
    assert value == compile_decoder(text)(payload)


def test_names_are_data_never_code():
    """Field names, symbols and map keys may be anything that JSON can express."""
    name = "a'\"\\\n]) or __import__('os').abort()"
    schema = json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": name, "type": {"type": "enum", "name": "E", "symbols": [name]}}],
        }
    )

    assert b"\x00" == compile_encoder(schema)({name: name})
    assert compile_decoder(schema)(b"\x00") == {name: name}


PRIMITIVES = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(),
    "null": st.none(),
}


@st.composite
def schemas_and_values(draw, depth=0):
    """Draw a schema and a strategy for its values."""
    kind = draw(
        st.sampled_from(
            [*PRIMITIVES, "bytes", "enum", "fixed", *(["array", "map", "record", "nullable"] * (depth < 3))]
        )
    )
    name = f"N{draw(st.integers(0, 10**9))}"
    if kind in PRIMITIVES:
        return kind, PRIMITIVES[kind]
    if kind == "bytes":
        return {"type": "array", "items": "bytes"}, st.lists(st.binary(), max_size=3)
    if kind == "enum":
        symbols = draw(st.lists(st.sampled_from("ABCDE"), unique=True, min_size=1))
        return {"type": "enum", "name": name, "symbols": symbols}, st.sampled_from(symbols)
    if kind == "fixed":
        size = draw(st.integers(1, 20))
        return {"type": "fixed", "name": name, "size": size}, st.binary(min_size=size, max_size=size)
    if kind == "record":
        inner = draw(st.lists(schemas_and_values(depth + 1), max_size=4))
        fields = [{"name": f"f{index}", "type": schema} for index, (schema, _) in enumerate(inner)]
        values = st.fixed_dictionaries({f"f{index}": value for index, (_, value) in enumerate(inner)})
        return {"type": "record", "name": name, "fields": fields}, values
    schema, values = draw(schemas_and_values(depth + 1))
    if kind == "array":
        return {"type": "array", "items": schema}, st.lists(values, max_size=3)
    if kind == "map":
        return {"type": "map", "values": schema}, st.dictionaries(st.text(max_size=3), values, max_size=3)
    if schema == "null" or isinstance(schema, list):
        return "null", st.none()
    return ["null", schema], st.none() | values


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_the_same_bytes_as_another_implementation(data):
    """Any value of any schema has the same bytes as from fastavro, and each library reads the other's."""
    schema, values = data.draw(schemas_and_values())
    try:
        parsed = fastavro.parse_schema(schema)
    except fastavro.schema.SchemaParseException:
        return
    value = data.draw(values)
    text = json.dumps(schema)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, value)

    payload = compile_encoder(text)(value)

    assert out.getvalue() == payload
    assert value == compile_decoder(text)(payload)


ENCODED_LENIENTLY = [
    (
        "missing key with default",
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 5}]},
        {},
        b"\x0a",
    ),
    (
        "missing nullable key",
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", "null"]}]},
        {},
        b"\x02",
    ),
    ("tuple as array", {"type": "array", "items": "int"}, (1,), b"\x02\x02\x00"),
    ("whole number as double", "double", 1, b"\x00\x00\x00\x00\x00\x00\xf0\x3f"),
    ("bytearray", fixed(2), bytearray(b"ab"), b"ab"),
    ("days as date", logical("int", "date"), 3, b"\x06"),
    ("text as date", logical("int", "date"), "1970-01-04", b"\x06"),
    ("text as uuid", logical("string", "uuid"), str(UUID(int=5)), b"\x48" + str(UUID(int=5)).encode()),
    ("whole number as decimal", logical("bytes", "decimal", precision=4, scale=2), 1, b"\x64"),
    ("decimal with zeros to spare", logical("bytes", "decimal", precision=4, scale=2), Decimal("1.0000"), b"\x64"),
    ("decimal with an exponent", logical("bytes", "decimal", precision=4), Decimal("1E+3"), b"\x03\xe8"),
    ("decimal zero with any exponent", logical("bytes", "decimal", precision=4), Decimal("0E+999999"), b"\x00"),
    (
        "another zone",
        logical("long", "timestamp-millis"),
        datetime(1970, 1, 1, 2, 0, 0, 1000, timezone(timedelta(hours=2))),
        b"\x02",
    ),
    ("named branch", ["null", SUIT, POINT], ("Suit", "HEARTS"), b"\x02\x02"),
    ("named branch of a nullable", ["null", POINT], ("Point", {"x": 0, "y": ""}), b"\x02\x00\x00"),
    (
        "record that says its name",
        [{**POINT, "name": "A"}, {**POINT, "name": "n.B"}],
        {"-type": "n.B", "x": 0, "y": ""},
        b"\x02\x00\x00",
    ),
    (
        "record with more of the keys",
        [{"type": "record", "name": "Few", "fields": []}, POINT],
        {"x": 0, "y": ""},
        b"\x02\x00\x00",
    ),
    ("float prefers double", ["null", "float", "double"], 0.5, b"\x04\x00\x00\x00\x00\x00\x00\xe0\x3f"),
    ("small number is an int", ["double", "long", "int"], 1, b"\x04\x02"),
    ("large number is a long", ["double", "long", "int"], 2**31, b"\x02\x80\x80\x80\x80\x10"),
    ("huge number is a double", ["int", "double"], 2**70, b"\x02\x00\x00\x00\x00\x00\x00\x50\x44"),
    ("symbol before text", [SUIT, "string"], "CLUBS", b"\x00\x00"),
    ("text that is not a symbol", [SUIT, "string"], "?", b"\x02\x02?"),
    (
        "datetime finds its branch",
        ["string", logical("long", "timestamp-millis")],
        datetime(1970, 1, 1, tzinfo=UTC),
        b"\x02\x00",
    ),
    (
        "date finds its branch",
        [logical("long", "timestamp-millis"), logical("int", "date")],
        date(1970, 1, 2),
        b"\x02\x02",
    ),
    ("bool is not a number", ["int", "boolean"], True, b"\x02\x01"),
    (
        "list finds the right array",
        [{"type": "map", "values": "int"}, {"type": "array", "items": "int"}],
        [],
        b"\x02\x00",
    ),
]


@pytest.mark.parametrize(
    ("schema", "value", "payload"), [row[1:] for row in ENCODED_LENIENTLY], ids=[row[0] for row in ENCODED_LENIENTLY]
)
def test_what_may_be_given_for_a_type(schema, value, payload):
    """Equivalent Python values are accepted, and a union finds the branch that they are meant for."""
    assert payload == compile_encoder(json.dumps(schema))(value)


def field(schema):
    """Return a record around a schema, so that errors have a path."""
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}]}


REFUSED = [
    ("text for int", "int", "1", "expected an integer, got str", "a"),
    ("fraction for int", "int", 1.5, "expected an integer, got float", "a"),
    ("bool for int", "int", True, "expected an integer, got bool", "a"),
    ("40 bits for int", "int", 2**40, "expected an integer of at most 32 bits, got one of 42 bits", "a"),
    ("65 bits for long", "long", -(2**64), "expected an integer of at most 64 bits", "a"),
    ("text for double", "double", "1", "expected a number, got str", "a"),
    ("too large for float", "float", 1e300, "expected a number in the range of its type", "a"),
    ("int for boolean", "boolean", 1, "expected a boolean, got int", "a"),
    ("bytes for string", "string", b"x", "expected a string, got bytes", "a"),
    ("lone surrogate", "string", "\ud800", "got one with a lone surrogate", "a"),
    ("string for bytes", "bytes", "x", "expected bytes, got str", "a"),
    ("value for null", "null", 0, "expected null, got int", "a"),
    ("wrong size", fixed(2), b"abc", "expected 2 bytes, got 3", "a"),
    ("unknown symbol", SUIT, "HEART", r"expected 'CLUBS' or 'HEARTS', got 'HEART'; did you mean 'HEARTS'\?", "a"),
    ("unlike any symbol", SUIT, "x", r"expected 'CLUBS' or 'HEARTS', got 'x' \(at field a\)$", "a"),
    ("symbol that is a list", SUIT, [], "expected a symbol of the enum, got list", "a"),
    ("string for array", {"type": "array", "items": "string"}, "abc", "expected an array, got str", "a"),
    ("bad item", {"type": "array", "items": "int"}, [0, 1, "2"], "expected an integer, got str", "a[2]"),
    ("list for map", {"type": "map", "values": "int"}, [], "expected a mapping, got list", "a"),
    ("bad map value", {"type": "map", "values": "int"}, {"k": None}, "expected an integer, got None", "a['k']"),
    ("bad map key", {"type": "map", "values": "int"}, {1: 1}, "expected a string, got int", "a['1']"),
    ("bad inner field", POINT, {"x": 1, "y": 2}, "expected a string, got int", "a.y"),
    (
        "missing inner field",
        POINT,
        {"x": 1},
        "expected a value, got none: the field is required and has no default",
        "a.y",
    ),
    ("list for record", POINT, [], "expected a mapping, got list", "a"),
    ("null for nothing nullable", POINT, None, "expected a mapping, got None", "a"),
    ("bad in a nullable", ["null", POINT], {"x": "?", "y": ""}, "expected an integer, got str", "a.x"),
    ("no branch", ["null", "int", "string"], b"", "expected null, int or string, got bytes", "a"),
    (
        "no such branch",
        ["null", "int", "string"],
        Branch(3, 1),
        "expected a branch of the union from 0 to 2, got 3",
        "a",
    ),
    (
        "decimal with too many places",
        logical("bytes", "decimal", precision=4, scale=2),
        Decimal("1.234"),
        "expected a decimal with at most 2 digits after the point, got 3",
        "a",
    ),
    (
        "decimal with too many digits",
        logical("bytes", "decimal", precision=4, scale=2),
        Decimal(100),
        "at most 4 digits",
        "a",
    ),
    (
        "decimal of astronomical size",
        logical("bytes", "decimal", precision=4),
        Decimal("1E+999999999"),
        "at most 4 digits",
        "a",
    ),
    ("decimal that is not a number", logical("bytes", "decimal", precision=4), Decimal("NaN"), "finite", "a"),
    (
        "text for timestamp",
        logical("long", "timestamp-millis"),
        "today",
        "expected an ISO 8601 date and time, got a string that is not one",
        "a",
    ),
    ("bad date", logical("int", "date"), "1970-13-01", "expected an ISO 8601 date, got a string that is not one", "a"),
]


@pytest.mark.parametrize(
    ("schema", "value", "says", "path"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_what_does_not_fit_is_refused_with_its_path(schema, value, says, path):
    """A value that does not fit is refused, not coerced; the error names the field and the expected type."""
    with pytest.raises(EncodeError, match=says) as caught:
        compile_encoder(json.dumps(field(schema)))({"a": value})

    assert caught.value.path == path


def test_a_path_through_shared_and_recursive_types():
    """The path follows the value through records that are used in several places."""
    tree = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "v", "type": "int"}, {"name": "kids", "type": {"type": "array", "items": "T"}}],
    }
    good = {"v": 1, "kids": []}

    with pytest.raises(EncodeError) as caught:
        compile_encoder(json.dumps(tree))(
            {"v": 1, "kids": [good, {"v": 1, "kids": [good, good, {"v": "x", "kids": []}]}]}
        )

    assert caught.value.path == "kids[1].kids[2].v"


def test_a_value_inside_itself_is_refused():
    """An endless value raises an error and does not crash the process."""
    endless = {"v": 1}
    endless["next"] = endless

    with pytest.raises(EncodeError, match="nested too deeply"):
        compile_encoder(json.dumps(LIST))(endless)
