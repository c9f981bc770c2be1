"""Conversion of a `FileDescriptorProto` to the tree, so that a schema that came as a descriptor has a text as well.

Type names stay full, with their leading dot. As in the reference, map entries stay messages; `normalize` turns them
into maps.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as Options

from strata.compat.protobuf import model
from strata.compat.schema import SchemaParseError

__all__ = ["file_from_descriptor"]

_Type = pb.FieldDescriptorProto.Type
_LABELS: Final[Mapping[int, str]] = {
    pb.FieldDescriptorProto.LABEL_OPTIONAL: "optional",
    pb.FieldDescriptorProto.LABEL_REQUIRED: "required",
    pb.FieldDescriptorProto.LABEL_REPEATED: "repeated",
}
_SYNTAXES: Final[Mapping[str, str | None]] = {"": None, "proto2": "proto2", "proto3": "proto3"}


def file_from_descriptor(descriptor: pb.FileDescriptorProto) -> model.File:
    """Return the tree of a descriptor.

    Raises:
        SchemaParseError: The descriptor's syntax is neither proto2 nor proto3.
    """
    if descriptor.syntax not in _SYNTAXES:
        raise SchemaParseError(f"The descriptor has the syntax {descriptor.syntax[:60]!r}; expected proto2 or proto3")
    messages = _Messages(descriptor)
    public, weak = set(descriptor.public_dependency), set(descriptor.weak_dependency)
    paths = list(enumerate(descriptor.dependency))
    return model.File(
        descriptor.package if descriptor.HasField("package") else None,
        _SYNTAXES[descriptor.syntax],
        tuple(path for number, path in paths if number not in public | weak),
        tuple(path for number, path in paths if number in public),
        tuple(path for number, path in paths if number in weak),
        (*map(messages.message, descriptor.message_type), *map(_enum, descriptor.enum_type)),
        tuple(map(_service, descriptor.service)),
        messages.extends(descriptor.extension),
        _options(descriptor),
    )


class _Messages:
    """The reader of the messages and extensions of one file."""

    def __init__(self, descriptor: pb.FileDescriptorProto):
        self._is_proto3 = descriptor.syntax == "proto3"

    def message(self, message: pb.DescriptorProto) -> model.Message:
        groups = {_group_name(field) for field in (*message.field, *message.extension) if _is_group(field)}
        top = [field for field in message.field if not field.HasField("oneof_index") or field.proto3_optional]
        members: dict[int, list[pb.FieldDescriptorProto]] = {}
        for field in message.field:
            if field.HasField("oneof_index") and not field.proto3_optional:
                members.setdefault(field.oneof_index, []).append(field)
        synthetic = {field.oneof_index for field in message.field if field.proto3_optional}
        return model.Message(
            message.name,
            self._fields(top),
            tuple(
                self._oneof(oneof, members.get(number, ()), message.nested_type)
                for number, oneof in enumerate(message.oneof_decl)
                if number not in synthetic
            ),
            self._groups(top, message.nested_type),
            (
                *(self.message(nested) for nested in message.nested_type if nested.name not in groups),
                *map(_enum, message.enum_type),
            ),
            _options(message),
            (
                *(model.Reserved((_range(part.start, part.end - 1),)) for part in message.reserved_range),
                *(model.Reserved((name,)) for name in message.reserved_name),
            ),
            tuple(
                model.Extensions((_range(part.start, part.end - 1),), _options(part))
                for part in message.extension_range
            ),
            self.extends(message.extension),
        )

    def extends(self, fields: Iterable[pb.FieldDescriptorProto]) -> tuple[model.Extend, ...]:
        """Return one block for each extended type, in order of first occurrence."""
        blocks: dict[str, list[pb.FieldDescriptorProto]] = {}
        for field in fields:
            blocks.setdefault(field.extendee, []).append(field)
        return tuple(model.Extend(name, self._fields(block)) for name, block in blocks.items())

    def _oneof(
        self,
        oneof: pb.OneofDescriptorProto,
        fields: Sequence[pb.FieldDescriptorProto],
        types: Iterable[pb.DescriptorProto],
    ) -> model.OneOf:
        members = (replace(field, label=None) for field in self._fields(fields))
        groups = (replace(group, label=None) for group in self._groups(fields, types))
        return model.OneOf(oneof.name, tuple(members), tuple(groups), _options(oneof))

    def _groups(
        self, fields: Iterable[pb.FieldDescriptorProto], types: Iterable[pb.DescriptorProto]
    ) -> tuple[model.Group, ...]:
        bodies = {message.name: message.field for message in types}
        return tuple(
            model.Group(
                _LABELS[field.label],
                _group_name(field),
                field.number,
                tuple(map(self._field, bodies.get(_group_name(field), ()))),
            )
            for field in fields
            if _is_group(field)
        )

    def _fields(self, fields: Iterable[pb.FieldDescriptorProto]) -> tuple[model.Field, ...]:
        return tuple(self._field(field) for field in fields if not _is_group(field))

    def _field(self, field: pb.FieldDescriptorProto) -> model.Field:
        is_plain = (
            field.label == pb.FieldDescriptorProto.LABEL_OPTIONAL and self._is_proto3 and not field.proto3_optional
        )
        return model.Field(
            None if is_plain else _LABELS[field.label],
            field.type_name or _Type.Name(field.type).removeprefix("TYPE_").lower(),
            field.name,
            field.number,
            _options(field),
            field.default_value if field.HasField("default_value") else None,
            field.json_name if field.HasField("json_name") else None,
        )


def _is_group(field: pb.FieldDescriptorProto) -> bool:
    return field.type == _Type.TYPE_GROUP


def _group_name(field: pb.FieldDescriptorProto) -> str:
    return field.type_name.rpartition(".")[2]


def _enum(enum: pb.EnumDescriptorProto) -> model.Enum:
    return model.Enum(
        enum.name,
        tuple(model.Constant(value.name, value.number, _options(value)) for value in enum.value),
        _options(enum),
        (
            *(model.Reserved((_constants(part.start, part.end),)) for part in enum.reserved_range),
            *(model.Reserved((name,)) for name in enum.reserved_name),
        ),
    )


def _service(service: pb.ServiceDescriptorProto) -> model.Service:
    return model.Service(service.name, tuple(map(_rpc, service.method)), _options(service))


def _rpc(method: pb.MethodDescriptorProto) -> model.Rpc:
    return model.Rpc(
        method.name,
        method.input_type,
        method.output_type,
        method.client_streaming,
        method.server_streaming,
        _options(method),
    )


def _range(first: int, last: int) -> int | model.Range:
    return first if first == last else (first, last)


def _constants(first: int, last: int) -> int | model.Range:
    """Return a range of constants; a text writes `max` for both the largest tag and the largest constant."""
    return _range(first, model.LARGEST_TAG if last == model.LARGEST_CONSTANT else last)


def _options(described: Options) -> tuple[model.Option, ...]:
    holder: Options = described.options  # type: ignore[attr-defined]
    options: list[model.Option] = []
    for field, value in holder.ListFields():
        if field.name == "uninterpreted_option":
            options += map(_uninterpreted, value)
            continue
        name = field.full_name if field.is_extension else field.name
        values = value if field.is_repeated else (value,)
        options += (model.Option(name, _value(field, single), field.is_extension) for single in values)
    return tuple(options)


def _value(field: FieldDescriptor, value: object) -> model.Value:
    if isinstance(value, Options):
        return model.MapValue(tuple(_entry(inner, content) for inner, content in value.ListFields()))
    if field.enum_type is not None and isinstance(value, int):
        constant = field.enum_type.values_by_number.get(value)
        return (
            model.Scalar(model.Kind.NUMBER, str(value))
            if constant is None
            else model.Scalar(model.Kind.ENUM, constant.name)
        )
    if isinstance(value, bool):
        return model.Scalar(model.Kind.BOOLEAN, str(value).lower())
    if isinstance(value, bytes):
        return model.Scalar(model.Kind.STRING, value.decode("latin-1"))
    if isinstance(value, float):
        return model.Scalar(model.Kind.NUMBER, _float(field, value))
    return model.Scalar(model.Kind.STRING if isinstance(value, str) else model.Kind.NUMBER, str(value))


def _float(field: FieldDescriptor, value: float) -> str:
    """Return the fewest digits that read back to the number; a `float` needs fewer than a `double`."""
    is_single = field.type == FieldDescriptor.TYPE_FLOAT
    short = (f"{value:.{digits}g}" for digits in range(6, 10)) if is_single else ()
    text = next((text for text in short if _single(text) == value), str(value))
    return text.replace("e+", "e")


def _single(text: str) -> float:
    return float(struct.unpack("f", struct.pack("f", float(text)))[0])


def _entry(field: FieldDescriptor, content: object) -> tuple[str, model.Value]:
    name = f"[{field.full_name}]" if field.is_extension else field.name
    if not field.is_repeated:
        return name, _value(field, content)
    return name, model.ListValue(tuple(_value(field, single) for single in content))  # type: ignore[attr-defined]


def _uninterpreted(option: pb.UninterpretedOption) -> model.Option:
    first, *rest = option.name
    path = tuple(f"({part.name_part})" if part.is_extension else part.name_part for part in rest)
    if option.HasField("identifier_value"):
        word = option.identifier_value
        value = model.Scalar(model.Kind.BOOLEAN if word in ("true", "false") else model.Kind.ENUM, word)
    elif option.HasField("string_value"):
        value = model.Scalar(model.Kind.STRING, option.string_value.decode("utf-8", "replace"))
    elif option.HasField("positive_int_value"):
        value = model.Scalar(model.Kind.NUMBER, str(option.positive_int_value))
    elif option.HasField("negative_int_value"):
        value = model.Scalar(model.Kind.NUMBER, str(option.negative_int_value))
    elif option.HasField("double_value"):
        value = model.Scalar(model.Kind.NUMBER, str(option.double_value))
    else:
        value = model.Scalar(model.Kind.ENUM, option.aggregate_value)
    return model.Option(first.name_part, value, first.is_extension, path)
