"""Several statements of one custom option as one, for `normalize`: what each says becomes a part of one map.

How parts of one name go together is said by the message that the option holds: messages are merged in turn, what is
repeated becomes a list, and of other values the last one counts. Where that message is not known, it is a list.
"""

from collections.abc import Mapping, Sequence

from compat.limits import Limits
from compat.protobuf.model import SCALARS, Field, ListValue, MapValue, Message, Option, Value, map_types
from compat.protobuf.names import Known, Names

__all__ = ["OptionMerger"]


class OptionMerger:
    """Merges the options of one file, whose messages it looks into once."""

    def __init__(self, names: Names, limits: Limits):
        self._names = names
        self._limits = limits
        self._fields: dict[str, Mapping[str, Field]] = {}  # by the full name of their message

    def merged(self, options: Sequence[Option]) -> list[Option]:
        """Options of one full name as one, if each says only a part and the option may be given once."""
        first = options[0]
        field = self._names.field_of(first.name) if first.custom else None
        if len(options) == 1 or (field is not None and field.label == "repeated"):
            return list(options)
        maps = [value for value in map(_whole, options) if isinstance(value, MapValue)]
        if len(maps) < len(options):
            return list(options)
        message = self._type_of(field, first.name.rpartition(".")[0]) if field else None
        return [Option(first.name, self._maps(maps, message), first.custom)]

    def _maps(self, maps: Sequence[MapValue], message: Known | None) -> MapValue:
        self._limits.look_at_clock()
        parts: dict[str, list[Value]] = {}
        for one in maps:
            for key, value in one.entries:
                parts.setdefault(key, []).append(value)
        fields = self._fields_of(message) if message else {}
        scope = message.full if message else ""
        return MapValue(tuple((key, self._values(parts[key], fields.get(key), scope)) for key in sorted(parts)))

    def _values(self, values: list[Value], field: Field | None, scope: str) -> Value:
        if len(values) == 1:
            return values[0]
        maps = [value for value in values if isinstance(value, MapValue)]
        if field is not None and field.label != "repeated" and map_types(field.type) is None:
            message = self._type_of(field, scope)
            if message is None or message.is_enum:
                return values[-1]
            if len(maps) == len(values):
                return self._maps(maps, message)
        return ListValue(tuple(item for value in values for item in _items(value)))

    def _type_of(self, field: Field, scope: str) -> Known | None:
        """The message or enum that a field holds; None for a scalar."""
        return None if field.type in SCALARS else self._names.type_of(field.type, scope)

    def _fields_of(self, message: Known) -> Mapping[str, Field]:
        if message.full not in self._fields:
            self._fields[message.full] = _fields(message)
        return self._fields[message.full]


def _whole(option: Option) -> Value:
    """The value with the path that leads to it."""
    value = option.value
    for part in reversed(option.path):
        value = MapValue(((part, value),))
    return value


def _fields(message: Known) -> dict[str, Field]:
    definition = message.definition
    if not isinstance(definition, Message):
        return {}
    members = (field for oneof in definition.oneofs for field in oneof.fields)
    return {field.name: field for field in (*definition.fields, *members)}


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, ListValue) else (value,)
