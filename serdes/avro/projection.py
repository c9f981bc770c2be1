"""The projection of a reader schema to some columns, and schemas as text.

Rules of this file: nodes in, nodes or text out; no registry.
"""

import json
from collections.abc import Sequence

from strata.serdes.avro.schema import MISSING, Array, Enum, Field, Fixed, Logical, Map, Node, Primitive, Record, Union

__all__ = ["chosen", "project", "write"]

_NOT_CHECKED = frozenset({"uuid"})
"""Logical types without a column type: columns show the underlying type, so checks gain nothing."""


def project(schema: Node, columns: Sequence[str]) -> Node:
    """Return a record schema with some of its fields; the others will be skipped, not decoded.

    Args:
        schema: the reader schema, a record.
        columns: field names, in the wanted order.

    Raises:
        TypeError: If `columns` is not a list of names.
        ValueError: If the schema is not a record, a name is unknown or there are no names.
    """
    if isinstance(columns, str) or not all(isinstance(name, str) for name in columns):
        raise TypeError(f"columns is a list of field names, not {columns!r}")
    if not isinstance(schema, Record):
        raise ValueError("`columns` needs a record as reader schema")  # noqa: TRY004
    fields = {field.name: field for field in schema.fields}
    names = chosen(list(fields), columns, f"the reader schema {schema.name}")
    return Record(schema.name, schema.aliases, [fields[name] for name in names])


def chosen(known: Sequence[str], columns: Sequence[str], owner: str) -> list[str]:
    """Return the names of the chosen columns, in their order and without duplicates.

    Args:
        known: the names of all columns.
        columns: the names asked for.
        owner: what has the columns, for the error.

    Raises:
        ValueError: If a name is unknown, or no column is chosen.
    """
    unknown = [name for name in columns if name not in known]
    if unknown or not columns:
        problem = f"no column {', '.join(unknown)}" if unknown else "no column is chosen"
        raise ValueError(f"{problem}; {owner} has {', '.join(known)}")
    return list(dict.fromkeys(columns))


def write(schema: Node) -> str:
    """Return a schema text that parses to the same schema."""
    return json.dumps(_SchemaWriter().tree(schema))


class _SchemaWriter:
    """A writer of schemas as JSON: each named type in full where it comes first, later by name."""

    def __init__(self) -> None:
        self._written: set[str] = set()

    def tree(self, node: Node) -> object:
        match node:
            case Primitive():
                logical = _logical(node.logical)
                return {"type": str(node.kind), **logical} if logical else str(node.kind)
            case Array():
                return {"type": "array", "items": self.tree(node.items)}
            case Map():
                return {"type": "map", "values": self.tree(node.values)}
            case Union():
                return [self.tree(branch) for branch in node.branches]
            case Record() | Enum() | Fixed() if node.name in self._written:
                return _reference(node.name)
        self._written.add(node.name)
        aliases = [_reference(alias) for alias in node.aliases]
        return {"name": node.name, "namespace": "", "aliases": aliases, **self._definition(node)}

    def _definition(self, node: Record | Enum | Fixed) -> dict[str, object]:
        match node:
            case Record():
                return {"type": "record", "fields": [self._field(field) for field in node.fields]}
            case Enum():
                default = {} if node.default is None else {"default": node.default}
                return {"type": "enum", "symbols": list(node.symbols), **default}
            case Fixed():
                return {"type": "fixed", "size": node.size, **_logical(node.logical)}

    def _field(self, field: Field) -> dict[str, object]:
        default = {} if field.default is MISSING else {"default": field.default}
        return {"name": field.name, "type": self.tree(field.type), "aliases": list(field.aliases), **default}


def _reference(name: str) -> str:
    """Return a full name; a leading dot marks one without a namespace."""
    return name if "." in name else f".{name}"


def _logical(logical: Logical | None) -> dict[str, object]:
    if logical is None or logical.name in _NOT_CHECKED:
        return {}
    numbers = {"precision": logical.precision, "scale": logical.scale} if logical.name == "decimal" else {}
    return {"logicalType": logical.name, **numbers}
