"""The Protobuf parser: text, or a descriptor in base64, to schema.

As in the reference, the types of fields, extension fields, extended messages and methods must be known, and the last
two cannot be scalars. The types of map values may be unknown, and imports may lead nowhere. A stored schema may also
have unknown names, and an empty text, which is the normal form of a file with only `syntax = "proto2"`.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from strata.compat.limits import DEFAULT_LIMITS, Limits, OutOfTime, check_printed, check_references
from strata.compat.protobuf.builtin import builtin_names
from strata.compat.protobuf.custom_options import with_custom_options
from strata.compat.protobuf.descriptor_class import FileDescriptor
from strata.compat.protobuf.from_descriptor import file_from_descriptor
from strata.compat.protobuf.model import SCALARS, Extend, Field, File, Message, is_map_entry, map_types
from strata.compat.protobuf.names import LOCAL, Names, inside
from strata.compat.protobuf.printer import is_readable_default, print_file
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.syntax import read_file
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

__all__ = ["parse"]

_MAP_KEYS: Final = SCALARS - {"bytes", "double", "float"}


def parse(
    text: str, *, strict: bool, references: Sequence[ResolvedReference] = (), limits: Limits = DEFAULT_LIMITS
) -> ProtobufSchema:
    """Parse a schema.

    Args:
        text: A .proto file, or a `FileDescriptorProto` in base64.
        strict: Apply the rules for a new schema; a stored schema is read leniently.
        references: The referenced schemas, each after those that it refers to.
        limits: Bounds on size and time.

    Raises:
        SchemaParseError: The text or a reference is not a valid schema or exceeds a bound.
        OutOfTime: The time of `limits` ran out.
    """
    try:
        if strict and not text.strip():
            raise SchemaParseError("The schema is empty; expected a .proto file or a descriptor in base64")
        check_references(references, limits)
        imports: dict[str, File] = {}
        for reference in references:
            imports.setdefault(reference.name, _read(reference.text, imports, limits))
        referenced = tuple((reference, imports[reference.name]) for reference in references)
        file = _read(text, imports, limits)
        canonical = print_file(file, limits)
        check_printed(canonical, limits)
        schema = ProtobufSchema(SchemaFormat.PROTOBUF, canonical, file, _names(file, referenced), imports, text)
        if strict:
            _Check(schema.names, limits).file(file)
    except RecursionError:
        raise SchemaParseError("The schema is nested too deeply") from None
    return schema


def _names(file: File, referenced: Sequence[tuple[ResolvedReference, File]]) -> Names:
    """Return the names of a schema and everything that it may use."""
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
        read_file(print_file(file, limits), limits)
    except OutOfTime:
        raise
    except SchemaParseError as error:
        raise SchemaParseError(f"Cannot write the descriptor as a .proto file: {error}") from None
    return file


def _from_base64(text: str, imports: Mapping[str, File]) -> File | None:
    """Return the file of a descriptor in base64, with or without padding, or None if the text is not one."""
    padding = "" if text.endswith("=") else "=" * (-len(text) % 4)
    try:
        descriptor = FileDescriptor.FromString(base64.b64decode(text + padding, validate=True))
        known = with_custom_options(descriptor, imports)
    except (binascii.Error, DecodeError, ValueError):
        return None
    return file_from_descriptor(cast("FileDescriptorProto", known))


class _Check:
    """The check that the types are known where they must be."""

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
                self._named(rpc.request, scope, f"request of method {service.name}.{rpc.name}")
                self._named(rpc.response, scope, f"response of method {service.name}.{rpc.name}")

    def _message(self, message: Message, scope: str) -> None:
        for field in () if is_map_entry(message) else _fields(message):
            self._field(field, scope)
        for extend in message.extends:
            self._extend(extend, scope)
        for nested in message.messages:
            self._message(nested, inside(scope, nested.name))

    def _extend(self, extend: Extend, scope: str) -> None:
        self._named(extend.name, scope, "extend block")
        for field in extend.fields:
            self._field(field, scope)

    def _field(self, field: Field, scope: str) -> None:
        place = f"field {inside(scope, field.name)}"
        if not is_readable_default(field):
            raise _fault(f"A default of {field.type[:60]} must be one word of letters, digits, '_', '-' and '.'", place)
        types = map_types(field.type)
        if types is None and field.name.startswith("."):  # in print the name would look like a part of the type
            raise _fault("The name of a field must not begin with a dot", place)
        if types is None and field.type not in SCALARS:
            self._named(field.type, scope, place)
        while types is not None:
            key, value = types
            if key not in _MAP_KEYS:
                raise _fault(f"Expected an integer, a bool or a string as key of a map, got {key[:200]}", place)
            types = map_types(value)

    def _named(self, name: str, scope: str, place: str) -> None:
        """Refuse an unknown name of a message or enum."""
        self._limits.look_at_clock()
        if self._names.type_of(name, scope) is not None:
            return
        if name in SCALARS or map_types(name) is not None:
            raise _fault(f"Expected a message, got {name[:200]}", place)
        raise _fault(f"Unknown type {name[:200]}; define it, or add a reference to the schema that defines it", place)


def _fault(message: str, place: str) -> SchemaParseError:
    return SchemaParseError(f"{message} ({place[:200]})")


def _fields(message: Message) -> Iterator[Field]:
    yield from message.all_fields
    for group in (*message.groups, *(group for oneof in message.oneofs for group in oneof.groups)):
        yield from group.fields
