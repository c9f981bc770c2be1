"""From text, or a descriptor in base64, to a schema.

What the names in a file mean is looked up only so far as the reference does: the types of fields, of extension
fields, of what is extended and of methods must be known; the types of map values need not, nor need imports be found.
Stored schemas are read in the same way as new ones, except that unknown names are let pass, and that they may be
empty: normalized, a file that says nothing but `proto2` is.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from compat.limits import DEFAULT_LIMITS, Limits, OutOfTime, check_printed, check_references
from compat.protobuf.builtin import builtin_names
from compat.protobuf.custom_options import with_custom_options
from compat.protobuf.descriptor_class import FileDescriptor
from compat.protobuf.from_descriptor import file_from_descriptor
from compat.protobuf.model import SCALARS, Extend, Field, File, Group, Message, is_map_entry, map_types
from compat.protobuf.names import LOCAL, Names, inside
from compat.protobuf.printer import is_readable_default, print_file
from compat.protobuf.schema import ProtobufSchema
from compat.protobuf.syntax import read_file
from compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

__all__ = ["parse"]

_MAP_KEYS: Final = SCALARS - {"bytes", "double", "float"}


def parse(
    text: str, *, strict: bool, references: Sequence[ResolvedReference] = (), limits: Limits = DEFAULT_LIMITS
) -> ProtobufSchema:
    """Read a schema; strict for a new one, lenient for one that is stored already."""
    try:
        if strict and not text.strip():
            raise SchemaParseError("Empty schema")
        check_references(references, limits)
        imports: dict[str, File] = {}
        for reference in references:
            imports.setdefault(reference.name, _read(reference.text, imports, limits))
        referenced = tuple((reference, imports[reference.name]) for reference in references)
        file = _read(text, imports, limits)
        canonical = print_file(file)
        check_printed(canonical, limits)
        schema = ProtobufSchema(SchemaFormat.PROTOBUF, canonical, file, _names(file, referenced))
        if strict:
            _Check(schema.names, limits).file(file)
    except RecursionError:
        raise SchemaParseError("The schema is nested too deeply") from None
    return schema


def _names(file: File, referenced: Sequence[tuple[ResolvedReference, File]]) -> Names:
    """What the names in a schema can mean."""
    names = Names(builtin_names())
    names.add(file, LOCAL)
    for reference, other in referenced:
        names.add(other, reference.identity or f"reference:{reference.name}")
    return names


def _read(text: str, imports: Mapping[str, File], limits: Limits) -> File:
    try:
        return read_file(text, limits)
    except OutOfTime:
        raise
    except SchemaParseError:
        file = _from_base64(text, imports)
        if file is None:
            raise
    try:
        read_file(print_file(file), limits)
    except OutOfTime:
        raise
    except SchemaParseError as error:
        raise SchemaParseError(f"The descriptor holds what no .proto file can say: {error}") from None
    return file


def _from_base64(text: str, imports: Mapping[str, File]) -> File | None:
    """The file of a descriptor in base64, with or without its padding; None for what is not even that."""
    padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
    try:
        descriptor = FileDescriptor.FromString(base64.b64decode(text + padding, validate=True))
        known = with_custom_options(descriptor, imports)
    except (binascii.Error, DecodeError, ValueError):
        return None
    return file_from_descriptor(cast("FileDescriptorProto", known))


class _Check:
    def __init__(self, names: Names, limits: Limits):
        self._names = names
        self._limits = limits

    def file(self, file: File) -> None:
        scope = file.package or ""
        for message in file.messages:
            self._message(message, inside(scope, message.name))
        for extend in file.extends:
            self._extend(extend, scope)
        for service in file.services:
            for rpc in service.rpcs:
                self._type(rpc.request, scope)
                self._type(rpc.response, scope)

    def _message(self, message: Message, scope: str) -> None:
        for field in () if is_map_entry(message) else _fields(message):
            self._field(field, scope)
        for extend in message.extends:
            self._extend(extend, scope)
        for nested in message.messages:
            self._message(nested, inside(scope, nested.name))

    def _extend(self, extend: Extend, scope: str) -> None:
        self._type(extend.name, scope)
        for field in extend.fields:
            self._field(field, scope)

    def _field(self, field: Field, scope: str) -> None:
        if not is_readable_default(field):
            raise SchemaParseError(f"The default of {field.type[:60]} field {field.name[:60]} is no word")
        types = map_types(field.type)
        if types is None:
            self._type(field.type, scope)
        while types is not None:
            key, value = types
            if key not in _MAP_KEYS:
                raise SchemaParseError(f"map key must be non-byte, non-floating point scalar: {key[:200]}")
            types = map_types(value)

    def _type(self, name: str, scope: str) -> None:
        self._limits.look_at_clock()
        if name not in SCALARS and self._names.type_of(name, scope) is None:
            raise SchemaParseError(f"Could not resolve type: {name[:200]}")


def _fields(message: Message) -> Iterator[Field]:
    yield from message.fields
    for group in message.groups:
        yield from _group_fields(group)
    for oneof in message.oneofs:
        yield from oneof.fields
        for group in oneof.groups:
            yield from _group_fields(group)


def _group_fields(group: Group) -> Iterator[Field]:
    yield from group.fields
