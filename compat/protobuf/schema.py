"""A Protobuf schema as the rest of `compat` sees it."""

from dataclasses import dataclass, field

from compat.protobuf.model import File
from compat.protobuf.names import Names
from compat.schema import ParsedSchema

__all__ = ["ProtobufSchema"]


@dataclass(frozen=True)
class ProtobufSchema(ParsedSchema):
    """A .proto file, and the types to which its names resolve."""

    file: File
    names: Names = field(compare=False, repr=False)
