"""The messages of Google's options together with Confluent's metadata, in a private pool.

Protobuf's default pool is not used, so client libraries that register files there change nothing here.
"""

from functools import cache
from typing import Final

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as Proto
from google.protobuf.message_factory import GetMessageClass

from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.protobuf.confluent_files import CONFLUENT_FILES
from strata.compat.protobuf.descriptor_class import new_pool, unfold_maps
from strata.compat.protobuf.names import Names
from strata.compat.protobuf.syntax import read_file
from strata.compat.protobuf.to_descriptor import file_to_descriptor

__all__ = ["with_metadata"]

_META: Final = "confluent/meta.proto"


def with_metadata(descriptor: Proto) -> Proto:
    """Return the same descriptor as a message of a class whose options know the metadata.

    Raises:
        DecodeError: The bytes of the metadata are invalid.
    """
    known: Proto = _class_of(descriptor.DESCRIPTOR.full_name).FromString(descriptor.SerializeToString())
    return known


@cache
def _class_of(full: str) -> type[Proto]:
    return GetMessageClass(_pool().FindMessageTypeByName(full))


@cache
def _pool() -> DescriptorPool:
    pool = new_pool()
    meta = file_to_descriptor(read_file(CONFLUENT_FILES[_META], DEFAULT_LIMITS), Names())
    meta.name = _META
    for message in meta.message_type:
        unfold_maps(message)
    pool.AddSerializedFile(meta.SerializeToString())
    return pool
