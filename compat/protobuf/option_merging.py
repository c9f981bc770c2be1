"""The values of options in the normal form, and the merging of several statements of one custom option.

A dotted statement `(x).a.b = v` counts as the map `{a: {b: v}}`. The message of the option decides how to merge the
values of one key: sub-messages are merged, a singular scalar takes the last value, and a repeated field collects the
distinct values in order. Values of an unknown field become a list. Statements of a repeated extension stay separate,
since each adds a value; so do those of an extension that no file declares, which also keep their dots. A list of one
value is that value, and a key with an empty list is omitted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from strata.compat.limits import Limits
from strata.compat.protobuf.model import SCALARS, Field, ListValue, MapValue, Message, Option, Value, in_maps, map_types
from strata.compat.protobuf.names import Known, Names

__all__ = ["OptionMerger"]


class OptionMerger:
    """A merger for the options of one file.

    Args:
        names: The names to which options resolve.
        limits: Bounds on time.
        spelled_out: Make texts equal that say the same, for comparisons only: equal values of a repeated field all
            count, as in a descriptor, and statements of an undeclared extension are merged, as an earlier normal form
            had them.
    """

    def __init__(self, names: Names, limits: Limits, *, spelled_out: bool):
        self._names = names
        self._limits = limits
        self._spelled_out = spelled_out
        self._fields: dict[str, Mapping[str, Field]] = {}  # by the full name of their message

    def merged(self, options: Sequence[Option]) -> list[Option]:
        """Return the statements of one custom option in the normal form: one, unless they cannot be merged."""
        name = options[0].name
        field = self._names.field_of(name)
        scope = name.rpartition(".")[0]
        values = [_whole(option) for option in options]
        if field is None:
            if self._spelled_out and all(isinstance(value, MapValue) for value in values):
                return [Option(name, self._maps(values, None), custom=True)]
            return [replace(option, value=self.tidy(option.value)) for option in options]
        if field.label == "repeated":
            message = self._type_of(field, scope)
            return [Option(name, self.tidy(value, message), custom=True) for value in values]
        return [Option(name, self._values(values, field, scope), custom=True)]

    def tidy(self, value: Value, message: Known | None = None) -> Value:
        """Merge keys that occur several times inside a value; `message` is the value's type, if known."""
        if isinstance(value, MapValue):
            return self._maps((value,), message)
        if isinstance(value, ListValue):
            return _bare(tuple([self.tidy(item, message) for item in value.items]))
        return value

    def _maps(self, maps: Iterable[Value], message: Known | None) -> MapValue:
        """Merge maps key by key; the keys of the result are sorted."""
        self._limits.look_at_clock()
        parts: dict[str, list[Value]] = {}
        for part in maps:
            for key, value in part.entries if isinstance(part, MapValue) else ():
                parts.setdefault(key, []).append(value)
        entries: list[tuple[str, Value]] = []
        for key in sorted(parts):
            field, scope = self._field_of(key, message)
            value = self._values(parts[key], field, scope)
            if value != ListValue(()):
                entries.append((key, value))
        return MapValue(tuple(entries))

    def _values(self, values: Sequence[Value], field: Field | None, scope: str) -> Value:
        """Merge the values of one field into one."""
        message = self._type_of(field, scope) if field else None
        items = [item for value in values for item in _items(value)]
        if field is None or field.label == "repeated" or map_types(field.type) is not None:
            tidied = [self.tidy(item, message) for item in items]
            is_merged = len(values) > 1 and not (self._spelled_out and field)
            return _bare(tuple(dict.fromkeys(tidied)) if is_merged else tuple(tidied))
        if items and all(isinstance(item, MapValue) for item in items):
            return self._maps(items, message)
        return items[-1] if items else values[-1]

    def _field_of(self, key: str, message: Known | None) -> tuple[Field | None, str]:
        """Return the field that a key means and the scope of its type name; a key in brackets is an extension."""
        if key.startswith("["):
            return self._names.field_of(key[1:-1]), key[1:-1].rpartition(".")[0]
        if message is None:
            return None, ""
        if message.full not in self._fields:
            self._fields[message.full] = _fields(message)
        return self._fields[message.full].get(key), message.full

    def _type_of(self, field: Field, scope: str) -> Known | None:
        return None if field.type in SCALARS else self._names.type_of(field.type, scope)


def _whole(option: Option) -> Value:
    """Return the value inside maps for its path; an extension in the path gets brackets."""
    return in_maps([f"[{part[1:-1]}]" if part.startswith("(") else part for part in option.path], option.value)


def _fields(message: Known) -> dict[str, Field]:
    definition = message.definition
    return {field.name: field for field in definition.all_fields} if isinstance(definition, Message) else {}


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, ListValue) else (value,)


def _bare(items: tuple[Value, ...]) -> Value:
    return items[0] if len(items) == 1 else ListValue(items)
