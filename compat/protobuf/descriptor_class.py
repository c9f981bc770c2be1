"""The class of descriptors, in a pool of its own.

The one that protobuf brings is shared by the whole process: a client library that registers Confluent's metadata there
makes it read options as maps, which lose the order of their entries, and with it a schema's identity.
"""

from typing import Final, cast

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

__all__ = ["FileDescriptor"]


def _own() -> type[FileDescriptorProto]:
    pool = DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    kind = GetMessageClass(pool.FindMessageTypeByName(FileDescriptorProto.DESCRIPTOR.full_name))
    return cast("type[FileDescriptorProto]", kind)


FileDescriptor: Final = _own()
