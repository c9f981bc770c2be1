"""The check whether a JSON value is a legal default for a type.

Avro Java checks a default twice. The first check is at the field: a type that is not defined up to there counts as a
record without fields, so only an object fits it. The second check uses the real types, once every name is known. A
record that contains the field is not complete at that moment and cannot check an object, so the schema is refused.
This module does the same, but repeats the check only for fields whose first answer depended on an undefined type.

A union default may belong to any branch, not only to the first.
"""

from collections.abc import Callable, Container, Mapping
from typing import Final

from strata.compat.avro import model
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.schema import SchemaParseError

__all__ = ["DefaultCheck", "accepts"]

_INT: Final = range(-(2**31), 2**31)
_LONG: Final = range(-(2**63), 2**63)


def _is_text(value: model.Json) -> bool:
    return isinstance(value, str)


def _is_number(value: model.Json) -> bool:
    return type(value) in (int, float)


_SCALARS: Final[Mapping[str, Callable[[model.Json], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int and value in _INT,
    "long": lambda value: type(value) is int and value in _LONG,
    "float": _is_number,
    "double": _is_number,
    "string": _is_text,
    "bytes": _is_text,
    "enum": _is_text,  # any text, as in Avro Java, even if it is not one of the symbols
    "fixed": _is_text,
}


def accepts(node: model.Node, value: model.Json, names: model.Names, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether a value is a legal default for a type, when all names are known.

    Args:
        node: The type.
        value: The default, as a JSON value.
        names: The named types to which references lead.
        limits: Bounds on time.

    Raises:
        KeyError: A reference's name is not in `names`.
        OutOfTime: The time of `limits` ran out.
    """
    return DefaultCheck(names, limits).accepts(node, value)


class DefaultCheck:
    """The check of one value; afterwards `undefined_seen` says whether the answer depended on an undefined type.

    Args:
        names: The named types that are known.
        limits: Bounds on time.
        undefined: The object ids of references to types that are not defined yet.
        unfinished: The full names of records that are not complete, because the field is inside them.
    """

    def __init__(
        self,
        names: model.Names,
        limits: Limits,
        *,
        undefined: Container[int] = (),
        unfinished: frozenset[str] = frozenset(),
    ):
        self._names = names
        self._limits = limits
        self._undefined = undefined
        self._unfinished = unfinished
        self._known: dict[tuple[int, int], bool | None] = {}
        self.undefined_seen = False

    def accepts(self, node: model.Node, value: model.Json) -> bool:
        """Return whether the value fits the type.

        Raises:
            SchemaParseError: The answer depends on a record that is not complete.
            OutOfTime: The time of the limits ran out.
        """
        self._limits.look_at_clock()
        if isinstance(node, model.Reference):
            if id(node) in self._undefined:
                self.undefined_seen = True
                return isinstance(value, dict)
            node = self._names[node.full]
        if isinstance(node, model.UnionType):
            return any(self.accepts(branch, value) for branch in node.branches)
        if isinstance(node, model.ArrayType):
            return isinstance(value, list) and all(self.accepts(node.items, item) for item in value)
        if isinstance(node, model.MapType):
            return isinstance(value, dict) and all(self.accepts(node.values, item) for item in value.values())
        if isinstance(node, model.RecordType):
            return isinstance(value, dict) and self._record_accepts(node, value)
        return _SCALARS[node.kind if isinstance(node, model.PrimitiveType) else type(node).kind](value)

    def _record_accepts(self, record: model.RecordType, value: dict[str, model.Json]) -> bool:
        """Check each pair of record and value once, so that defaults inside defaults terminate."""
        if record.name.full in self._unfinished:
            raise SchemaParseError(f"A default inside {record.name.full} cannot use the fields of {record.name.full}")
        key = (id(record), id(value))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = all(self._field_accepts(field, value) for field in record.fields)
        return self._known[key] is True

    def _field_accepts(self, field: model.Field, value: dict[str, model.Json]) -> bool:
        item = value.get(field.name, field.default)
        return not isinstance(item, model.Missing) and self.accepts(field.type, item)
