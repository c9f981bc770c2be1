"""The message of a Protobuf encode, as descriptors for the session's JVM, which makes the plan.

Rules of this file: descriptors in, descriptors out; no registry and no values.
"""

from google.protobuf.descriptor import FieldDescriptor

from strata.serdes.protobuf.files import find_message, link
from strata.spark_udfs.decoding.protobuf_jvm import group_of, messages_of
from strata.spark_udfs.encoding.plan import EncodePlan

__all__ = ["inputs_of"]


def inputs_of(plan: EncodePlan) -> dict[str, object]:
    """Return what the JVM plans the encode of a message from.

    Raises:
        OnlyInPython: If the message has a part that the JVM does not encode.
    """
    file = link(plan.target.schema, dict(plan.target.references))
    message = find_message(file, plan.target.identity.message_indexes)
    return messages_of(message, message.fields, _unencoded)


def _unencoded(field: FieldDescriptor) -> str:
    """Return what the JVM does not encode of a field, or an empty text."""
    return f"the required field {field.full_name}" if field.is_required else group_of(field)
