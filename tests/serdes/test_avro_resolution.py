"""A reader schema resolves a writer's payload: fields, aliases, promotions, defaults, unions, logical types."""

# ruff: noqa: E501 - a row of a table is a line
import json
from datetime import UTC, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest

from strata.serdes.avro import Branch, compile_decoder, compile_encoder
from strata.serdes.errors import DecodeError


def record(*fields, name="R", **more):
    """Return a record of fields given as (name, type) or (name, type, more)."""
    written = [{"name": field[0], "type": field[1], **(field[2] if len(field) > 2 else {})} for field in fields]
    return {"type": "record", "name": name, "fields": written, **more}


def default(value):
    """Return the attribute of a field that sets its default."""
    return {"default": value}


def logical(kind, name, **more):
    """Return a schema with a logical type."""
    return {"type": kind, "logicalType": name, **more}


def enum(name, *symbols, **more):
    """Return an enum."""
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


ABC = record(("a", "int"), ("b", "string"), ("c", "double"))
POINT = record(("x", "int"), name="Point")
NESTED = {"type": "array", "items": record(("p", POINT), ("m", {"type": "map", "values": "Point"}), name="N")}

RESOLVED = [
    ("the same schema", ABC, {"a": 1, "b": "x", "c": 0.5}, ABC, {"a": 1, "b": "x", "c": 0.5}),
    ("fields in another order", ABC, {"a": 1, "b": "x", "c": 0.5}, record(("c", "double"), ("a", "int"), ("b", "string")), {"c": 0.5, "a": 1, "b": "x"}),
    ("fields left out", ABC, {"a": 1, "b": "x", "c": 0.5}, record(("b", "string")), {"b": "x"}),
    ("all fields left out", ABC, {"a": 1, "b": "x", "c": 0.5}, record(), {}),
    ("field renamed", ABC, {"a": 1, "b": "x", "c": 0.5}, record(("z", "int", {"aliases": ["y", "a"]})), {"z": 1}),
    ("a name goes before an alias", ABC, {"a": 1, "b": "x", "c": 0.5}, record(("b", "string"), ("z", "string", {"aliases": ["b"], "default": "d"})), {"b": "x", "z": "d"}),
    ("an alias may share what has no default", ABC, {"a": 1, "b": "x", "c": 0.5}, record(("b", "string"), ("z", "bytes", {"aliases": ["b"]}), ("c", "double"), ("y", "bytes", {"aliases": ["b"]})), {"b": "x", "z": b"x", "c": 0.5, "y": b"x"}),
    ("record renamed", record(("p", POINT)), {"p": {"x": 1}}, record(("p", record(("x", "long"), name="Dot", aliases=["Point"]))), {"p": {"x": 1}}),
    ("record of another name outside a union", POINT, {"x": 1}, record(("x", "int"), name="Other"), {"x": 1}),
    ("namespaces do not matter", {**enum("E", "A"), "namespace": "one"}, "A", {**enum("E", "B", "A"), "namespace": "two"}, "A"),
    ("inside arrays and maps", NESTED, [{"p": {"x": 1}, "m": {"k": {"x": 2}}}], {"type": "array", "items": record(("m", {"type": "map", "values": record(("x", "double"), name="Point")}), name="N")}, [{"m": {"k": {"x": 2.0}}}]),
    ("int to long", "int", -5, "long", -5),
    ("int to float", "int", 5, "float", 5.0),
    ("int to double", "int", 5, "double", 5.0),
    ("long to float loses what a float cannot hold", "long", 16777217, "float", 16777216.0),
    ("long to double", "long", 5, "double", 5.0),
    ("float to double", "float", 0.5, "double", 0.5),
    ("string to bytes", {"type": "array", "items": "string"}, ["é"], {"type": "array", "items": "bytes"}, [b"\xc3\xa9"]),
    ("bytes to string", {"type": "array", "items": "bytes"}, [b"\xc3\xa9"], {"type": "array", "items": "string"}, ["é"]),
    ("lone bytes to string", "bytes", b"\xc3\xa9", "string", "é"),
    ("lone bytes to nullable string", "bytes", b"ab", ["null", "string"], "ab"),
    ("to nullable", "int", 5, ["null", "int"], 5),
    ("to nullable, promoted", "int", 5, ["null", "double"], 5.0),
    ("exact type before promotion", "int", 5, ["double", "int"], 5),
    ("from nullable", ["null", "int"], 5, "long", 5),
    ("union reordered", ["null", "int", "string"], "x", ["string", "int", "null"], "x"),
    ("branch promoted", ["null", "int"], 5, ["null", "double"], 5.0),
    ("record in a union by short name", ["null", {**POINT, "namespace": "one"}], {"x": 1}, ["null", record(("y", "int"), name="Q"), {**POINT, "namespace": "two"}], {"x": 1}),
    ("record in a union by alias", ["null", POINT], {"x": 1}, ["null", record(("x", "int", default(7)), name="A"), record(("x", "int"), name="B", aliases=["Point"])], {"x": 1}),
    ("record in a union by shape", ["null", POINT], {"x": 1}, ["null", record(("y", "int"), name="A"), record(("x", "long"), name="B")], {"x": 1}),
    ("fixed by name", {"type": "fixed", "name": "a.F", "size": 2}, b"ab", {"type": "fixed", "name": "F", "size": 2}, b"ab"),
    ("enum symbols moved", enum("E", "A", "B"), "B", enum("E", "B", "C", "A"), "B"),
    ("enum default", enum("E", "A", "B"), "B", enum("E", "A", "X", default="X"), "X"),
    ("enum by alias", enum("E", "A"), "A", enum("F", "A", aliases=["E"]), "A"),
    ("millis to micros", logical("long", "timestamp-millis"), datetime(2024, 1, 1, tzinfo=UTC), logical("long", "timestamp-micros"), datetime(2024, 1, 1, tzinfo=UTC)),
    ("time-millis to time-micros", logical("int", "time-millis"), time(1, 2, 3), logical("long", "time-micros"), time(1, 2, 3)),
    ("the reader's logical type counts", "long", 1500, logical("long", "timestamp-millis"), datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
    ("without a logical type the number", logical("long", "timestamp-millis"), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "long", 1000),
    ("uuid from a string", "string", "00000000-0000-0000-0000-000000000001", logical("string", "uuid"), UUID(int=1)),
    ("decimal to a larger scale", logical("bytes", "decimal", precision=4, scale=1), Decimal("1.5"), logical("bytes", "decimal", precision=9, scale=3), Decimal("1.500")),
    ("decimal to a smaller scale", logical("bytes", "decimal", precision=4, scale=2), Decimal("1.50"), logical("bytes", "decimal", precision=9, scale=1), Decimal("1.5")),
    ("decimal from bytes", "bytes", b"\x0f", logical("bytes", "decimal", precision=4, scale=1), Decimal("1.5")),
    ("decimal to bytes", logical("bytes", "decimal", precision=4, scale=1), Decimal("1.5"), "bytes", b"\x0f"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("writer", "value", "reader", "expected"), [row[1:] for row in RESOLVED], ids=[row[0] for row in RESOLVED]
)
def test_what_a_reader_schema_makes_of_a_value(writer, value, reader, expected):
    """The value has the shape of the reader schema, with keys in its order."""
    payload = compile_encoder(json.dumps(writer))(value)

    found = compile_decoder(json.dumps(writer), json.dumps(reader))(payload)

    assert expected == found
    assert type(expected) is type(found)
    if isinstance(found, dict):
        assert list(expected) == list(found)


DEFAULTS = [
    ("null", "null", None, None),
    ("boolean", "boolean", True, True),
    ("int", "int", 5, 5),
    ("long written as a double", "long", 5.0, 5),
    ("double written as an int", "double", 1, 1.0),
    ("string", "string", "é", "é"),
    ("bytes", "bytes", "ÿ\u0000", b"\xff\x00"),
    ("fixed", {"type": "fixed", "name": "F", "size": 1}, "ÿ", b"\xff"),
    ("enum", enum("E", "A"), "A", "A"),
    ("array", {"type": "array", "items": "double"}, [1, 2], [1.0, 2.0]),
    ("map", {"type": "map", "values": "bytes"}, {"k": "a"}, {"k": b"a"}),
    ("record", POINT, {"x": 1}, {"x": 1}),
    ("record with defaults inside", record(("x", "int", default(7)), ("y", ["null", "int"], default(None)), name="P"), {}, {"x": 7, "y": None}),
    ("union, first branch", ["null", "string"], None, None),
    ("union, other branch", ["null", "string"], "x", "x"),
    ("date", logical("int", "date"), 0, datetime(1970, 1, 1, tzinfo=UTC).date()),
    ("decimal", logical("bytes", "decimal", precision=4, scale=2), "d", Decimal("1.00")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "written", "expected"), [row[1:] for row in DEFAULTS], ids=[row[0] for row in DEFAULTS]
)
def test_the_default_of_a_field_that_the_writer_lacks(schema, written, expected):
    """A default is converted like any other value, complete, and never shared between records."""
    decode = compile_decoder(json.dumps(record()), json.dumps(record(("a", schema, default(written)))))

    first, second = decode(b""), decode(b"")

    assert {"a": expected} == first
    assert type(expected) is type(first["a"])
    if isinstance(expected, list | dict):
        assert first["a"] is not second["a"]


def test_defaults_of_tagged_unions_are_tagged():
    """A default of a union of several types comes in the form of a value of it."""
    reader = record(("a", ["int", "string"], default("x")), ("n", ["int", "null"], default(5)))

    decode = compile_decoder(json.dumps(record()), json.dumps(reader), tagged_unions=True)

    assert decode(b"") == {"a": Branch(1, "x"), "n": 5}


def test_tags_are_the_places_in_the_readers_union():
    """A tag is the index in the reader's union: the writer's second type may be the reader's first."""
    decode = compile_decoder('["null", "int", "string"]', '["string", "long", "null"]', tagged_unions=True)

    assert Branch(1, 5) == decode(b"\x02\x0a")
    assert Branch(0, "x") == decode(b"\x04\x02x")
    assert decode(b"\x00") is None


UNRESOLVED = [
    ("string for int", "string", "x", "int", "the reader schema has int where the writer schema has string"),
    ("long for int", "long", 1, "int", "has int where the writer schema has long"),
    ("no default", record(), {}, record(("a", "int")), "field a of R is not in the writer schema and has no default"),
    ("bad default", record(), {}, record(("a", "int", default("x"))), "the default of the reader's field a of R is not valid"),
    ("default that lacks a value", record(), {}, record(("a", POINT, default({}))), "the default has no value for x"),
    ("symbol without default", enum("E", "A", "B"), "B", enum("E", "A"), "the reader's enum has no symbol B and no default"),
    ("enum of another name", enum("E", "A"), "A", enum("F", "A"), "has enum F where the writer schema has enum E"),
    ("fixed of another size", {"type": "fixed", "name": "F", "size": 1}, b"a", {"type": "fixed", "name": "F", "size": 2}, "has fixed F where"),
    ("branch that the reader lacks", ["null", "string"], "x", ["null", "int"], "has union of null, int where the writer schema has string"),
    ("null that the reader lacks", ["null", "string"], None, "string", "has string where the writer schema has null"),
    ("array for map", {"type": "array", "items": "int"}, [], {"type": "map", "values": "int"}, "has map where the writer schema has array"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("writer", "value", "reader", "says"), [row[1:] for row in UNRESOLVED], ids=[row[0] for row in UNRESOLVED]
)
def test_what_cannot_be_resolved(writer, value, reader, says):
    """The value is refused with the reason `resolution` and the two types that do not match."""
    payload = compile_encoder(json.dumps(writer))(value)

    with pytest.raises(DecodeError) as caught:
        compile_decoder(json.dumps(writer), json.dumps(reader))(payload)

    assert caught.value.reason == "resolution"
    assert says in caught.value.detail


def test_a_decimal_is_never_rounded():
    """A value with more digits than the reader's scale is refused, not rounded."""
    writer = logical("bytes", "decimal", precision=4, scale=2)
    decode = compile_decoder(json.dumps(writer), json.dumps({**writer, "scale": 1}))

    assert Decimal("1.5") == decode(b"\x00\x96")
    with pytest.raises(DecodeError, match="out of range: a decimal has more than 1 digits after the point"):
        decode(b"\x7d")


def test_only_values_that_meet_the_difference_fail():
    """Schemas may differ in parts that the data never uses: the rest decodes."""
    decode = compile_decoder(
        json.dumps(record(("a", ["null", "string", "int"]))), json.dumps(record(("a", ["null", "int"])))
    )

    assert decode(b"\x04\x0a") == {"a": 5}
    with pytest.raises(DecodeError) as caught:
        decode(b"\x02\x02x")
    assert caught.value.path == "a"


def test_recursive_records_resolve():
    """A recursive record is resolved once and read at any depth."""
    writer = record(("v", "int"), ("old", "string"), ("next", ["null", "R"]))
    reader = record(("next", ["null", "R"]), ("v", "long"), ("new", "int", default(9)))
    encode, decode = compile_encoder(json.dumps(writer)), compile_decoder(json.dumps(writer), json.dumps(reader))

    value = {"v": 1, "old": "x", "next": {"v": 2, "old": "y", "next": None}}

    assert decode(encode(value)) == {"next": {"next": None, "v": 2, "new": 9}, "v": 1, "new": 9}


def test_a_recursive_field_may_be_skipped():
    """A recursive field that the reader lacks is skipped at any depth."""
    tree = record(("v", "int"), ("kids", {"type": "array", "items": "T"}), name="T")
    writer, reader = record(("t", tree), ("z", "int")), record(("z", "int"))
    value = {"t": {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3, "kids": []}]}]}, "z": 7}

    payload = compile_encoder(json.dumps(writer))(value)

    assert compile_decoder(json.dumps(writer), json.dumps(reader))(payload) == {"z": 7}
