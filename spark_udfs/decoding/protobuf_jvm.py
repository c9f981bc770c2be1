"""The messages of a Protobuf plan, as descriptors for the session's JVM, which makes the plan.

Rules of this file: descriptors in, descriptors out; no registry and no bytes of payloads. What the JVM leaves to Python
workers is known here, before the path is chosen.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from strata.serdes.protobuf.files import link
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.payload_schema import PayloadSchema
from strata.spark_udfs.decoding.protobuf_reader import message_of

__all__ = ["group_of", "inputs_of", "messages_of"]

_JSON_TEXTS: Final = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))


def inputs_of(payload: PayloadSchema) -> dict[str, object]:
    """Return what the JVM plans the decode of a message from.

    Raises:
        OnlyInPython: If the message has a part that the JVM does not decode.
    """
    message = message_of(link(payload.schema, dict(payload.references)), payload.message)
    names = list(dict.fromkeys(payload.columns or ()))
    fields = [message.fields_by_name[name] for name in names] or message.fields
    return messages_of(message, fields, _undecoded) | {"columns": names or None}


def _undecoded(field: FieldDescriptor) -> str:
    """Return what the JVM does not decode of a field, or an empty text."""
    if field.enum_type is not None and field.enum_type.is_closed:  # unknown numbers of it are unknown fields
        return f"the closed enum {field.enum_type.full_name}"
    if field.message_type is not None and field.message_type.full_name in _JSON_TEXTS:
        return f"the {field.message_type.full_name} {field.full_name}"
    return group_of(field)


def group_of(field: FieldDescriptor) -> str:
    """Return the words for a group, or an empty text for any other field."""
    return f"the group {field.full_name}" if field.type == FieldDescriptor.TYPE_GROUP else ""


def messages_of(
    message: Descriptor, fields: Iterable[FieldDescriptor], unsupported: Callable[[FieldDescriptor], str]
) -> dict[str, object]:
    """Return the name of a message, and the files in which it and the messages inside it are.

    Args:
        message: the message.
        fields: those of its fields that count.
        unsupported: returns what the JVM does not support of a field, or an empty text.

    Raises:
        OnlyInPython: If the JVM does not support a part.
    """
    files: dict[str, str] = {}
    seen = {message.full_name}

    def add(descriptor: Descriptor | EnumDescriptor, name: str) -> None:
        written = FileDescriptorProto()
        descriptor.file.CopyToProto(written)
        if written.syntax == "editions":
            raise OnlyInPython(f"an edition of Protobuf ({name})")
        if descriptor.file.name not in files:
            files[descriptor.file.name] = b64encode(written.SerializeToString(deterministic=True)).decode()

    def walk(message: Descriptor, counted: Iterable[FieldDescriptor]) -> None:
        add(message, message.full_name)
        for field in counted:
            if part := unsupported(field):
                raise OnlyInPython(part)
            if field.enum_type is not None:
                add(field.enum_type, field.full_name)
            if field.message_type is not None and field.message_type.full_name not in seen:
                seen.add(field.message_type.full_name)
                walk(field.message_type, field.message_type.fields)

    walk(message, fields)
    return {"message": message.full_name, "files": list(files.values())}
