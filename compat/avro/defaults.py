"""Is a JSON value a legal default for a type?

Avro Java asks twice. First where the field stands: a type that is not defined up to there counts as a record without
fields, so only an object fits it. Then, once every name is known, with the real types; a record whose fields are not
all known at that moment (the field is inside it) cannot judge an object, and the schema is refused.
Both questions are asked here; the second only of fields whose first answer depended on an undefined type.

A union default may belong to any branch, not only to the first.
"""

from collections.abc import Callable, Container, Mapping
from typing import Final

from compat.avro.model import (
    ArrayType,
    Field,
    Json,
    MapType,
    Missing,
    Names,
    Node,
    PrimitiveType,
    RecordType,
    Reference,
    UnionType,
)
from compat.limits import DEFAULT_LIMITS, Limits
from compat.schema import SchemaParseError

__all__ = ["DefaultCheck", "accepts"]

_INT: Final = range(-(2**31), 2**31)
_LONG: Final = range(-(2**63), 2**63)


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_number(value: Json) -> bool:
    return type(value) in (int, float)


_SCALARS: Final[Mapping[str, Callable[[Json], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int and value in _INT,
    "long": lambda value: type(value) is int and value in _LONG,
    "float": _is_number,
    "double": _is_number,
    "string": _is_text,
    "bytes": _is_text,
    "enum": _is_text,  # any text: that it is one of the symbols is not asked
    "fixed": _is_text,
}


def accepts(node: Node, value: Json, names: Names, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the value is a legal default for the type, all names being known."""
    return DefaultCheck(names, limits).accepts(node, value)


class DefaultCheck:
    """One question put to one type; `undefined_seen` tells whether the answer depended on a type not yet defined."""

    def __init__(
        self,
        names: Names,
        limits: Limits,
        *,
        undefined: Container[int] = (),
        unfinished: frozenset[str] = frozenset(),
    ):
        self._names = names
        self._limits = limits
        self._undefined = undefined  # the ids of references to such types
        self._unfinished = unfinished
        self._known: dict[tuple[int, int], bool | None] = {}
        self.undefined_seen = False

    def accepts(self, node: Node, value: Json) -> bool:
        """Whether the value fits the type."""
        self._limits.look_at_clock()
        if isinstance(node, Reference):
            if id(node) in self._undefined:
                self.undefined_seen = True
                return isinstance(value, dict)
            node = self._names[node.full]
        if isinstance(node, UnionType):
            return any(self.accepts(branch, value) for branch in node.branches)
        if isinstance(node, ArrayType):
            return isinstance(value, list) and all(self.accepts(node.items, item) for item in value)
        if isinstance(node, MapType):
            return isinstance(value, dict) and all(self.accepts(node.values, item) for item in value.values())
        if isinstance(node, RecordType):
            return isinstance(value, dict) and self._record_accepts(node, value)
        return _SCALARS[node.kind if isinstance(node, PrimitiveType) else type(node).kind](value)

    def _record_accepts(self, record: RecordType, value: dict[str, Json]) -> bool:
        """Judge once per record and value: defaults inside defaults would otherwise be followed without end."""
        if record.name.full in self._unfinished:
            raise SchemaParseError(f"A default refers to the fields of {record.name.full}, inside which it stands")
        key = (id(record), id(value))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = all(self._field_accepts(field, value) for field in record.fields)
        return self._known[key] is True

    def _field_accepts(self, field: Field, value: dict[str, Json]) -> bool:
        given = value.get(field.name, field.default)
        return not isinstance(given, Missing) and self.accepts(field.type, given)
