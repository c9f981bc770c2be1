"""Merging of several statements of one custom option into one value, for `normalize`.

A dotted statement `(x).a.b = v` counts as the map `{a: {b: v}}`. The message of the option decides how to merge the
values of one key: sub-messages are merged, a singular scalar takes the last value, and a repeated field collects the
distinct values in order. If the message is unknown, the values become a list. Statements of a repeated extension stay
separate, since each adds a value. An option with one statement keeps its form.
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
        spelled_out: Write options as in a descriptor: without dotted names, and with a list for each repeated field.
    """

    def __init__(self, names: Names, limits: Limits, *, spelled_out: bool):
        self._names = names
        self._limits = limits
        self._spelled_out = spelled_out
        self._fields: dict[str, Mapping[str, Field]] = {}  # by the full name of their message

    def merged(self, options: Sequence[Option]) -> list[Option]:
        """Merge the custom options of one full name into one statement; keep several if they cannot be merged."""
        name = options[0].name
        field = self._names.field_of(name)
        scope = name.rpartition(".")[0]
        values = [_whole(option) for option in options]
        if field is None:
            is_one = len(values) > 1 and all(isinstance(value, MapValue) for value in values)
            whole = [self._maps(values, None)] if is_one else [self.tidy(value) for value in values]
        elif field.label == "repeated":
            message = self._type_of(field, scope)
            whole = [self.tidy(value, message) for value in values]
        else:
            whole = [self._values(values, field, scope)]
        if self._spelled_out or len(whole) < len(options):
            return [Option(name, value, custom=True) for value in whole]
        return [
            replace(option, value=_end(value, len(option.path))) for option, value in zip(options, whole, strict=True)
        ]

    def repeats(self, name: str) -> bool:
        """Return whether the extension with a full name is repeated."""
        field = self._names.field_of(name)
        return field is not None and field.label == "repeated"

    def tidy(self, value: Value, message: Known | None = None) -> Value:
        """Merge keys that occur several times inside a value; `message` is the value's type, if known."""
        if isinstance(value, MapValue):
            return self._maps((value,), message)
        if isinstance(value, ListValue):
            return ListValue(tuple([self.tidy(item, message) for item in value.items]))
        return value

    def _maps(self, maps: Iterable[Value], message: Known | None) -> MapValue:
        """Merge maps key by key; the keys of the result are sorted."""
        self._limits.look_at_clock()
        parts: dict[str, list[Value]] = {}
        for one in maps:
            for key, value in one.entries if isinstance(one, MapValue) else ():
                parts.setdefault(key, []).append(value)
        entries: list[tuple[str, Value]] = []
        for key in sorted(parts):
            field, scope = self._field_of(key, message)
            entries.append((key, self._values(parts[key], field, scope)))
        return MapValue(tuple(entries))

    def _values(self, values: Sequence[Value], field: Field | None, scope: str) -> Value:
        """Merge the values of one field into one."""
        message = self._type_of(field, scope) if field else None
        items = [item for value in values for item in _items(value)]
        if field is None or field.label == "repeated" or map_types(field.type) is not None:
            if self._spelled_out and field is not None:
                return ListValue(tuple([self.tidy(item, message) for item in items]))
            if len(values) == 1:
                return self.tidy(values[0], message)
            return ListValue(tuple(dict.fromkeys(self.tidy(item, message) for item in items)))
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
        """Return the message or enum that is the type of a field, or None for a scalar or a map."""
        return None if field.type in SCALARS else self._names.type_of(field.type, scope)


def _whole(option: Option) -> Value:
    """Return the value inside maps for its path; an extension in the path gets brackets."""
    return in_maps([f"[{part[1:-1]}]" if part.startswith("(") else part for part in option.path], option.value)


def _end(value: Value, length: int) -> Value:
    """Return the value without the maps for a path of this length; undo `_whole`."""
    for _ in range(length):
        if isinstance(value, MapValue):
            value = value.entries[0][1]
    return value


def _fields(message: Known) -> dict[str, Field]:
    definition = message.definition
    return {field.name: field for field in definition.all_fields} if isinstance(definition, Message) else {}


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, ListValue) else (value,)
