"""Reader schemas map to Spark types, and decoded arrays have exactly those types."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql.pandas.types import to_arrow_type

from strata.serdes.arrow import BatchDecoder, Style
from strata.serdes.avro.projection import write
from strata.serdes.avro.schema import parse
from strata.spark_udfs.decoding.avro_types import type_of
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema


def _logical(kind: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def _record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def _fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size, **more}


COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
POINT = _record(_field("x", "int"), _field("y", ["null", "int"]), name="Point")
INSTANT = datetime(2026, 3, 1, 12, 30, 0, 123000, UTC)
LOCAL = datetime(2026, 3, 1, 12, 30, 0, 123000)  # noqa: DTZ001 - a local timestamp has no zone
MICRO_INSTANT = INSTANT.replace(microsecond=123456)

# name, reader schema, Spark type, values as fastavro writes them, values as Arrow gives them back
TYPES: list[tuple[str, Any, str, list[Any], list[Any]]] = [
    ("null", "null", "void", [None], [None]),
    ("boolean", "boolean", "boolean", [True, False], [True, False]),
    ("int", "int", "int", [0, -1, 2**31 - 1, -(2**31)], [0, -1, 2**31 - 1, -(2**31)]),
    ("long", "long", "bigint", [2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
    ("float", "float", "float", [0.5, float("inf")], [0.5, float("inf")]),
    ("double", "double", "double", [0.1, -1e300], [0.1, -1e300]),
    ("bytes", "bytes", "binary", [], []),
    ("string", "string", "string", ["", "zürich 🚋"], ["", "zürich 🚋"]),
    ("enum", COLOURS, "string", ["RED", "GREEN"], ["RED", "GREEN"]),
    ("fixed", _fixed(2), "binary", [b"\0\xff"], [b"\0\xff"]),
    ("date", _logical("int", "date"), "date", [date(1969, 12, 31)], [date(1969, 12, 31)]),
    ("time-millis", _logical("int", "time-millis"), "int", [86_399_999], [86_399_999]),
    ("time-micros", _logical("long", "time-micros"), "bigint", [1], [1]),
    ("timestamp-millis", _logical("long", "timestamp-millis"), "timestamp", [INSTANT], [INSTANT]),
    ("timestamp-micros", _logical("long", "timestamp-micros"), "timestamp", [MICRO_INSTANT], [MICRO_INSTANT]),
    ("timestamp-nanos", _logical("long", "timestamp-nanos"), "bigint", [17], [17]),
    ("local-timestamp-millis", _logical("long", "local-timestamp-millis"), "timestamp_ntz", [LOCAL], [LOCAL]),
    ("local-timestamp-micros", _logical("long", "local-timestamp-micros"), "timestamp_ntz", [LOCAL], [LOCAL]),
    ("local-timestamp-nanos", _logical("long", "local-timestamp-nanos"), "bigint", [17], [17]),
    ("uuid is not checked", _logical("string", "uuid"), "string", ["not-a-uuid"], ["not-a-uuid"]),
    ("uuid in a fixed", _fixed(16, logicalType="uuid"), "binary", [b"0123456789abcdef"], [b"0123456789abcdef"]),
    ("duration", _fixed(12, logicalType="duration"), "binary", [b"0123456789ab"], [b"0123456789ab"]),
    (
        "decimal in a fixed",
        _fixed(16, logicalType="decimal", precision=38, scale=10),
        "decimal(38,10)",
        [Decimal("-1234567890123456789012345678.0123456789")],
        [Decimal("-1234567890123456789012345678.0123456789")],
    ),
    (
        "decimal in bytes",
        _record(_field("d", _logical("bytes", "decimal", precision=9, scale=2))),
        "struct<d:decimal(9,2)>",
        [{"d": Decimal("-12.30")}, {"d": Decimal("9999999.99")}],
        [{"d": Decimal("-12.30")}, {"d": Decimal("9999999.99")}],
    ),
    (
        "decimal that Avro ignores",
        _record(_field("d", _logical("bytes", "decimal", precision=2, scale=9))),
        "struct<d:binary>",
        [],
        [],
    ),
    ("nullable", ["null", "int"], "int", [None, 7], [None, 7]),
    ("nullable, null last", ["string", "null"], "string", ["a", None], ["a", None]),
    ("union of one", ["int"], "int", [7], [7]),
    ("union of null alone", ["null"], "void", [None], [None]),
    ("int and long", ["int", "long"], "bigint", [1, 2**40], [1, 2**40]),
    ("nullable long and int", ["null", "long", "int"], "bigint", [1, None], [1, None]),
    ("float and double", ["float", "double"], "double", [0.5], [0.5]),
    (
        "union of two",
        ["int", "string"],
        "struct<member0:int,member1:string>",
        [1, "a"],
        [{"member0": 1, "member1": None}, {"member0": None, "member1": "a"}],
    ),
    (
        "nullable union of three, null in the middle",
        ["string", "null", POINT, COLOURS],
        "struct<member0:string,member1:struct<x:int,y:int>,member2:string>",
        ["s", None, ("Point", {"x": 1, "y": None}), ("Colour", "RED")],
        [
            {"member0": "s", "member1": None, "member2": None},
            None,
            {"member0": None, "member1": {"x": 1, "y": None}, "member2": None},
            {"member0": None, "member1": None, "member2": "RED"},
        ],
    ),
    ("array", {"type": "array", "items": "int"}, "array<int>", [[1, 2], [], [3]], [[1, 2], [], [3]]),
    (
        "array of nullable arrays",
        {"type": "array", "items": ["null", {"type": "array", "items": ["null", "int"]}]},
        "array<array<int>>",
        [[None, [1, None], []], []],
        [[None, [1, None], []], []],
    ),
    (
        "map",
        {"type": "map", "values": "double"},
        "map<string,double>",
        [{"a": 1.0, "b": 2.0}, {}],
        [[("a", 1.0), ("b", 2.0)], []],
    ),
    (
        "map of nullable maps",
        {"type": "map", "values": ["null", {"type": "map", "values": "int"}]},
        "map<string,map<string,int>>",
        [{"a": None, "b": {"c": 1}}],
        [[("a", None), ("b", [("c", 1)])]],
    ),
    (
        "nullable record of everything nested",
        [
            "null",
            _record(
                _field("points", {"type": "array", "items": POINT}),
                _field("by", {"type": "map", "values": POINT.get("name")}),
            ),
        ],
        "struct<points:array<struct<x:int,y:int>>,by:map<string,struct<x:int,y:int>>>",
        [None, {"points": [{"x": 1, "y": 2}], "by": {"k": {"x": 3, "y": None}}}],
        [None, {"points": [{"x": 1, "y": 2}], "by": [("k", {"x": 3, "y": None})]}],
    ),
    ("record without fields", _record(), "struct<>", [{}, {}], [{}, {}]),
]


def _payload(schema: Any, value: Any) -> bytes:
    payload = io.BytesIO()
    fastavro.schemaless_writer(payload, fastavro.parse_schema(schema), value)
    return payload.getvalue()


@pytest.mark.parametrize(
    ("schema", "spark", "values", "expected"), [row[1:] for row in TYPES], ids=[row[0] for row in TYPES]
)
def test_type(schema: Any, spark: str, values: list[Any], expected: list[Any]) -> None:
    """A reader schema has its Spark type, and fastavro's output is decoded to an Arrow array of that type."""
    reader = write(parse(json.dumps(schema)))
    found = type_of(parse(reader))

    assert spark == found.simpleString()

    decoder = BatchDecoder(reader, {1: json.dumps(schema)}, style=Style.SPARK)
    array = decoder.array(decoder.rows([b"\0\0\0\0\1" + _payload(schema, value) for value in values]))

    assert to_arrow_type(found) == array.type
    assert expected == array.to_pylist()


@pytest.mark.parametrize(
    ("schema", "nullable"), [("int", False), (["int"], False), (["null", "int"], True), ("null", True)]
)
def test_nullable(schema: Any, nullable: bool) -> None:
    """A field is nullable where the schema has a null."""
    assert nullable == type_of(parse(json.dumps(_record(_field("value", schema)))))["value"].nullable


def test_members_are_nullable() -> None:
    """All members of a union's struct are nullable, since only one is set; the fields inside follow the schema."""
    found = type_of(parse(json.dumps(_record(_field("u", ["string", POINT])))))

    fields = found["u"].dataType.fields

    assert [("member0", True), ("member1", True)] == [(one.name, one.nullable) for one in fields]
    assert [("x", False), ("y", True)] == [(one.name, one.nullable) for one in fields[1].dataType.fields]
    assert not found["u"].nullable


NODE = _record(_field("value", "int"), _field("next", ["null", "Node"], default=None), name="Node")
TREE = _record(_field("children", {"type": "array", "items": {"type": "map", "values": "Tree"}}), name="Tree")
MUTUAL = _record(_field("b", _record(_field("a", ["null", "A"]), name="B")), name="A")
WIDE = _logical("bytes", "decimal", precision=39, scale=0)

# name, reader schema, path, the message
REFUSED: list[tuple[str, Any, str, str]] = [
    ("record in itself", NODE, "next", "the record Node contains itself; leave the field out by `columns`"),
    ("record in an array of maps of itself", TREE, "children[]{}", "the record Tree contains itself"),
    ("records in each other", MUTUAL, "b.a", "the record A contains itself"),
    ("record in a member of a union", _record(_field("u", ["int", NODE]), name="U"), "u|1.next", "contains itself"),
    ("precision over 38", _record(_field("d", WIDE)), "d", "a decimal of precision 39, and Spark allows 38"),
    ("precision over 38 as a whole", WIDE, "", "as a whole: a decimal of precision 39"),
]


@pytest.mark.parametrize(("schema", "path", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(schema: Any, path: str, message: str) -> None:
    """A schema that Spark cannot express is refused with the place and the alternative."""
    with pytest.raises(UnsupportedSchema) as caught:
        type_of(parse(json.dumps(schema)))

    assert path == caught.value.path
    assert message in str(caught.value)


def test_multiplying_records_are_refused() -> None:
    """Records that double at every level are refused before they fill the memory."""
    schema: Any = "int"
    for depth in range(40):
        inner = schema if depth == 0 else f"R{depth - 1}"
        schema = _record(_field("a", schema), _field("b", inner), name=f"R{depth}")

    with pytest.raises(UnsupportedSchema, match="more than 10000 types"):
        type_of(parse(json.dumps(schema)))
