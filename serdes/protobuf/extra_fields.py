"""Fields of messages that the registry's schema lacks.

The bytes of a message have such fields, but readers with that schema do not see them.

Rules of this file: descriptors and messages; no bytes. It calls methods of the class, since fields may hide them.
"""

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from strata.serdes.errors import index_part, key_part, unknown_field
from strata.serdes.protobuf.files import entry_of

__all__ = ["lacks_fields", "refuse_unknown"]


def lacks_fields(registered: Descriptor, local: Descriptor) -> bool:
    """Return whether a message type, or one inside it, has fields that the registry's version lacks."""
    seen: set[tuple[str, str]] = set()
    pairs = [(registered, local)]
    while pairs:
        known, mine = pairs.pop()
        if (known.full_name, mine.full_name) in seen:
            continue
        seen.add((known.full_name, mine.full_name))
        for field in mine.fields:
            other = known.fields_by_number.get(field.number)
            if other is None:
                return True
            if field.message_type is not None and other.message_type is not None:
                pairs.append((other.message_type, field.message_type))
    return False


def refuse_unknown(message: Message, registered: Descriptor, path: str = "") -> None:
    """Raise EncodeError for the first field set in a message that the registry's version lacks.

    Args:
        message: the message.
        registered: its type in the registry's schema.
        path: the path of the message in the record.

    Raises:
        EncodeError: If there is such a field; the path is that of the field.
    """
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
    """Yield the messages in a field's value, the path part of each, and its type in the registry."""
    if field.message_type is None:
        return
    entry = entry_of(field)
    if entry is not None:
        inside = known.fields_by_name["value"].message_type if "value" in known.fields_by_name else None
        if entry.fields_by_name["value"].message_type is not None and inside is not None:
            for key in value:
                yield key_part(key), value[key], inside
    elif field.is_repeated:
        for index, item in enumerate(value):
            yield index_part(index), item, known
    else:
        yield "", value, known
