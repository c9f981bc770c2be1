"""What a Protobuf schema is to the rest of `compat`."""

from dataclasses import dataclass, field

from compat.protobuf.model import File
from compat.protobuf.names import Names
from compat.schema import ParsedSchema

__all__ = ["ProtobufSchema"]


@dataclass(frozen=True)
class ProtobufSchema(ParsedSchema):
    """A .proto file, and what the names in it mean."""

    file: File
    names: Names = field(compare=False, repr=False)
