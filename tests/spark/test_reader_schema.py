"""A reader schema is written out without a change of meaning, and reduced to chosen columns."""

import json
from typing import Any

import pytest

from strata.serdes.avro.projection import project, write
from strata.serdes.avro.schema import describe, parse


def _record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


ADDRESS = _record({"name": "street", "type": "string"}, name="Address")
ORDER = _record(
    {"name": "ship_to", "type": ADDRESS},
    {"name": "bill_to", "type": ["null", "Address"], "default": None, "aliases": ["invoice_to"]},
    {"name": "id", "type": "long", "default": 7},
    name="shop.v1.Order",
    aliases=["Purchase", "other.Purchase"],
)

# name, schema, canonical text expected
WRITTEN: list[tuple[str, Any, Any]] = [
    ("primitive", "string", "string"),
    ("logical type", {"type": "int", "logicalType": "date"}, {"type": "int", "logicalType": "date"}),
    ("logical type that Spark has not", {"type": "string", "logicalType": "uuid"}, "string"),
    (
        "decimal",
        {"type": "bytes", "logicalType": "decimal", "precision": 4},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 0},
    ),
    (
        "enum with a default",
        {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "B"},
        {"type": "enum", "name": "E", "namespace": "", "aliases": [], "symbols": ["A", "B"], "default": "B"},
    ),
    (
        "fixed inside a namespace that it does not share",
        _record(
            {"name": "f", "type": {"type": "fixed", "name": "F", "namespace": "", "size": 2}},
            {"name": "g", "type": ".F"},
            name="n.R",
        ),
        {
            "type": "record",
            "name": "n.R",
            "namespace": "",
            "aliases": [],
            "fields": [
                {
                    "name": "f",
                    "type": {"type": "fixed", "name": "F", "namespace": "", "aliases": [], "size": 2},
                    "aliases": [],
                },
                {"name": "g", "type": ".F", "aliases": []},
            ],
        },
    ),
    (
        "names, aliases and defaults",
        ORDER,
        {
            "type": "record",
            "name": "shop.v1.Order",
            "namespace": "",
            "aliases": ["shop.v1.Purchase", "other.Purchase"],
            "fields": [
                {
                    "name": "ship_to",
                    "type": {
                        "type": "record",
                        "name": "shop.v1.Address",
                        "namespace": "",
                        "aliases": [],
                        "fields": [{"name": "street", "type": "string", "aliases": []}],
                    },
                    "aliases": [],
                },
                {
                    "name": "bill_to",
                    "type": ["null", "shop.v1.Address"],
                    "aliases": ["invoice_to"],
                    "default": None,
                },
                {"name": "id", "type": "long", "aliases": [], "default": 7},
            ],
        },
    ),
]


@pytest.mark.parametrize(("schema", "expected"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_write(schema: Any, expected: Any) -> None:
    """Every name is written in full, everything that decoding needs is kept, and writing again changes nothing."""
    text = write(parse(json.dumps(schema)))

    assert expected == json.loads(text)
    assert text == write(parse(text))


def test_project_takes_definitions_along() -> None:
    """A column whose type is defined in an omitted column brings the definition; columns keep the requested order."""
    projected = project(parse(json.dumps(ORDER)), ["id", "bill_to"])

    read = parse(write(projected))

    assert ["id", "bill_to"] == [one.name for one in read.fields]
    assert "union of null, record shop.v1.Address" == describe(read.fields[1].type)


# name, schema, columns, message
REFUSED: list[tuple[str, Any, Any, str]] = [
    (
        "unknown column",
        ORDER,
        ["id", "prize"],
        "no column prize; the reader schema shop.v1.Order has ship_to, bill_to, id",
    ),
    ("no column", ORDER, [], "no column is chosen"),
    ("not a record", "string", ["id"], "`columns` needs a record as reader schema"),
    ("a text", ORDER, "id", "a list of field names, not 'id'"),
    ("numbers", ORDER, [1], r"a list of field names, not \[1\]"),
]


@pytest.mark.parametrize(
    ("schema", "columns", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_project_refuses(schema: Any, columns: Any, message: str) -> None:
    """A bad choice of columns is refused, with the available ones."""
    with pytest.raises((ValueError, TypeError), match=message):
        project(parse(json.dumps(schema)), columns)
