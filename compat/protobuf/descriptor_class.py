"""A class of descriptors in a private pool.

Protobuf's default pool is shared by the whole process. If a client library registers Confluent's metadata there,
options are read as maps, which lose the order of their entries and with it the schema's identity.
"""

from typing import Final, cast

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

__all__ = ["FileDescriptor", "add_file", "new_pool"]


def new_pool() -> DescriptorPool:
    """Return a pool that contains only `google/protobuf/descriptor.proto`."""
    pool = DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    return pool


def add_file(file: FileDescriptorProto, pool: DescriptorPool) -> None:
    """Add a file to a pool, with lists of entries in the place of maps, because lists keep their order.

    Raises:
        TypeError: The pool refuses the file.
    """
    for message in file.message_type:
        _unfold_maps(message)
    pool.AddSerializedFile(file.SerializeToString())


def _unfold_maps(message: DescriptorProto) -> None:
    for nested in message.nested_type:
        if nested.options.map_entry:
            nested.options.ClearField("map_entry")
        _unfold_maps(nested)


def _own() -> type[FileDescriptorProto]:
    message_class = GetMessageClass(new_pool().FindMessageTypeByName(FileDescriptorProto.DESCRIPTOR.full_name))
    return cast("type[FileDescriptorProto]", message_class)


FileDescriptor: Final = _own()
