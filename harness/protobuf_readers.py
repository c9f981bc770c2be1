"""Random Protobuf messages, and whether a reader has what was written."""

from random import Random
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor

__all__ = ["filled", "same"]

_NUMBERS: Final[dict[str, list[Any]]] = {
    "int32": [0, 1, -1, 2**31 - 1, -(2**31)],
    "int64": [0, 1, -1, 2**53 + 1, 2**63 - 1, -(2**63)],
    "uint32": [0, 1, 2**32 - 1],
    "uint64": [0, 1, 2**53 + 1, 2**64 - 1],
    "double": [0.0, 1.5, 1e300],
    "float": [0.0, 1.5, -0.25],
    "bool": [True, False],
}
_KINDS: Final = {1: "int32", 2: "int64", 3: "uint32", 4: "uint64", 5: "double", 6: "float", 7: "bool"}


def _scalar(field: FieldDescriptor, chance: Random) -> Any:
    """Return a random value for a field."""
    if field.enum_type is not None:
        return chance.choice(field.enum_type.values).number
    if field.type == field.TYPE_BYTES:
        return chance.choice([b"", b"a", b"\xff", b"\x08\x96\x01", b"\x0a"])
    if field.type == field.TYPE_STRING:
        return chance.choice(["", "a", "é", "\x08\x96", "text of more than eight bytes"])
    return chance.choice(_NUMBERS[_KINDS[field.cpp_type]])


def filled(message: Any, chance: Random, depth: int = 3) -> Any:
    """Set random fields of a message; return it."""
    for field in message.DESCRIPTOR.fields:
        if not field.is_required and (depth == 0 or chance.random() < 0.25):
            continue
        inner = field.message_type
        if _is_map(field):
            key, value = inner.fields
            for _ in range(chance.randrange(3)):
                held, name = getattr(message, field.name), _scalar(key, chance)
                if value.message_type is None:
                    held[name] = _scalar(value, chance)
                else:
                    filled(held[name], chance, depth - 1)
        elif field.is_repeated:
            held = getattr(message, field.name)
            for _ in range(chance.randrange(4)):
                held.append(_scalar(field, chance)) if inner is None else filled(held.add(), chance, depth - 1)
        elif inner is not None:
            getattr(message, field.name).SetInParent()
            filled(getattr(message, field.name), chance, depth - 1)
        else:
            setattr(message, field.name, _scalar(field, chance))
    return message


def _is_map(field: FieldDescriptor) -> bool:
    """Return whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def same(before: Any, after: Any, is_new: bool) -> bool:
    """Return whether a reader has what was written, by name; a pure renaming is not a change.

    A field that the writer lacks has its default, which stands for what was written before the field existed (the
    reader is new), or differs from every written value.
    """
    held, tags = before.DESCRIPTOR.fields_by_name, before.DESCRIPTOR.fields_by_number
    names = after.DESCRIPTOR.fields_by_name
    for field in after.DESCRIPTOR.fields:
        source = held.get(field.name)
        if source is None and field.number in tags and tags[field.number].name not in names:
            source = tags[field.number]
        if source is None:
            if not is_new and (not field.has_presence or after.HasField(field.name)):
                return False
        elif not _same_field(before, source, after, field, is_new):
            return False
    return True


def _same_field(before: Any, source: Any, after: Any, field: Any, is_new: bool) -> bool:
    """Return whether one field has the value, and is set if it was set."""
    value, other = getattr(before, source.name), getattr(after, field.name)
    if source.has_presence and not before.HasField(source.name):
        if field.is_repeated:
            return not other
        if not field.has_presence or after.HasField(field.name):
            return False
        is_message = source.message_type is not None or field.message_type is not None
        return is_message or _same_value(source, value, field, other, is_new)
    if source.has_presence and field.has_presence and not after.HasField(field.name):
        return False
    if source.is_repeated and not field.is_repeated and not value:
        return field.has_presence and not after.HasField(field.name)
    if _is_map(source) or _is_map(field):
        value, other = _entries(source, value), _entries(field, other)
        kinds = [one.message_type.fields if one.message_type is not None else [one] * 2 for one in (source, field)]
        return len(value) == len(other) and all(
            _same_value(kinds[0][0], one[0], kinds[1][0], two[0], is_new)
            and _same_value(kinds[0][1], one[1], kinds[1][1], two[1], is_new)
            for one, two in zip(value, other, strict=True)
        )
    values = list(value) if source.is_repeated else [value]
    others = list(other) if field.is_repeated else [other]
    return len(values) == len(others) and all(
        _same_value(source, one, field, two, is_new) for one, two in zip(values, others, strict=True)
    )


def _entries(field: Any, value: Any) -> list[Any]:
    """Return the entries of a map, or of a list of messages that stand for them, sorted by their keys."""
    if _is_map(field):
        found = [(key, value[key]) for key in value]
    elif field.is_repeated and field.message_type is not None and len(field.message_type.fields) > 1:
        found = [tuple(getattr(one, inner.name) for inner in field.message_type.fields[:2]) for one in value]
    else:
        return [(one, None) for one in (value if field.is_repeated else [value])]
    return sorted(found, key=lambda pair: str(pair[0]))


def _same_value(source: Any, value: Any, field: Any, other: Any, is_new: bool) -> bool:
    """Return whether two values are the same one."""
    if source.message_type is not None or field.message_type is not None:
        both = source.message_type is not None and field.message_type is not None
        return both and same(value, other, is_new)
    if source.enum_type is not None and field.enum_type is not None:
        return _same_symbol(source.enum_type, value, field.enum_type, other)
    raw = [one.encode() if isinstance(one, str) else one for one in (value, other)]
    return isinstance(raw[0], bytes) == isinstance(raw[1], bytes) and raw[0] == raw[1]


def _same_symbol(source: EnumDescriptor, value: int, enum: EnumDescriptor, other: int) -> bool:
    """Return whether two symbols have one name, or one of them is a renaming of the other."""
    if other not in enum.values_by_number:
        return False
    names = source.values_by_number[value].name, enum.values_by_number[other].name
    is_renamed = names[0] not in enum.values_by_name and names[1] not in source.values_by_name
    return names[0] == names[1] or (is_renamed and value == other)
