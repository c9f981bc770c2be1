"""The rules for Google's own options: their names, and values that fit their types."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor

from strata.compat.protobuf.model import Kind, Option, Scalar

__all__ = ["Holder", "option_fault"]

Holder: TypeAlias = Literal[
    "FileOptions", "MessageOptions", "FieldOptions", "OneofOptions", "EnumOptions", "EnumValueOptions",
    "ServiceOptions", "MethodOptions",
]  # fmt: skip

_KINDS: Final[Mapping[int, tuple[Kind, str]]] = {
    FieldDescriptor.CPPTYPE_STRING: (Kind.STRING, "a string in quotes"),
    FieldDescriptor.CPPTYPE_BOOL: (Kind.BOOLEAN, "true or false"),
    FieldDescriptor.CPPTYPE_ENUM: (Kind.ENUM, "a constant"),
}


def option_fault(holder: Holder, option: Option, seen: set[str], *, is_proto3: bool) -> tuple[str, str] | None:
    """Return the rule that an option of Google's breaks, and a message; None if it breaks none.

    Args:
        holder: The message of options.
        option: The option.
        seen: The names of the holder's options before this one, to which this one is added.
        is_proto3: Whether the file is a proto3 file.
    """
    field = descriptor_pb2.DESCRIPTOR.message_types_by_name[holder].fields_by_name.get(option.name)
    if field is None or option.name == "uninterpreted_option":
        return "OPTION_UNKNOWN", f'The option "{option.name}" is unknown'
    if option.name == "map_entry" and option.at >= 0:
        return "OPTION_UNKNOWN", 'The option "map_entry" cannot be set; write map<KeyType, ValueType>'
    if option.name == "message_set_wire_format" and is_proto3:
        return "OPTION_UNKNOWN", 'The option "message_set_wire_format" is unknown to proto3'
    if option.path or field.message_type is not None:
        return None
    if option.name in seen and not field.is_repeated:
        return "OPTION_TWICE", f'The option "{option.name}" is set twice'
    seen.add(option.name)
    scalar_kind, expected = _KINDS.get(field.cpp_type, (Kind.NUMBER, "a number"))
    value = option.value
    fits = isinstance(value, Scalar) and value.kind is scalar_kind
    if fits and field.enum_type is not None and isinstance(value, Scalar):
        fits = value.text in field.enum_type.values_by_name
        expected = f"one of {', '.join(field.enum_type.values_by_name)}"
    return None if fits else ("OPTION_VALUE", f'The value of the option "{option.name}" must be {expected}')
