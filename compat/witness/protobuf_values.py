"""Messages of Google's library by their descriptors: small ones, comparisons by tag, and their JSON."""

import base64
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.compat.difference.edits import cut
from strata.strict_json import Json

__all__ = ["Write", "candidates", "is_kept", "is_set", "new", "put", "shown", "type_text", "value_of"]

Write: TypeAlias = Callable[[object], None]
"""Sets a part of a message."""

_MOST_SYMBOLS: Final = 50
_DEEPEST: Final = 100  # messages inside each other
_SCALARS: Final[Mapping[int, tuple[object, ...]]] = {
    **dict.fromkeys((FieldDescriptor.CPPTYPE_INT32,), (1, -1, 2**31 - 1, -(2**31))),
    **dict.fromkeys((FieldDescriptor.CPPTYPE_INT64,), (1, -1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, -(2**63))),
    **dict.fromkeys((FieldDescriptor.CPPTYPE_UINT32,), (1, 2**31, 2**32 - 1)),
    **dict.fromkeys((FieldDescriptor.CPPTYPE_UINT64,), (1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1)),
    **dict.fromkeys((FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT), (1.0, 0.5, -1.5)),
    FieldDescriptor.CPPTYPE_BOOL: (True,),
}
_TEXTS: Final = ("a", "é", "\b\x01", "\n\x01a", "")
_BYTES: Final = (b"a", b"\xff", b"\b\x01", b"\b\x96\x01", b"")
_ZEROS: Final[Mapping[int, object]] = {
    **dict.fromkeys(_SCALARS, 0),
    FieldDescriptor.CPPTYPE_BOOL: False,
    FieldDescriptor.CPPTYPE_FLOAT: 0.0,
    FieldDescriptor.CPPTYPE_DOUBLE: 0.0,
}


def new(message_type: Descriptor, depth: int = 0) -> Any:
    """Return the smallest message of a type: only required fields are set; None if there is none."""
    message = GetMessageClass(message_type)()
    for field in message_type.fields:
        if not field.is_required:
            continue
        if field.message_type is None:
            setattr(message, field.name, _zero(field))
        else:
            inner = None if depth > _DEEPEST else new(_kind(field), depth + 1)
            if inner is None:
                return None
            put(message, field, inner)
    return message


def _zero(field: FieldDescriptor) -> object:
    if field.enum_type is not None:
        return field.enum_type.values[0].number
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return b"" if field.type == FieldDescriptor.TYPE_BYTES else ""
    return _ZEROS[field.cpp_type]


def put(message: object, field: FieldDescriptor, inner: Message) -> None:
    """Set a field that holds messages, or add a message to it; an inner message of a map is its entry."""
    held = getattr(message, field.name)
    if _is_map(field):
        key, value = (_kind(field).fields_by_number[number] for number in (1, 2))
        name = getattr(inner, key.name)
        if value.message_type is None:
            held[name] = getattr(inner, value.name)
        else:
            held[name].CopyFrom(getattr(inner, value.name))
    elif field.is_repeated:
        held.add().CopyFrom(inner)
    else:
        held.SetInParent()
        held.CopyFrom(inner)


def candidates(field: FieldDescriptor, target: FieldDescriptor | None = None) -> Iterator[Write]:
    """Yield ways to set a field to a small value that readers may take for another one, the most usual first."""
    if field.message_type is not None:
        yield from _messages(field, target)
        return
    values = _values(field, target)
    if field.is_repeated:
        for value in values:
            yield partial(_extend, field.name, [value])
        for value in values:
            yield partial(_extend, field.name, [value, value])
        yield partial(_extend, field.name, [*values[:2]])
    else:
        for value in values:
            yield partial(_set, field.name, value)
        if field.has_presence:
            yield partial(_set, field.name, _zero(field))


def _messages(field: FieldDescriptor, target: FieldDescriptor | None) -> Iterator[Write]:
    """Yield ways to set a field that holds messages: an empty one, then one with each of its fields."""
    if _is_map(field):
        yield from _entries(field, target)
        return
    message_type = _kind(field)
    other = target.message_type if target is not None else None
    empty = new(message_type)
    if empty is None:
        return
    yield partial(_put_copies, field, [empty])
    if field.is_repeated:
        yield partial(_put_copies, field, [empty, empty])
    for inner in message_type.fields:
        if inner.message_type is not None:
            continue
        aim = other.fields_by_number.get(inner.number) if other is not None else None
        for write in candidates(inner, aim):
            held = new(message_type)
            write(held)
            yield partial(_put_copies, field, [held])


def _entries(field: FieldDescriptor, target: FieldDescriptor | None) -> Iterator[Write]:
    """Yield ways to add one entry to a map: usual keys with each value, then other keys with a usual value."""
    entry_type, other = _kind(field), None if target is None else target.message_type
    parts: list[list[Write]] = []
    for number in (1, 2):
        part, aim = entry_type.fields_by_number[number], None if other is None else other.fields_by_number.get(number)
        parts.append([*candidates(part, aim)])
    for key, value in [
        *((parts[0][0], member) for member in parts[1]),
        *((member, parts[1][0]) for member in parts[0][1:]),
    ]:
        held = new(entry_type)
        key(held)
        value(held)
        yield partial(_put_copies, field, [held])


def _put_copies(field: FieldDescriptor, held: Sequence[Message], message: object) -> None:
    for copy in held:
        put(message, field, copy)


def _set(name: str, value: object, message: object) -> None:
    setattr(message, name, value)


def _extend(name: str, values: Sequence[object], message: object) -> None:
    getattr(message, name).extend(values)


def _values(field: FieldDescriptor, target: FieldDescriptor | None) -> Sequence[object]:
    if field.enum_type is not None:
        known = target.enum_type if target is not None else None
        symbols = field.enum_type.values
        lacking = [symbol for symbol in symbols if known is not None and symbol.number not in known.values_by_number]
        others = [symbol for symbol in symbols if symbol.number and symbol not in lacking]
        numbers = [symbol.number for symbol in [*lacking, *others, *symbols[:1]][:_MOST_SYMBOLS]]
        # A reader of an open enum takes any number, and zero is often not written.
        return numbers if numbers[:1] != [0] or field.enum_type.is_closed else [1, *numbers]
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _BYTES if field.type == FieldDescriptor.TYPE_BYTES else _TEXTS
    return _SCALARS[field.cpp_type]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_set(message: Message, field: FieldDescriptor) -> bool:
    """Return whether readers of a message see a value of a field."""
    return not field.has_presence or message.HasField(field.name)


def is_kept(before: Any, after: Any, number: int) -> bool:
    """Return whether a reader has the value of a field, and has it set if it was set; values are compared by tag."""
    source, field = before.DESCRIPTOR.fields_by_number.get(number), after.DESCRIPTOR.fields_by_number.get(number)
    if source is None or field is None:
        return True
    if source.has_presence and not before.HasField(source.name):
        if field.is_repeated:
            return not getattr(after, field.name)
        if not field.has_presence or after.HasField(field.name):
            return False
        return field.message_type is not None or _same(
            source, getattr(before, source.name), field, getattr(after, field.name)
        )
    is_written = source.has_presence or (source.is_repeated and len(getattr(before, source.name)) > 0)
    if is_written and field.has_presence and not after.HasField(field.name):
        return False
    values, others = _listed(before, source), _listed(after, field)
    if source.is_repeated and not field.is_repeated and not values:
        return field.has_presence and not after.HasField(field.name)
    return len(values) == len(others) and all(
        _same(source, value, field, other) for value, other in zip(values, others, strict=True)
    )


def _listed(message: object, field: FieldDescriptor) -> list[object]:
    value = getattr(message, field.name)
    if _is_map(field):
        entry_class = GetMessageClass(_kind(field))
        return [_entry(entry_class, field, key, value[key]) for key in value]
    return list(value) if field.is_repeated else [value]


def _entry(entry_class: type[Message], field: FieldDescriptor, key: object, value: object) -> object:
    made: object = entry_class()
    setattr(made, _kind(field).fields_by_number[1].name, key)
    inner = _kind(field).fields_by_number[2]
    if inner.message_type is None:
        setattr(made, inner.name, value)
    else:
        getattr(made, inner.name).CopyFrom(value)
        getattr(made, inner.name).SetInParent()
    return made


def _same(source: FieldDescriptor, value: object, field: FieldDescriptor, other: object) -> bool:
    if source.message_type is not None or field.message_type is not None:
        if source.message_type is None or field.message_type is None:
            return False
        return all(is_kept(value, other, number) for number in source.message_type.fields_by_number)
    raw = [side.encode() if isinstance(side, str) else side for side in (value, other)]
    if source.enum_type is not None and field.enum_type is not None:
        names = [
            {enum_value.name for enum_value in enum_type.values if enum_value.number == number}
            for enum_type, number in ((source.enum_type, value), (field.enum_type, other))
        ]
        is_known = bool(names[1]) and value == other
        return is_known and (bool(names[0] & names[1]) or not _is_moved(source.enum_type, field.enum_type, *names))
    return isinstance(raw[0], bytes) == isinstance(raw[1], bytes) and bool(raw[0] == raw[1])


def _is_moved(source: EnumDescriptor, other: EnumDescriptor, written: set[str], read: set[str]) -> bool:
    """Return whether a symbol is another one by name, not only renamed."""
    return not (written.isdisjoint(other.values_by_name) and read.isdisjoint(source.values_by_name))


def _kind(field: FieldDescriptor) -> Descriptor:
    """Return the type of the messages that a field holds."""
    if field.message_type is None:
        raise TypeError(f"{field.full_name} does not hold messages")
    return field.message_type


def type_text(field: FieldDescriptor) -> str:
    """Return the type of a field for people."""
    named = field.message_type or field.enum_type
    label = "repeated " * field.is_repeated
    return cut(f"{label}{named.name}") if named is not None else label + _TYPE_NAMES[field.type]


_TYPE_NAMES: Final[Mapping[int, str]] = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


def shown(message: Message) -> Json:
    """Return a message in the JSON encoding of Protobuf, under the names of the file.

    A well-known type whose value is out of range has no such encoding, and is shown with its fields.

    Raises:
        ValueError: a text is not UTF-8.
    """
    try:
        made: Json = MessageToDict(message, preserving_proto_field_name=True)
    except (SerializeToJsonError, TypeError, ValueError):
        return _plain(message)
    return made


def _plain(message: Message) -> Json:
    made: dict[str, Json] = {}
    for field, _ in message.ListFields():
        parts = [_part(field, item) for item in _listed(message, field)]
        made[field.name] = parts if field.is_repeated else parts[0]
    return made


def _part(field: FieldDescriptor, value: Any) -> Json:
    if field.message_type is not None:
        return _plain(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if field.cpp_type in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64):
        return str(value)
    return value if isinstance(value, bool | int | str) or math.isfinite(value) else str(value)


def value_of(message: Message, field: FieldDescriptor) -> Json:
    """Return the value of a field in the JSON encoding, also if it is the default."""
    content = shown(message)
    if isinstance(content, dict) and field.name in content:
        known: Json = content[field.name]
        return known
    value = getattr(message, field.name)
    if field.is_repeated:
        return {} if _is_map(field) else []
    if field.enum_type is not None:
        symbol = field.enum_type.values_by_number.get(value)
        return symbol.name if symbol is not None else int(value)
    return _part(field, value)
