"""Conversion of the tree to the `FileDescriptorProto` that `format=serialized` returns.

It is the reference's descriptor, not protoc's. The file is named `default`. Type names are as written. Members of
oneofs come before the other fields, and map entries after the other nested messages. A field without a label has no
label. A method states whether it streams, in both directions. The only custom options are Confluent's metadata. Clients
link the descriptor together with the referenced files.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message as Proto
from google.protobuf.message_factory import GetMessageClass

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf import model
from strata.compat.protobuf.confluent_files import CONFLUENT_FILES
from strata.compat.protobuf.descriptor_class import FileDescriptor, add_file, new_pool
from strata.compat.protobuf.names import Names, inside
from strata.compat.protobuf.option_values import set_extension, set_option, storable
from strata.compat.protobuf.syntax import read_file

__all__ = ["FILE_NAME", "file_to_descriptor", "metadata_pool"]

FILE_NAME: Final = "default"
_META: Final = "confluent/meta.proto"
_METADATA: Final = frozenset(f"confluent.{name}_meta" for name in ("file", "message", "field", "enum", "enum_value"))
_LABELS: Final[Mapping[str, pb.FieldDescriptorProto.Label.ValueType]] = {
    "optional": pb.FieldDescriptorProto.LABEL_OPTIONAL,
    "required": pb.FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": pb.FieldDescriptorProto.LABEL_REPEATED,
}


def file_to_descriptor(file: model.File, names: Names, limits: Limits = DEFAULT_LIMITS) -> pb.FileDescriptorProto:
    """Return the descriptor of a file.

    Args:
        file: The file.
        names: The names to which types and options resolve.
        limits: Bounds on time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Writer(file, names, limits).file()


class _Writer:
    def __init__(self, file: model.File, names: Names, limits: Limits):
        self._limits = limits
        self._file = file
        self._names = names
        self._is_proto3 = file.syntax == "proto3"

    def file(self) -> pb.FileDescriptorProto:
        file = self._file
        scope = file.package or ""
        target = FileDescriptor(name=FILE_NAME)
        if file.package is not None:
            target.package = file.package
        imports = list(dict.fromkeys((*file.imports, *file.public_imports)))
        target.dependency.extend(imports)
        index = {path: number for number, path in enumerate(imports)}
        target.public_dependency.extend(index[path] for path in dict.fromkeys(file.public_imports))
        for message in file.messages:
            self._message(message, target.message_type.add(), inside(scope, message.name))
        for enum in file.enums:
            self._enum(enum, target.enum_type.add(), scope)
        for extend in file.extends:
            self._extend(extend, target.extension.add, scope)
        for service in file.services:
            self._service(service, target.service.add(), scope)
        self._options(file.options, target, scope)
        if file.syntax:
            target.syntax = file.syntax
        return target

    def _message(self, message: model.Message, target: pb.DescriptorProto, scope: str) -> None:
        target.name = message.name
        for nested in message.messages:
            self._message(nested, target.nested_type.add(), inside(scope, nested.name))
        for enum in message.enums:
            self._enum(enum, target.enum_type.add(), scope)
        for index, oneof in enumerate(message.oneofs):
            self._oneof(oneof, index, target, scope)
        for field in message.fields:
            self._plain_field(field, target, scope)
        for group in message.groups:
            self._group(group, target.field.add(), target.nested_type.add(), scope)
        for extend in message.extends:
            self._extend(extend, target.extension.add, scope)
        for statement in message.extensions:
            self._extensions(statement, target, scope)
        for first, last in _reserved_ranges(message, target):
            target.reserved_range.add(start=first, end=last + 1)
        self._options(message.options, target, scope)

    def _oneof(self, oneof: model.OneOf, index: int, target: pb.DescriptorProto, scope: str) -> None:
        declaration = target.oneof_decl.add(name=oneof.name)
        declaration.options.SetInParent()
        self._options(oneof.options, declaration, scope)
        for field in oneof.fields:
            member = target.field.add()
            self._field(field, member, scope)
            member.label = pb.FieldDescriptorProto.LABEL_OPTIONAL
            member.oneof_index = index
        for group in oneof.groups:
            member = target.field.add()
            self._group(group, member, target.nested_type.add(), scope)
            member.oneof_index = index

    def _plain_field(self, field: model.Field, target: pb.DescriptorProto, scope: str) -> None:
        types = model.map_types(field.type)
        if types is not None:
            self._map(field, types, target, scope)
            return
        written = target.field.add()
        self._field(field, written, scope)
        if self._is_proto3 and field.label == "optional":
            written.proto3_optional = True
            written.oneof_index = len(target.oneof_decl)
            target.oneof_decl.add(name=f"_{field.name}")

    def _map(self, field: model.Field, types: tuple[str, str], target: pb.DescriptorProto, scope: str) -> None:
        name = entry_name(field.name)
        written = target.field.add(name=field.name, number=field.tag, label=pb.FieldDescriptorProto.LABEL_REPEATED)
        written.type_name = name
        self._attributes(field, written, scope)
        entry = target.nested_type.add(name=name)
        for number, (part, type_name) in enumerate(zip(("key", "value"), types, strict=True), start=1):
            self._type(type_name, entry.field.add(name=part, number=number), scope)
        entry.options.map_entry = True

    def _field(self, field: model.Field, target: pb.FieldDescriptorProto, scope: str) -> None:
        target.name, target.number = field.name, field.tag
        if field.label:
            target.label = _LABELS[field.label]
        self._type(field.type, target, scope)
        self._attributes(field, target, scope)

    def _attributes(self, field: model.Field, target: pb.FieldDescriptorProto, scope: str) -> None:
        if field.default is not None:
            target.default_value = storable(field.default)
        if field.json_name is not None:
            target.json_name = storable(field.json_name)
        self._options(field.options, target, scope)

    def _type(self, name: str, target: pb.FieldDescriptorProto, scope: str) -> None:
        self._limits.look_at_clock()
        if name in model.SCALARS:
            target.type = pb.FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
            return
        target.type_name = name
        known = self._names.type_of(name, scope)
        if known is not None:
            target.type = pb.FieldDescriptorProto.TYPE_ENUM if known.is_enum else pb.FieldDescriptorProto.TYPE_MESSAGE

    def _group(self, group: model.Group, target: pb.FieldDescriptorProto, body: pb.DescriptorProto, scope: str) -> None:
        target.name, target.number = group.name.lower(), group.tag
        target.label = _LABELS[group.label or "optional"]
        target.type = pb.FieldDescriptorProto.TYPE_GROUP
        target.type_name = body.name = group.name
        for field in group.fields:
            self._plain_field(field, body, inside(scope, group.name))

    def _extend(self, extend: model.Extend, add: Callable[..., pb.FieldDescriptorProto], scope: str) -> None:
        for field in extend.fields:
            target = add(extendee=extend.name)
            self._field(field, target, scope)
            if self._is_proto3 and field.label == "optional":
                target.proto3_optional = True

    def _extensions(self, statement: model.Extensions, target: pb.DescriptorProto, scope: str) -> None:
        for value in statement.values:
            first, last = model.bounds(value)
            written = target.extension_range.add(start=first, end=last + 1)
            self._options(statement.options, written, scope)

    def _enum(self, enum: model.Enum, target: pb.EnumDescriptorProto, scope: str) -> None:
        target.name = enum.name
        for constant in enum.constants:
            self._options(constant.options, target.value.add(name=constant.name, number=constant.tag), scope)
        for first, last in _reserved_ranges(enum, target):
            target.reserved_range.add(start=first, end=model.LARGEST_CONSTANT if last == model.LARGEST_TAG else last)
        self._options(enum.options, target, scope)

    def _service(self, service: model.Service, target: pb.ServiceDescriptorProto, scope: str) -> None:
        target.name = service.name
        for rpc in service.rpcs:
            method = target.method.add(
                name=rpc.name,
                input_type=rpc.request,
                output_type=rpc.response,
                client_streaming=rpc.request_streams,
                server_streaming=rpc.response_streams,
            )
            self._options(rpc.options, method, scope)
        self._options(service.options, target, scope)

    def _options(self, options: Iterable[model.Option], target: Proto, scope: str) -> None:
        """Set the options for which the descriptor has a field; omit unknown ones and values of the wrong type."""
        for option in options:
            self._limits.look_at_clock()
            holder: Proto = target.options  # type: ignore[attr-defined]
            value = model.in_maps(option.path, option.value)
            if not option.custom:
                set_option(holder, option.name, value)
            elif self._names.extension_of(option.name, scope) in _METADATA and isinstance(value, model.MapValue):
                holder.MergeFromString(_metadata(value))


@cache
def metadata_pool() -> DescriptorPool:
    """Return a pool of the messages of descriptors, whose options know Confluent's metadata.

    The default pool is not used, so client libraries that register files there change nothing here.
    """
    pool = new_pool()
    meta = file_to_descriptor(read_file(CONFLUENT_FILES[_META], DEFAULT_LIMITS), Names())
    meta.name = _META
    add_file(meta, pool)
    return pool


def _metadata(value: model.MapValue) -> bytes:
    """Return a message of options with only this metadata, whose tag and type are the same in all options."""
    pool = metadata_pool()
    options = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))()
    set_extension(options, pool.FindExtensionByName("confluent.field_meta"), value)
    return options.SerializeToString(deterministic=True)


def _reserved_ranges(
    definition: model.TypeDefinition, target: pb.DescriptorProto | pb.EnumDescriptorProto
) -> Iterator[model.Range]:
    """Add the reserved names of a message or enum; yield its reserved tags as ranges."""
    for reserved in definition.reserved:
        for value in reserved.values:
            if isinstance(value, str):
                target.reserved_name.append(value)
            else:
                yield model.bounds(value)


def entry_name(field: str) -> str:
    """Return the name of the entry message of a map field."""
    if "_" in field:
        field = "".join(part.capitalize() for part in field.split("_"))
    return f"{field}Entry"
