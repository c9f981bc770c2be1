"""Decodes a Protobuf message by its .proto file. A field that the file does not know is shown by its number.

It refuses what the deserializer (`strata.serdes.protobuf`) refuses; a test compares the two on damaged records.

Source: the encoding page of protobuf.dev: tags, wire types, packed fields, maps as messages, groups.
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence

from strata.compat.protobuf.model import Enum, Field, Message, is_map_entry, map_types
from strata.compat.protobuf.names import Known, inside
from strata.compat.protobuf.schema import ProtobufSchema
from strata.registry.features.decoding.parts import Broken, Cursor
from strata.strict_json import Json

__all__ = ["decode_protobuf"]

_VARINT, _64_BITS, _SIZED, _GROUP, _GROUP_END, _32_BITS = range(6)
_LONGEST_UNKNOWN = 100
_BITS_32, _BITS_64 = 1 << 32, 1 << 64


def decode_protobuf(schema: ProtobufSchema, indexes: Sequence[int], cursor: Cursor) -> Json:
    """Return the message at the cursor as JSON; bytes are hex texts.

    Args:
        schema: the file.
        indexes: the path to the message in the file, outermost first.
        cursor: the place of the message; it ends where the record does.

    Raises:
        Broken: the bytes are not a message of the file.
    """
    messages: Sequence[Message] = list(schema.file.messages)
    full = schema.file.package or ""
    named: Message | None = None
    for index in indexes:
        if not 0 <= index < len(messages):
            raise Broken(
                cursor.offset, "", f"expected a message of the file from 0 to {len(messages) - 1}, got {index}"
            )
        named = messages[index]
        full = inside(full, named.name)
        messages = [message for message in named.messages if not is_map_entry(message)]
    if named is None:
        raise Broken(cursor.offset, "", "expected a path to a message")
    return _Decoder(schema, cursor).message(named, full, "")


class _Decoder:
    def __init__(self, schema: ProtobufSchema, cursor: Cursor) -> None:
        self._names = schema.names
        self._cursor = cursor

    def message(self, message: Message, full: str, path: str, group: int | None = None) -> dict[str, Json]:
        """Return a message that ends where the cursor does, or with the end of its group."""
        cursor, fields = self._cursor, _fields(message)
        values: dict[str, Json] = {}
        cursor.descend(path)
        while cursor.offset < cursor.end or group is not None:
            cursor.step(path)
            start = cursor.offset
            tag = cursor.varint(path, "the tag of a field")
            number, wire = tag >> 3, tag & 7
            if wire == _GROUP_END and number == group:
                break
            if not 0 < number < 1 << 29 or wire > _32_BITS or wire == _GROUP_END:
                raise Broken(start, path, f"expected the tag of a field, got number {number} with wire type {wire}")
            field = fields.get(number)
            if field is None:
                self._unknown(values, number, wire, path)
            else:
                self._field(values, field, wire, full, f"{path}.{field.name}".lstrip("."), start)
        cursor.ascend()
        return values

    def _field(self, into: dict[str, Json], field: Field, wire: int, full: str, path: str, start: int) -> None:
        types = map_types(field.type)
        if types is not None:
            if wire != _SIZED:
                raise Broken(start, path, f"expected an entry of {field.type}, got wire type {wire}")
            entries = into.setdefault(field.name, {})
            self._within(path, "an entry", lambda: self._entry(entries, types, full, path))
            return
        known = None if field.type in _SCALARS else self._names.type_of(field.type, full)
        type_name = "enum" if known is not None and known.is_enum else field.type
        values: list[Json] = []
        is_packed = (
            wire == _SIZED
            and field.label == "repeated"
            and (type_name == "enum" or _SCALARS.get(type_name, _PLAIN)[0] != _SIZED)
        )
        if is_packed and (type_name == "enum" or type_name in _SCALARS):
            self._within(path, "packed values", lambda: self._packed(values, type_name, known, path))
        else:
            values.append(self._value(type_name, known, wire, path, start, field.tag))
        if field.label == "repeated":
            held = into.setdefault(field.name, [])
            if isinstance(held, list):
                held += values
        elif values:
            into[field.name] = values[0]

    def _packed(self, values: list[Json], type_name: str, known: Known | None, path: str) -> None:
        while self._cursor.offset < self._cursor.end:
            self._cursor.step(path)
            start = self._cursor.offset
            values.append(self._value(type_name, known, _wire(type_name), f"{path}[{len(values)}]", start, 0))

    def _entry(self, entries: Json, types: tuple[str, str], full: str, path: str) -> None:
        pair: dict[str, Json] = {}
        key, value = (
            Field("optional", type_name, name, tag)
            for tag, name, type_name in zip((1, 2), ("key", "value"), types, strict=True)
        )
        entry = Message("entry", (key, value))
        start = self._cursor.offset
        pair = self.message(entry, full, path)
        if unknown := next((name for name in pair if name not in ("key", "value")), None):
            # Google's library, and so the deserializer, gives up such an entry as a whole.
            raise Broken(start, path, f"expected a key and a value in the entry of a map, got an {unknown}")
        if isinstance(entries, dict):
            entries[str(pair.get("key", ""))] = pair.get("value")

    def _value(self, type_name: str, known: Known | None, wire: int, path: str, start: int, number: int) -> Json:
        if type_name in _SCALARS or type_name == "enum":
            if wire != _wire(type_name):
                raise Broken(start, path, f"expected {type_name} (wire type {_wire(type_name)}), got wire type {wire}")
            return self._scalar(type_name, known, path)
        definition = known.definition if known is not None else None
        if known is None or not isinstance(definition, Message):
            raise Broken(start, path, f"the schema does not define the type {type_name}")
        if wire == _GROUP:
            return self.message(definition, known.full, path, number)
        if wire != _SIZED:
            raise Broken(start, path, f"expected a message {type_name} (wire type 2), got wire type {wire}")
        decoded: list[Json] = []
        self._within(path, f"a message {type_name}", lambda: decoded.append(self.message(definition, known.full, path)))
        return decoded[0]

    def _scalar(self, type_name: str, known: Known | None, path: str) -> Json:
        cursor, start = self._cursor, self._cursor.offset
        if type_name == "enum":
            number = _signed(cursor.varint(path, "an enum"), _BITS_32)
            value: Json = _symbol(known, number)
        else:
            value = _SCALARS[type_name][1](cursor, path)
        cursor.note(start, path, known.relative if known is not None else type_name, value)
        return value

    def _within(self, path: str, what: str, read: Callable[[], None]) -> None:
        """Read something that is preceded by its size, and check that it fills it."""
        cursor = self._cursor
        start = cursor.offset
        size = cursor.varint(path, f"the size of {what}")
        if size > cursor.end - cursor.offset:
            left = cursor.end - cursor.offset
            raise Broken(
                start,
                path,
                f"expected {what} of {size} bytes, but only {left} {'byte is' if left == 1 else 'bytes are'} left",
            )
        end, cursor.end = cursor.end, cursor.offset + size
        read()
        cursor.end = end

    def _unknown(self, into: dict[str, Json], number: int, wire: int, path: str) -> None:
        """Read a field that the schema lacks."""
        cursor, name = self._cursor, f"{path}.{number}".lstrip(".")
        start = cursor.offset
        if wire == _GROUP:
            self.message(Message("group"), "", name, number)
            return
        if wire == _VARINT:
            value: Json = cursor.varint(name, "an unknown number")
        else:
            size = {_64_BITS: 8, _32_BITS: 4}.get(wire)
            size = cursor.varint(name, "the size of an unknown field") if size is None else size
            value = f"0x{cursor.take(size, name, 'an unknown field')[:_LONGEST_UNKNOWN].hex()}"
        cursor.note(start, name, "unknown field", value)
        into[f"unknown field {number}"] = value


def _fields(message: Message) -> dict[int, Field]:
    fields = {field.tag: field for field in message.all_fields}
    groups = [*message.groups, *(group for oneof in message.oneofs for group in oneof.groups)]
    return fields | {group.tag: Field(group.label, group.name, group.name.lower(), group.tag) for group in groups}


def _symbol(known: Known | None, number: int) -> Json:
    constants = known.definition.constants if known is not None and isinstance(known.definition, Enum) else ()
    return next((constant.name for constant in constants if constant.tag == number), number)


def _wire(type_name: str) -> int:
    return _VARINT if type_name == "enum" else _SCALARS[type_name][0]


def _signed(value: int, size: int) -> int:
    value %= size
    return value - size if value >= size >> 1 else value


def _number(form: str, size: int) -> Callable[[Cursor, str], Json]:
    def read(cursor: Cursor, path: str) -> Json:
        value: int | float = struct.unpack(form, cursor.take(size, path, "a number"))[0]
        return value if isinstance(value, int) or math.isfinite(value) else str(value)

    return read


def _varint(change: Callable[[int], Json]) -> Callable[[Cursor, str], Json]:
    return lambda cursor, path: change(cursor.varint(path, "a number"))


def _sized(cursor: Cursor, path: str, what: str) -> bytes:
    return cursor.take(cursor.varint(path, f"the size of {what}"), path, what)


def _string(cursor: Cursor, path: str) -> Json:
    taken = _sized(cursor, path, "a string")
    try:
        return taken.decode()
    except UnicodeDecodeError as error:
        at = cursor.offset - len(taken) + error.start
        raise Broken(at, path, f"expected UTF-8 in a string: {error.reason}") from None


_PLAIN: tuple[int, None] = (_SIZED, None)
_ZIGZAG = _varint(lambda value: (value >> 1) ^ -(value & 1))
_SCALARS: Mapping[str, tuple[int, Callable[[Cursor, str], Json]]] = {
    "bool": (_VARINT, _varint(bool)),
    "int32": (_VARINT, _varint(lambda value: _signed(value, _BITS_32))),
    "int64": (_VARINT, _varint(lambda value: _signed(value, _BITS_64))),
    "uint32": (_VARINT, _varint(lambda value: value % _BITS_32)),
    "uint64": (_VARINT, _varint(lambda value: value)),
    "sint32": (_VARINT, _ZIGZAG),
    "sint64": (_VARINT, _ZIGZAG),
    "fixed32": (_32_BITS, _number("<I", 4)),
    "fixed64": (_64_BITS, _number("<Q", 8)),
    "sfixed32": (_32_BITS, _number("<i", 4)),
    "sfixed64": (_64_BITS, _number("<q", 8)),
    "float": (_32_BITS, _number("<f", 4)),
    "double": (_64_BITS, _number("<d", 8)),
    "string": (_SIZED, _string),
    "bytes": (_SIZED, lambda cursor, path: f"0x{_sized(cursor, path, 'bytes').hex()}"),
}
"""The scalar types: their wire type, and what reads them."""
