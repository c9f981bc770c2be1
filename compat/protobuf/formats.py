"""The forms in which `format=` returns a stored schema."""

import base64
from collections.abc import Iterable
from dataclasses import replace

from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.protobuf.model import Enum, Field, File, Group, Message, OneOf, Option, TypeDefinition
from strata.compat.protobuf.printer import print_file
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.protobuf.to_descriptor import file_to_descriptor

__all__ = ["ignore_extensions", "serialized"]


def serialized(schema: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the descriptor of the file in base64, for `format=serialized`.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    descriptor = file_to_descriptor(schema.file, schema.names, limits)
    return base64.b64encode(descriptor.SerializeToString(deterministic=True)).decode()


def ignore_extensions(schema: ProtobufSchema, *, limits: Limits = DEFAULT_LIMITS) -> str:
    """Return the text without custom options, `extend` blocks and extension ranges, for `format=ignore_extensions`.

    Raises:
        SchemaParseError: The text would be too long.
        OutOfTime: The time of `limits` ran out.
    """
    return print_file(_file(schema.file), limits)


def _file(file: File) -> File:
    return replace(
        file,
        types=tuple(map(_definition, file.types)),
        extends=(),
        options=_own(file.options),
        services=tuple(
            replace(
                service,
                options=_own(service.options),
                rpcs=tuple(replace(rpc, options=_own(rpc.options)) for rpc in service.rpcs),
            )
            for service in file.services
        ),
    )


def _definition(definition: TypeDefinition) -> TypeDefinition:
    if isinstance(definition, Enum):
        return replace(
            definition,
            options=_own(definition.options),
            constants=tuple(replace(constant, options=_own(constant.options)) for constant in definition.constants),
        )
    return _message(definition)


def _message(message: Message) -> Message:
    return replace(
        message,
        fields=_fields(message.fields),
        oneofs=tuple(map(_oneof, message.oneofs)),
        groups=tuple(map(_group, message.groups)),
        types=tuple(map(_definition, message.types)),
        options=_own(message.options),
        extensions=(),
        extends=(),
    )


def _oneof(oneof: OneOf) -> OneOf:
    return replace(
        oneof, fields=_fields(oneof.fields), groups=tuple(map(_group, oneof.groups)), options=_own(oneof.options)
    )


def _group(group: Group) -> Group:
    return replace(group, fields=_fields(group.fields))


def _fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(replace(field, options=_own(field.options)) for field in fields)


def _own(options: Iterable[Option]) -> tuple[Option, ...]:
    return tuple(option for option in options if not option.custom)
