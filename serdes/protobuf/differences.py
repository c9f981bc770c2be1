"""Two views of the bytes of one message: as the writer's file has them, and as a reader's file has them.

A parser drops a field whose wire type does not fit, and takes the bits of one that does, so nearly nothing fails. Code
reads fields and symbols by name. So a name at another number is another value, while a name that only one of the two
files knows is a renaming.

Rules of this file: messages in, paths out; no bytes.
"""

from collections.abc import Iterator, MutableMapping, MutableSequence
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from strata.serdes.protobuf.files import descriptor_of

__all__ = ["Difference", "differences", "first_missing", "unknown_fields"]

_KEY, _VALUE = 1, 2  # the numbers of the fields of a map's entry
_NOTHING: Final = None


class Difference(NamedTuple):
    """A part that a reader has otherwise than it was written; None is a field that is not set."""

    path: str
    written: object
    read: object


def differences(written: Message, read: Message, path: str = "") -> Iterator[Difference]:
    """Yield where a reader has another value than was written.

    A field that the writer does not know is left out: its default stands for what was written before it existed.

    Args:
        written: the message as the writer's file parses it.
        read: the same bytes as the reader's file parses them.
        path: the path so far.

    Raises:
        UnicodeDecodeError: If a text of proto2 is not UTF-8, which the parser does not check.
    """
    ours, theirs = descriptor_of(read), descriptor_of(written)
    set_fields = {field.number for field, _ in read.ListFields()}
    for field in ours.fields:
        inner = f"{path}.{field.name}" if path else field.name
        source = theirs.fields_by_name.get(field.name)
        other = theirs.fields_by_number.get(field.number)
        if source is None and other is not None and other.name not in ours.fields_by_name:
            source = other
        is_set = field.number in set_fields
        if source is not None:
            yield from _field(written, source, read, field, is_set, inner)
        elif other is not None and is_set:
            yield Difference(inner, _NOTHING, getattr(read, field.name))


def _field(
    written: Message, source: FieldDescriptor, read: Message, field: FieldDescriptor, is_set: bool, path: str
) -> Iterator[Difference]:
    value, other = getattr(written, source.name), getattr(read, field.name)
    if source.has_presence and not written.HasField(source.name):
        if is_set or not (field.has_presence or field.is_repeated):
            yield Difference(path, _NOTHING, other)
        elif field.has_presence and _is_scalar(source) and _is_scalar(field):  # defaults of proto2
            yield from _value(source, value, field, other, path)
    elif source.has_presence and field.has_presence and not is_set:
        yield Difference(path, value, _NOTHING)
    elif source.is_repeated and not field.is_repeated and not value:
        if is_set or not field.has_presence:
            yield Difference(path, [], other)
    elif _is_map(source) and _is_map(field):
        yield from _maps(source, value, field, other, path)
    elif _is_map(source) or _is_map(field):
        before, after = _entries(source, value), _entries(field, other)
        if before != after or (before is None and (value or is_set)):
            yield Difference(path, value, other)
    else:
        values = list(value) if source.is_repeated else [value]
        others = list(other) if field.is_repeated else [other]
        if len(values) != len(others):
            yield Difference(path, values, others)
            return
        item_path = f"{path}[]" if field.is_repeated else path
        for before, after in zip(values, others, strict=True):
            yield from _value(source, before, field, after, item_path)


def _maps(source: FieldDescriptor, value: Any, field: FieldDescriptor, other: Any, path: str) -> Iterator[Difference]:
    before, after = (_entry(map_field).fields_by_number[_VALUE] for map_field in (source, field))
    read = {_key(key): other[key] for key in other}
    for key in value:
        known = _key(key)
        if known in read:
            yield from _value(before, value[key], after, read.pop(known), f"{path}{{}}")
        else:
            yield Difference(f"{path}{{}}", key, _NOTHING)
    for key in read:
        yield Difference(f"{path}{{}}", _NOTHING, key)


def _entry(field: FieldDescriptor) -> Any:
    return field.message_type


def _key(key: object) -> object:
    return key.encode() if isinstance(key, str) else key


def _entries(field: FieldDescriptor, value: Any) -> list[tuple[Any, Any]] | None:
    """Return the entries of a map, or of a list of messages in their place; None if it is neither."""
    if field.is_repeated and not value:
        return []
    if _is_map(field):
        pairs = [(key, value[key]) for key in value]
    elif field.is_repeated and field.message_type is not None:
        parts = [field.message_type.fields_by_number.get(number) for number in (_KEY, _VALUE)]
        if any(part is None for part in parts):
            return None
        pairs = [tuple(getattr(item, part.name) for part in parts if part is not None) for item in value]
    else:
        return None
    return sorted((_plain(key), _plain(part)) for key, part in pairs)


def _plain(value: Any) -> Any:
    """Return the part of an entry as a value that has an order: in messages that stand for a map, it may be a list."""
    if isinstance(value, Message):
        return value.SerializeToString(deterministic=True)
    if isinstance(value, MutableMapping):
        return sorted((_key(key), _plain(value[key])) for key in value)
    if isinstance(value, MutableSequence):
        return [_plain(item) for item in value]
    return _key(value)


def _value(source: FieldDescriptor, value: Any, field: FieldDescriptor, other: Any, path: str) -> Iterator[Difference]:
    if source.message_type is not None and field.message_type is not None:
        yield from differences(value, other, path)
    elif source.enum_type is not None and field.enum_type is not None:
        if not _is_same_symbol(source.enum_type, value, field.enum_type, other):
            yield Difference(path, _symbol(source, value), _symbol(field, other))
    elif source.message_type is not None or field.message_type is not None or not _is_same(value, other):
        yield Difference(path, _symbol(source, value), _symbol(field, other))


def _is_same(value: object, other: object) -> bool:
    before, after = _key(value), _key(other)
    is_nan = before != before and after != after
    return isinstance(before, bytes) == isinstance(after, bytes) and (is_nan or bool(before == after))


def _is_same_symbol(source: EnumDescriptor, value: int, enum: EnumDescriptor, other: int) -> bool:
    """Return whether two numbers stand for one symbol, or for one that only has another name."""
    before, after = source.values_by_number.get(value), enum.values_by_number.get(other)
    if before is None or after is None:
        return before is None and after is None and value == other
    names = {value_.name for value_ in source.values if value_.number == value}
    others = {value.name for value in enum.values if value.number == other}
    if names & others:
        return True
    is_renamed = names.isdisjoint(enum.values_by_name) and others.isdisjoint(source.values_by_name)
    return is_renamed and value == other


def _symbol(field: FieldDescriptor, value: Any) -> Any:
    known = None if field.enum_type is None else field.enum_type.values_by_number.get(value)
    return value if known is None else known.name


def _is_scalar(field: FieldDescriptor) -> bool:
    return field.message_type is None and not field.is_repeated


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def first_missing(read: Message, path: str = "") -> str | None:
    """Return the path of a required field that a message lacks; None if it has all.

    Args:
        read: the message.
        path: the path so far.
    """
    if read.IsInitialized():
        return None
    for field in descriptor_of(read).fields:
        inner = f"{path}.{field.name}" if path else field.name
        if field.is_required and not read.HasField(field.name):
            return inner
        for item, item_path in _messages(read, field, inner):
            missing = first_missing(item, item_path)
            if missing is not None:
                return missing
    return None


def _messages(message: Message, field: FieldDescriptor, path: str) -> Iterator[tuple[Message, str]]:
    """Yield the messages that a field holds, with their paths."""
    if field.message_type is None:
        return
    value = getattr(message, field.name)
    if _is_map(field):
        if field.message_type.fields_by_number[_VALUE].message_type is not None:
            yield from ((value[key], f"{path}{{}}") for key in value)
    elif field.is_repeated:
        yield from ((item, f"{path}[]") for item in value)
    elif message.HasField(field.name):
        yield value, path


def unknown_fields(written: Message, read: Message, path: str = "") -> Iterator[str]:
    """Yield the paths of set fields that the reader's message does not have.

    Args:
        written: the message as the writer's file parses it.
        read: the message as the reader's file parses it.
        path: the path so far.
    """
    fields = descriptor_of(read).fields_by_number
    for field, _ in written.ListFields():
        inner = f"{path}.{field.name}" if path else field.name
        other = fields.get(field.number)
        if other is None:
            yield inner
        elif _is_message(field) and _is_message(other):
            yield from unknown_fields(getattr(written, field.name), getattr(read, other.name), inner)


def _is_message(field: FieldDescriptor) -> bool:
    return field.message_type is not None and not field.is_repeated
