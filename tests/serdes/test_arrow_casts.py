"""Columns that lose information when cast to the field's type are refused."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from strata.serdes.arrow import encode_batch
from strata.serdes.errors import EncodeError

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}

# what happens, type of the field, values, type of the requested column, type found
BENT: list[tuple[str, Any, list[Any], str, str]] = [
    ("truth of a number", "boolean", [5], "bool", "int64"),
    ("a number of a truth", "int", [True], "int32", "bool"),
    ("half of a double", "float", [0.1], "float", "double"),
    ("a decimal for a double", "double", [Decimal("0.1")], "double", "decimal128(1, 1)"),
    ("a double for a decimal", DECIMAL, [0.1], "decimal128(3, 1)", "double"),
    ("digits in a text", "int", ["1"], "int32", "string"),
    ("a number for a text", "string", [1], "string", "int64"),
]


@pytest.mark.parametrize(("kind", "values", "wanted", "found"), [pytest.param(*one, id=name) for name, *one in BENT])
def test_columns_that_would_be_bent(kind: Any, values: list[Any], wanted: str, found: str) -> None:
    """A lossy cast that Arrow would make silently is refused for the whole column."""
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})

    with pytest.raises(EncodeError) as caught:
        encode_batch(pa.table({"a": values}), schema, schema_id=1)

    assert (f"expected a column of {wanted}, got {found}", "a", None) == (
        caught.value.detail,
        caught.value.path,
        caught.value.row,
    )
