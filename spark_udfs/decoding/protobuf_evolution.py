"""Schema evolution of Protobuf: reads messages of a writer schema as the reader's message. Fields match by number.

Protobuf silently drops, as unknown, a field that the two schemas encode differently, and truncates a wider number. Here
the first is an error before anything is read. For the second, the writer's number type is read, and the column, which
has the reader's type, rejects what it cannot hold.

Rules of this file: descriptors in, descriptors out; no registry and no payloads.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from strata.serdes.errors import DecodeReason
from strata.serdes.protobuf.files import copied, entry_of

__all__ = ["FieldMismatch", "class_to_read"]

_T = FieldDescriptor
_ENCODINGS: Final[dict[int, str]] = {
    **dict.fromkeys((_T.TYPE_INT32, _T.TYPE_UINT32, _T.TYPE_INT64, _T.TYPE_UINT64), "varint"),
    **dict.fromkeys((_T.TYPE_BOOL, _T.TYPE_ENUM), "varint"),
    **dict.fromkeys((_T.TYPE_SINT32, _T.TYPE_SINT64), "zigzag"),
    **dict.fromkeys((_T.TYPE_FIXED32, _T.TYPE_SFIXED32), "fixed32"),
    **dict.fromkeys((_T.TYPE_FIXED64, _T.TYPE_SFIXED64), "fixed64"),
    **dict.fromkeys((_T.TYPE_STRING, _T.TYPE_BYTES), "bytes"),
    _T.TYPE_FLOAT: "float",
    _T.TYPE_DOUBLE: "double",
    _T.TYPE_MESSAGE: "message",
    _T.TYPE_GROUP: "group",
}
"""Types with the same encoding can be read as each other."""
_NUMBERS: Final = frozenset({"varint", "zigzag", "fixed32", "fixed64"})
_NOT_NUMBERS: Final = frozenset({_T.TYPE_BOOL, _T.TYPE_ENUM})
_NAMES: Final = {
    value: name.removeprefix("TYPE_").lower() for name, value in vars(_T).items() if name.startswith("TYPE_")
}


class FieldMismatch(Exception):
    """A field that the writer encodes differently from the reader schema; no frame of the writer can be read."""

    def __init__(self, path: str, reader: str, writer: str) -> None:
        detail = f"the reader schema has {reader} where the writer schema has {writer}"
        super().__init__(f"{DecodeReason.RESOLUTION}: {detail} (at field {path})")


def class_to_read(reader: Descriptor, writer: Descriptor, names: Iterable[str]) -> type[Message]:
    """Return a message class that reads the writer's messages for the reader's columns.

    Args:
        reader: the message that the columns are made of.
        writer: the message that was written, with the same name.
        names: the fields of the reader that are columns; other fields need not agree.

    Raises:
        FieldMismatch: If a field cannot be read.
    """
    comparison = _Comparison()
    columns = list(names)
    for name in columns:
        comparison.field(reader.fields_by_name[name], writer, name)
    if not comparison.is_changed and len(columns) == len(reader.fields):
        return GetMessageClass(reader)
    return GetMessageClass(_changed(reader, comparison.types, columns))


class _Comparison:
    """Compares two messages field by field; it ends because columns are never recursive."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self.is_changed = False
        self._seen: set[tuple[str, str]] = set()

    def field(self, reader: FieldDescriptor, owner: Descriptor, path: str) -> None:
        writer = owner.fields_by_number.get(reader.number)
        if writer is None:
            return
        encoding = _ENCODINGS[reader.type]
        if encoding != _ENCODINGS[writer.type] or _cardinality(reader) != _cardinality(writer):
            raise FieldMismatch(path, _describe(reader), _describe(writer))
        is_number = encoding in _NUMBERS and not _NOT_NUMBERS & {reader.type, writer.type}
        if is_number and self.types.setdefault(reader.full_name, writer.type) != writer.type:
            raise FieldMismatch(path, _describe(reader), "several types")
        if is_number and reader.type != writer.type:
            self.is_changed = True
        if reader.message_type is not None and writer.message_type is not None:
            self._message(reader.message_type, writer.message_type, path)

    def _message(self, reader: Descriptor, writer: Descriptor, path: str) -> None:
        pair = (reader.full_name, writer.full_name)
        if pair in self._seen:
            return
        self._seen.add(pair)
        for field in reader.fields:
            self.field(field, writer, f"{path}.{field.name}")


def _cardinality(field: FieldDescriptor) -> str:
    """Return a field's cardinality, as far as reader and writer must agree.

    Single and repeated bytes or messages can be read as each other (the last one counts); numbers, which may be packed,
    cannot.
    """
    if entry_of(field) is not None:
        return "map"
    is_single = not field.is_repeated or _ENCODINGS[field.type] in ("bytes", "message", "group")
    return "" if is_single else "repeated "


def _describe(field: FieldDescriptor) -> str:
    type_name = field.message_type.full_name if field.message_type is not None else _NAMES[field.type]
    return "a map" if entry_of(field) is not None else f"{'repeated ' if field.is_repeated else ''}{type_name}"


def _changed(message: Descriptor, types: dict[str, int], columns: Sequence[str]) -> Descriptor:
    """Return a copy of the message with only these fields, in which some fields at any level have other types."""
    outer = message.full_name

    def change(file: FileDescriptorProto) -> None:
        for inner in file.message_type:
            _change(inner, f"{file.package}.{inner.name}".lstrip("."))

    def _change(message: DescriptorProto, name: str) -> None:
        if name == outer:
            _keep(message, columns)
        for field in message.field:
            kind: Any = types.get(f"{name}.{field.name}")
            if kind is not None:
                field.type = kind
        for inner in message.nested_type:
            _change(inner, f"{name}.{inner.name}")

    return copied(message, change)


def _keep(message: DescriptorProto, names: Sequence[str]) -> None:
    """Drop the other fields, which need not be parsed, and oneofs that are left without a column.

    The other members of a oneof stay, since they unset those that are columns, but what they hold is not parsed.
    """
    chosen = {_oneof(field) for field in message.field if field.name in names}
    used = sorted(index for index in chosen if index is not None)
    kept = [field for field in message.field if field.name in names or _oneof(field) in used]
    for field in kept:
        if field.name not in names and field.type in (_T.TYPE_MESSAGE, _T.TYPE_STRING):
            field.type = FieldDescriptorProto.TYPE_BYTES
            field.ClearField("type_name")
            field.ClearField("default_value")
        if _oneof(field) is not None:
            field.oneof_index = used.index(field.oneof_index)
    oneofs = [message.oneof_decl[index] for index in used]
    del message.field[:], message.oneof_decl[:]
    message.field.extend(kept)
    message.oneof_decl.extend(oneofs)


def _oneof(field: FieldDescriptorProto) -> int | None:
    return field.oneof_index if field.HasField("oneof_index") else None
