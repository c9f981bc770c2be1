"""The rules of encoding: a named row each, with what every executor of Spark has to make of its only row.

`tests/spark/test_encode_rules.py` runs the rows of a format through each executor, all of them in one query.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from strata.serdes.client import Schema

__all__ = ["Answer", "Rule", "row"]

Answer: TypeAlias = bytes | tuple[str, str] | None
"""A payload, or reason and path of a refusal; None for a null row."""


class Rule(NamedTuple):
    """A value, and what it is in a format."""

    name: str
    schema: Schema
    column: pa.Array
    """The value, in an array of its own."""
    answer: Answer
    """With the indexes of its message before the payload if it is Protobuf."""
    options: Mapping[str, Any] = MappingProxyType({})
    """More options of `encode`."""


def row(fields: Mapping[str, tuple[pa.DataType, Any]]) -> pa.Array:
    """Return an array of one struct.

    Args:
        fields: type and value by name.
    """
    columns = [pa.array([value], type_) for type_, value in fields.values()]
    return pa.StructArray.from_arrays(columns, names=list(fields))
