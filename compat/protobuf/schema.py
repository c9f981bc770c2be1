"""A Protobuf schema as the rest of `compat` sees it."""

from collections.abc import Mapping
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
    imports: Mapping[str, File] = field(compare=False, repr=False)  # the referenced files, by path
    source: str = field(compare=False, repr=False)  # the text that was read, in which `at` of the tree counts
