"""The judgement of Protobuf's own pool on a file."""

import re
from functools import cache
from typing import Final

from google.protobuf.descriptor_pool import DescriptorPool

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf.builtin import builtin_files, builtin_names
from strata.compat.protobuf.descriptor_class import new_pool
from strata.compat.protobuf.model import File
from strata.compat.protobuf.names import Names
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.to_descriptor import file_to_descriptor

__all__ = ["pool_error"]

_PREFIX: Final = re.compile(r"^Couldn't (?:build proto file into descriptor pool|parse file content)!?:? *")


def pool_error(schema: ProtobufSchema, limits: Limits) -> tuple[str, str] | None:
    """Return why the pool refuses a file or one of its imports, and the path of that import; None if it takes all.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    pool, added = new_pool(), {"google/protobuf/descriptor.proto"}
    names = Names(builtin_names())
    for path, file in schema.imports.items():
        names.add(file, path)
    for path, file in schema.imports.items():  # each after those that it imports
        if path not in added:
            added.add(path)
            _add_builtins(file, pool, added)
            error = _refusal(pool, _described(path, file, names, limits))
            if error is not None:
                return error, path
    _add_builtins(schema.file, pool, added)
    error = _refusal(pool, _described("", schema.file, schema.names, limits))
    return None if error is None else (error, "")


def _add_builtins(file: File, pool: DescriptorPool, added: set[str]) -> None:
    for path in (*file.imports, *file.public_imports):
        if path in builtin_files() and path not in added:
            added.add(path)
            _add_builtins(builtin_files()[path], pool, added)
            pool.AddSerializedFile(_builtin(path))


def _described(path: str, file: File, names: Names, limits: Limits) -> bytes:
    described = file_to_descriptor(file, names, limits)
    described.name = path
    return described.SerializeToString()


@cache
def _builtin(path: str) -> bytes:
    return _described(path, builtin_files()[path], builtin_names(), DEFAULT_LIMITS)


def _refusal(pool: DescriptorPool, file: bytes) -> str | None:
    try:
        pool.AddSerializedFile(file)
    except (TypeError, ValueError) as error:
        return " ".join(_PREFIX.sub("", str(error)).split()) or "it cannot be linked"
    return None
