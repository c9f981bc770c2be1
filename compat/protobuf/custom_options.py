"""Custom options of a descriptor, decoded with the declarations in its own file and its imports.

In a descriptor, an option that protobuf does not know is a tag and some bytes. The `extend` block that declares it is
in the file itself or in an import, so these are linked in a private pool for this one descriptor. If they cannot be
linked, or an option does not fit its declaration, only Confluent's metadata is kept.
"""

from collections.abc import Iterator, Mapping

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message import Message as Proto
from google.protobuf.message_factory import GetMessageClass

from strata.compat.protobuf.builtin import builtin_files, builtin_names
from strata.compat.protobuf.descriptor_class import FileDescriptor, add_file, new_pool
from strata.compat.protobuf.model import File
from strata.compat.protobuf.names import Names
from strata.compat.protobuf.to_descriptor import file_to_descriptor, metadata_pool

__all__ = ["with_custom_options", "with_metadata"]


def with_custom_options(descriptor: FileDescriptorProto, imports: Mapping[str, File]) -> Proto:
    """Return a descriptor whose messages of options know their custom options.

    Args:
        descriptor: The descriptor.
        imports: The referenced files by path, each after those that it imports.

    Raises:
        DecodeError: The bytes of Confluent's metadata are invalid.
    """
    known = with_metadata(descriptor)
    plain = type(known).FromString(known.SerializeToString())
    plain.DiscardUnknownFields()
    if plain.ByteSize() == known.ByteSize():
        return known
    try:
        return _as_message_of(_pool(descriptor, imports), known)
    except (DecodeError, TypeError, ValueError):  # the last two: the pool refuses a file
        return known


def with_metadata(descriptor: Proto) -> Proto:
    """Return the same descriptor as a message of a class whose options know Confluent's metadata.

    Raises:
        DecodeError: The bytes of the metadata are invalid.
    """
    return _as_message_of(metadata_pool(), descriptor)


def _as_message_of(pool: DescriptorPool, descriptor: Proto) -> Proto:
    message_class = GetMessageClass(pool.FindMessageTypeByName(descriptor.DESCRIPTOR.full_name))
    return message_class.FromString(descriptor.SerializeToString())


def _pool(descriptor: FileDescriptorProto, imports: Mapping[str, File]) -> DescriptorPool:
    pool = new_pool()
    added = {descriptor_pb2.DESCRIPTOR.name}
    own = FileDescriptor.FromString(descriptor.SerializeToString())
    own.name = own.name or "default"
    for file in (*_described(imports), own):
        for path in file.dependency:
            _add_builtin(path, pool, added)
        if file.name not in added:
            added.add(file.name)
            add_file(file, pool)
    return pool


def _described(imports: Mapping[str, File]) -> Iterator[FileDescriptorProto]:
    names = Names(builtin_names())
    for path, file in imports.items():
        names.add(file, path)
    for path, file in imports.items():
        described = file_to_descriptor(file, names)
        described.name = path
        yield described


def _add_builtin(path: str, pool: DescriptorPool, added: set[str]) -> None:
    file = builtin_files().get(path)
    if file is None or path in added:
        return
    added.add(path)
    described = file_to_descriptor(file, builtin_names())
    described.name = path
    for other in described.dependency:
        _add_builtin(other, pool, added)
    add_file(described, pool)
