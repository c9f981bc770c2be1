"""Are two texts one version of a subject?

They are if they say the same in the same order, however they spell the names of types, maps and numbers: a schema
that came as text, and the descriptor that a client made of it. A change of order makes another version.
"""

from compat.limits import DEFAULT_LIMITS, Limits
from compat.protobuf.model import File, Message
from compat.protobuf.normalizer import normalize_file
from compat.protobuf.printer import print_file
from compat.protobuf.schema import ProtobufSchema

__all__ = ["equivalent"]


def equivalent(left: ProtobufSchema, right: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the two differ in spelling alone."""
    if left.canonical == right.canonical:
        return True
    return _outline(left.file) == _outline(right.file) and _spelled_out(left, limits) == _spelled_out(right, limits)


def _outline(file: File) -> tuple[object, ...]:
    """What is quickly compared, and differs most often."""
    return (
        file.package or "",
        tuple((message.name, _tags(message)) for message in file.messages),
        tuple((enum.name, len(enum.constants)) for enum in file.enums),
    )


def _tags(message: Message) -> tuple[int, ...]:
    return tuple(field.tag for field in message.fields)


def _spelled_out(schema: ProtobufSchema, limits: Limits) -> str:
    return print_file(normalize_file(schema.file, schema.names, limits, keep_order=True))
