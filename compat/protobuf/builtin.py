"""The files that a schema may import without a reference.

Google's files come from the descriptors of `protobuf` and `googleapis-common-protos`, Confluent's from
`confluent_files`. They are read once, when the first schema needs them.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.protobuf.confluent_files import CONFLUENT_FILES
from strata.compat.protobuf.from_descriptor import file_from_descriptor
from strata.compat.protobuf.model import File
from strata.compat.protobuf.names import Names
from strata.compat.protobuf.syntax import read_file

__all__ = ["builtin_files", "builtin_names"]

_GOOGLE: Final[Mapping[str, str]] = {
    "protobuf": "any api descriptor duration empty field_mask source_context struct timestamp type wrappers",
    "type": (
        "calendar_period color date datetime dayofweek decimal expr fraction interval latlng money month phone_number "
        "postal_address quaternion timeofday"
    ),
}


@cache
def builtin_files() -> Mapping[str, File]:
    """Return the files by the path under which they are imported."""
    files = {path: read_file(text, DEFAULT_LIMITS) for path, text in CONFLUENT_FILES.items()}
    for package, names in _GOOGLE.items():
        for name in names.split():
            descriptor = FileDescriptorProto()
            import_module(f"google.{package}.{name}_pb2").DESCRIPTOR.CopyToProto(descriptor)
            files[f"google/{package}/{name}.proto"] = file_from_descriptor(descriptor)
    return files


@cache
def builtin_names() -> Names:
    """Return the types and extension fields of all these files."""
    names = Names()
    for path, file in builtin_files().items():
        names.add(file, f"builtin:{path}")
    return names
