"""Fields of messages that an older schema of the registry lacks.

The bytes of a message carry such fields, but readers with that schema do not find them.

Rules of this file: descriptors and messages; no bytes. Methods are the class's: fields may hide them.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from serdes.errors import index_part, key_part, unknown_field

__all__ = ["lacks_fields", "refuse_unknown"]


def lacks_fields(registered: Descriptor, local: Descriptor) -> bool:
    """Whether a message, or one inside it, has fields that the registry's version of it lacks."""
    seen: set[tuple[str, str]] = set()
    pairs = [(registered, local)]
    while pairs:
        known, mine = pairs.pop()
        if (known.full_name, mine.full_name) in seen:
            continue
        seen.add((known.full_name, mine.full_name))
        for field in mine.fields:
            found = known.fields_by_number.get(field.number)
            if found is None:
                return True
            if field.message_type is not None and found.message_type is not None:
                pairs.append((found.message_type, field.message_type))
    return False


def refuse_unknown(message: Message, registered: Descriptor, path: str = "") -> None:
    """Raise EncodeError for the first field set in a message that the registry's version of it lacks."""
    for field, value in type(message).ListFields(message):
        if field.is_extension:
            continue
        known = registered.fields_by_number.get(field.number)
        if known is None:
            raise unknown_field(field.name, registered.fields_by_name, path)
        if known.message_type is not None:
            place = f"{path}.{field.name}".lstrip(".")
            for part, inner, inside in _messages(field, value, known.message_type):
                refuse_unknown(inner, inside, place + part)


def _messages(field: FieldDescriptor, value: Any, known: Descriptor) -> Iterator[tuple[str, Message, Descriptor]]:
    """The messages in the value of a field, what each adds to the path, and the registry's version of it."""
    kind = field.message_type
    if kind is None:
        return
    if kind.GetOptions().map_entry:
        inside = known.fields_by_name["value"].message_type if "value" in known.fields_by_name else None
        if kind.fields_by_name["value"].message_type is not None and inside is not None:
            for key in value:
                yield key_part(key), value[key], inside
    elif field.is_repeated:
        for index, one in enumerate(value):
            yield index_part(index), one, known
    else:
        yield "", value, known
