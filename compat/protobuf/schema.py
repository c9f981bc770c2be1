"""A Protobuf schema as the rest of `compat` sees it."""

from dataclasses import dataclass, field

from strata.compat.protobuf.model import File
from strata.compat.protobuf.names import Names
from strata.compat.schema import ParsedSchema

__all__ = ["ProtobufSchema"]


@dataclass(frozen=True)
class ProtobufSchema(ParsedSchema):
    """A .proto file, and the types to which its names resolve."""

    file: File
    names: Names = field(compare=False, repr=False)
