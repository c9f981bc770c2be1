"""The messages of a Protobuf schema as shapes, for the source of their classes.

Rules of this file: a linked file and its source in, shapes out.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor, OneofDescriptor

from strata.serdes.classes.markers import Field
from strata.serdes.classes.shapes import MISSING, Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import SchemaError
from strata.serdes.protobuf.files import entry_of

__all__ = ["message_shapes"]

_F: Final = FieldDescriptor
_SCALARS: Final[Mapping[int, Scalar]] = {
    _F.TYPE_BOOL: Scalar("bool"),
    _F.TYPE_STRING: Scalar("str"),
    _F.TYPE_BYTES: Scalar("bytes"),
    _F.TYPE_DOUBLE: Scalar("float"),
    _F.TYPE_FLOAT: Scalar("float32"),
    _F.TYPE_INT64: Scalar("int"),
    _F.TYPE_INT32: Scalar("int32"),
    _F.TYPE_UINT32: Scalar("int", wire="uint32"),
    _F.TYPE_UINT64: Scalar("int", wire="uint64"),
    _F.TYPE_SINT32: Scalar("int", wire="sint32"),
    _F.TYPE_SINT64: Scalar("int", wire="sint64"),
    _F.TYPE_FIXED32: Scalar("int", wire="fixed32"),
    _F.TYPE_FIXED64: Scalar("int", wire="fixed64"),
    _F.TYPE_SFIXED32: Scalar("int", wire="sfixed32"),
    _F.TYPE_SFIXED64: Scalar("int", wire="sfixed64"),
}
_KNOWN: Final[Mapping[str, str]] = {
    "google.protobuf.Timestamp": "datetime",
    "google.type.Date": "date",
    "google.type.TimeOfDay": "time",
}
_ZEROS: Final[Mapping[str, object]] = {
    "bool": False, "int": 0, "int32": 0, "float": 0.0, "float32": 0.0, "str": "", "bytes": b"",
}  # fmt: skip
_UNUSABLE: Final = re.compile(r"_.*|mro")


def message_shapes(file: FileDescriptor) -> list[Shape]:
    """Return the messages of a file as shapes, in their order.

    Raises:
        SchemaError: If a type has no class; the error names the field.
    """
    reader = _Reader(file)
    return [reader.message(message) for message in file.message_types_by_name.values()]


class _Reader:
    def __init__(self, file: FileDescriptor) -> None:
        self._file = file
        self._known: dict[str, Object | Symbols] = {}

    def message(self, message: Descriptor) -> Object:
        known = self._known.get(message.full_name)
        if isinstance(known, Object):
            return known
        made = self._known[message.full_name] = Object(None, message.full_name)
        fields = sorted(message.fields, key=lambda field: field.number)
        written = set()
        for field in fields:
            union = field.containing_oneof
            if union is None or (len(union.fields) == 1 and union.name == f"_{field.name}"):
                made.members.append(self._member(field, message.name))
            elif union.name not in written:
                written.add(union.name)
                made.members.append(self._union(union, message.name))
        return made

    def _member(self, field: FieldDescriptor, message: str) -> Member:
        where, entry = f"{message}.{field.name}", entry_of(field)
        if field.is_required:
            raise SchemaError(f"{where}: a required field has no class, since proto3 has none")
        if entry is not None:
            key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
            if key.type != _F.TYPE_STRING:
                raise SchemaError(f"{where}: a class holds only maps whose keys are strings")
            return Member(field.name, field.name, Values(self._single(value, where)), {}, number=field.number)
        shape = self._single(field, where)
        if field.is_repeated:
            return Member(field.name, field.name, Items(shape), [], number=field.number)
        if not field.has_presence:
            return Member(field.name, field.name, shape, _zero(shape), number=field.number)
        if field.has_default_value and isinstance(shape, Scalar):
            return Member(field.name, field.name, shape, field.default_value, number=field.number)
        return Member(field.name, field.name, Choice((shape, Scalar("null"))), None, number=field.number)

    def _union(self, union: OneofDescriptor, message: str) -> Member:
        branches = [self._single(field, f"{message}.{field.name}") for field in union.fields]
        fields = [Field(name=field.name, number=field.number) for field in union.fields]
        _check_apart(branches, f"{message}.{union.name}")
        return Member(union.name, union.name, Choice((*branches, Scalar("null")), (*fields, Field())), None)

    def _single(self, field: FieldDescriptor, where: str) -> Shape:
        message = field.message_type
        if field.type == _F.TYPE_GROUP:
            raise SchemaError(f"{where}: a group has no class")
        if field.enum_type is not None:
            return self._enum(field.enum_type, where)
        if message is None:
            return _SCALARS[field.type]
        if message.full_name in _KNOWN:
            return Scalar(_KNOWN[message.full_name])
        if message.file is not self._file and message.file.name != self._file.name:
            raise SchemaError(f"{where}: {message.full_name} of another file has no class")
        return self.message(message)

    def _enum(self, enum: EnumDescriptor, where: str) -> Symbols:
        known = self._known.get(enum.full_name)
        if isinstance(known, Symbols):
            return known
        if enum.file.name != self._file.name:
            raise SchemaError(f"{where}: {enum.full_name} of another file has no class")
        values = {value.number: value.name for value in reversed(enum.values)}
        values = dict(sorted(values.items()))
        front = f"{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', enum.name).upper()}_"
        parts = [name.removeprefix(front) for name in values.values()]
        has_front = all(name.startswith(front) for name in values.values()) and all(map(str.isidentifier, parts))
        symbols: Sequence[str] = parts if has_front else list(values.values())
        if bad := next((symbol for symbol in symbols if _UNUSABLE.fullmatch(symbol)), None):
            raise SchemaError(f"{where}: the value {bad} of {enum.full_name} has no name in a class")
        made = Symbols(
            enum.full_name, tuple(symbols), by_value=False, prefix=None if has_front else "", numbers=tuple(values)
        )
        self._known[enum.full_name] = made
        return made


def _zero(shape: Shape) -> object:
    if isinstance(shape, Symbols):
        return shape.symbols[shape.numbers.index(0)]
    return _ZEROS.get(shape.kind, MISSING) if isinstance(shape, Scalar) else MISSING


def _check_apart(branches: Sequence[Shape], where: str) -> None:
    names = [_python_type(branch) for branch in branches]
    if len(set(names)) < len(names):
        raise SchemaError(f"{where}: a oneof with two fields of one Python type has no class")


def _python_type(shape: Shape) -> str:
    if isinstance(shape, Object | Symbols):
        return shape.name
    return shape.kind.removesuffix("32") if isinstance(shape, Scalar) else ""
