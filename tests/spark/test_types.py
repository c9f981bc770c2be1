"""Reader schemas map to Spark types, and decoded arrays have exactly those types."""

import json
from typing import Any

import pytest

from strata.serdes.avro.schema import parse
from strata.spark_udfs.decoding.avro_types import type_of
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema


def _logical(kind: Any, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def _record(*fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


POINT = _record(_field("x", "int"), _field("y", ["null", "int"]), name="Point")


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
