"""The message of a Protobuf encode, written out for the executors in the JVM.

Presence, packing and enums are settled here, so that executors need to know neither syntax nor descriptors.

Rules of this file: descriptors in, JSON out; no registry and no values.
"""

import json
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.protobuf_jvm import KINDS, head_of, syntax_of
from strata.spark_udfs.encoding.plan import EncodePlan

__all__ = ["write_message"]

_UNPACKED: Final = (
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE,
    FieldDescriptor.TYPE_GROUP,
)


def write_message(plan: EncodePlan) -> str:
    """Return the message to write as JSON for `strata.spark.proto.EncodeProto`.

    Raises:
        OnlyInPython: If the message has a part that the JVM does not encode.
    """
    file = link(plan.target.schema, dict(plan.target.references))
    message = find_message(file, plan.target.identity.message_indexes)
    messages: dict[str, dict[str, Any]] = {}
    _add(message, messages)
    return json.dumps({"message": message.full_name, "messages": messages})


def _add(message: Descriptor, messages: dict[str, dict[str, Any]]) -> None:
    if message.full_name in messages:
        return
    syntax = syntax_of(message)
    declared = DescriptorProto()
    message.CopyToProto(declared)
    labels = {one.number: one for one in declared.field}
    messages[message.full_name] = {
        "kind": KINDS.get(message.full_name, ""),
        "fields": [_field(one, labels[one.number], syntax) for one in message.fields],
        "choices": [[one.name for one in oneof.fields] for oneof in message.oneofs if len(oneof.fields) > 1],
    }
    for one in message.fields:
        if one.message_type is not None:
            _add(one.message_type, messages)


def _field(field: FieldDescriptor, declared: FieldDescriptorProto, syntax: str) -> dict[str, Any]:
    if declared.label == FieldDescriptorProto.LABEL_REQUIRED:
        raise OnlyInPython(f"the required field {field.full_name}")
    written: dict[str, Any] = {
        **head_of(field),
        "presence": bool(field.has_presence) and not field.is_repeated,
        "packed": _is_packed(field, declared, syntax),
    }
    if field.enum_type is not None:
        written["enum"] = field.enum_type.name
        written["numbers"] = {one.name: one.number for one in field.enum_type.values}
        written["closed"] = field.enum_type.is_closed
    if field.message_type is not None:
        written["message"] = field.message_type.full_name
    return written


def _is_packed(field: FieldDescriptor, declared: FieldDescriptorProto, syntax: str) -> bool:
    if not field.is_repeated or field.type in _UNPACKED:
        return False
    return declared.options.packed if declared.options.HasField("packed") else syntax == "proto3"
