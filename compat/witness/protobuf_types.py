"""The message types of a Protobuf schema as Google's library reads and writes them, without generated code.

Only what readers need goes into the descriptors: options, services, extensions and reserved names of a stored schema
may be such that the library refuses them.
"""

from collections.abc import Iterable, Mapping

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from strata.compat.limits import Limits
from strata.compat.protobuf.builtin import builtin_files, builtin_names
from strata.compat.protobuf.model import File
from strata.compat.protobuf.names import Names
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.to_descriptor import file_to_descriptor

__all__ = ["message_types"]

_MAIN = "main.proto"


def message_types(
    schema: ProtobufSchema, limits: Limits
) -> tuple[Mapping[str, Descriptor], Mapping[str, Descriptor]] | None:
    """Return message types by name without package: of the schema itself, and of its imports too.

    Of two types with one name, that of the schema itself counts. The result is None if the library refuses a file.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    pool, names = DescriptorPool(), Names(builtin_names())
    for path, file in schema.imports.items():
        names.add(file, path)
    files = dict(_imported(schema.file.imports + schema.file.public_imports, schema.imports))
    known: dict[str, Descriptor] = {}
    try:
        for path, file in files.items():
            _add(path, file, names, pool, limits)
        _add(_MAIN, schema.file, schema.names, pool, limits)
        for path in files:
            known |= _types(pool.FindFileByName(path))
        own = _types(pool.FindFileByName(_MAIN))
    except (TypeError, ValueError, KeyError):
        return None
    return own, known | own


def _imported(paths: Iterable[str], files: Mapping[str, File]) -> Mapping[str, File]:
    """Return the imported files, each after those that it imports."""
    imported: dict[str, File] = {}
    waiting = [(path, False) for path in reversed([*paths])]
    opened: set[str] = set()
    while waiting:
        path, is_done = waiting.pop()
        file = files.get(path) or builtin_files().get(path)
        if file is None or path in imported:
            continue
        if is_done:
            imported[path] = file
        elif path not in opened:
            opened.add(path)
            waiting.append((path, True))
            waiting += [(inner, False) for inner in (*file.imports, *file.public_imports)]
    return imported


def _add(path: str, file: File, names: Names, pool: DescriptorPool, limits: Limits) -> None:
    made = FileDescriptorProto()
    made.ParseFromString(file_to_descriptor(file, names, limits).SerializeToString())
    made.name = path
    for name in ("options", "service", "extension"):
        made.ClearField(name)
    for message in made.message_type:
        _strip(message)
    for enum in made.enum_type:
        _strip_enum(enum)
    pool.AddSerializedFile(made.SerializeToString())


def _strip(message: DescriptorProto) -> None:
    is_entry = message.options.map_entry
    for name in ("options", "extension", "extension_range", "reserved_range", "reserved_name"):
        message.ClearField(name)
    if is_entry:
        message.options.map_entry = True
    for field in message.field:
        _strip_field(field)
    for nested in message.nested_type:
        _strip(nested)
    for enum in message.enum_type:
        _strip_enum(enum)
    for oneof in message.oneof_decl:
        oneof.ClearField("options")


def _strip_field(field: FieldDescriptorProto) -> None:
    packed = field.options.packed if field.options.HasField("packed") else None
    field.ClearField("options")
    field.ClearField("json_name")
    if packed is not None:
        field.options.packed = packed


def _strip_enum(enum: EnumDescriptorProto) -> None:
    for name in ("options", "reserved_range", "reserved_name"):
        enum.ClearField(name)
    numbers = [value.number for value in enum.value]
    if len(set(numbers)) < len(numbers):
        enum.options.allow_alias = True
    for value in enum.value:
        value.ClearField("options")


def _types(file: FileDescriptor) -> dict[str, Descriptor]:
    package = f"{file.package}." if file.package else ""
    types: dict[str, Descriptor] = {}
    waiting = list(file.message_types_by_name.values())
    while waiting:
        message = waiting.pop()
        types[message.full_name.removeprefix(package)] = message
        waiting += message.nested_types
    return types
