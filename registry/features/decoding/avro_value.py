"""Decodes an Avro value by its writer schema.

It refuses what the deserializer (`strata.serdes.avro`) refuses; a test compares the two on damaged records.

Source: the Avro 1.12 specification, "Binary encoding" and "Logical types".
"""

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, TypeAlias
from uuid import UUID

from strata.compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    FixedType,
    MapType,
    Names,
    Node,
    PrimitiveType,
    Properties,
    RecordType,
    UnionType,
    resolve,
)
from strata.registry.features.decoding.parts import Broken, Cursor
from strata.strict_json import Json

__all__ = ["decode_avro"]

_MOST_DIGITS = 4096
_MOST_WEIGHTLESS = 10_000
"""Values of no bytes in the arrays of a record, as many as the deserializer reads."""
_EXACT = Context(prec=100_000)


def decode_avro(schema: AvroSchema, cursor: Cursor) -> Json:
    """Return the value at the cursor as JSON; bytes are hex texts.

    Raises:
        Broken: the bytes are not a value of the schema, or something follows it.
    """
    value = _Decoder(schema.names, cursor).value(schema.root, "")
    if cursor.offset < cursor.end:
        left = cursor.end - cursor.offset
        raise Broken(
            cursor.offset,
            "",
            f"expected the end of the record, but {left} {'byte is' if left == 1 else 'bytes are'} left",
        )
    return value


class _Decoder:
    def __init__(self, names: Names, cursor: Cursor) -> None:
        self._names = names
        self._cursor = cursor
        self._weightless = 0

    def value(self, node: Node, path: str) -> Json:
        cursor, node = self._cursor, resolve(node, self._names)
        cursor.step(path)
        if isinstance(node, PrimitiveType):
            return self._leaf(node, path)
        if isinstance(node, EnumType | FixedType):
            return self._enum(node, path) if isinstance(node, EnumType) else self._fixed(node, path)
        cursor.descend(path)
        value: Json = None
        if isinstance(node, RecordType):
            value = {field.name: self.value(field.type, f"{path}.{field.name}".lstrip(".")) for field in node.fields}
        elif isinstance(node, UnionType):
            value = self._union(node, path)
        elif isinstance(node, ArrayType):
            items: list[Json] = []
            self._blocks(path, lambda: items.append(self._item(node.items, f"{path}[{len(items)}]")))
            value = items
        elif isinstance(node, MapType):
            value = self._map(node, path)
        cursor.ascend()
        return value

    def _leaf(self, node: PrimitiveType, path: str) -> Json:
        start = self._cursor.offset
        value = _READ[node.kind](self._cursor, path)
        logical, logical_value = self._logical(node.kind, node.properties, value, start, path)
        value = (
            logical_value if logical_value is not None else f"0x{value.hex()}" if isinstance(value, bytes) else value
        )
        self._cursor.note(start, path, f"{node.kind} ({logical})" if logical_value is not None else node.kind, value)
        return value

    def _logical(
        self, type_name: str, properties: Properties, value: Json | bytes, start: int, path: str
    ) -> tuple[object, str | None]:
        """Return the logical type of a value and the value for people; None if readers apply no logical type.

        Raises:
            Broken: the value does not fit its logical type.
        """
        name = properties.get("logicalType")
        show = _LOGICAL.get((type_name, name)) if isinstance(name, str) else None
        if show is None:
            return name, None
        try:
            return name, show(value, properties)
        except (OverflowError, ValueError) as error:
            raise Broken(start, path, f"expected a {name}: {error}") from None

    def _enum(self, node: EnumType, path: str) -> Json:
        start = self._cursor.offset
        number = self._cursor.zigzag(path, f"a symbol of {node.name.full}")
        if not 0 <= number < len(node.symbols):
            raise Broken(
                start, path, f"expected a symbol of {node.name.full} from 0 to {len(node.symbols) - 1}, got {number}"
            )
        self._cursor.note(start, path, node.name.full, node.symbols[number])
        return node.symbols[number]

    def _fixed(self, node: FixedType, path: str) -> Json:
        start = self._cursor.offset
        taken = self._cursor.take(node.size, path, f"fixed {node.name.full}")
        type_name = f"fixed {node.size}" if node.properties.get("logicalType") == "uuid" else "fixed"
        _, logical_value = self._logical(type_name, node.properties, taken, start, path)
        value = f"0x{taken.hex()}" if logical_value is None else logical_value
        self._cursor.note(start, path, node.name.full, value)
        return value

    def _union(self, node: UnionType, path: str) -> Json:
        start = self._cursor.offset
        number = self._cursor.zigzag(path, "the branch of a union")
        if not 0 <= number < len(node.branches):
            raise Broken(
                start, path, f"expected a branch of the union from 0 to {len(node.branches) - 1}, got {number}"
            )
        return self.value(node.branches[number], path)

    def _map(self, node: MapType, path: str) -> Json:
        entries: dict[str, Json] = {}

        def read() -> None:
            key = _text(self._cursor, f"{path}{{}}")
            entries[key] = self.value(node.values, f"{path}{{{key[:50]}}}")

        self._blocks(path, read)
        return entries

    def _item(self, node: Node, path: str) -> Json:
        """Read an item of an array; the bytes that are left do not bound the number of those that take none."""
        cursor = self._cursor
        start, steps = cursor.offset, cursor.steps
        item = self.value(node, path)
        if cursor.offset == start:
            self._weightless += cursor.steps - steps
            if self._weightless > _MOST_WEIGHTLESS:
                raise Broken(start, path, f"the record has more than {_MOST_WEIGHTLESS} values of no bytes")
        return item

    def _blocks(self, path: str, read: Callable[[], None]) -> None:
        """Read the blocks of an array or a map; a negative count is followed by the size of its block."""
        while count := self._cursor.zigzag(path, "the number of items in a block"):
            if count < 0:
                start = self._cursor.offset
                if (size := self._cursor.zigzag(path, "the size of a block")) < 0:
                    raise Broken(start, path, f"expected the size of a block, got {size}")
            for _ in range(abs(count)):
                self._cursor.step(path)
                read()


def _integer(bits: int) -> Callable[[Cursor, str], int]:
    def read(cursor: Cursor, path: str) -> int:
        start, expected = cursor.offset, "an int" if bits == 32 else "a long"
        value = cursor.zigzag(path, expected)
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise Broken(start, path, f"expected {expected} of {bits} bits, got {value}")
        return value

    return read


def _float(form: str, size: int, noun: str) -> Callable[[Cursor, str], float | str]:
    def read(cursor: Cursor, path: str) -> float | str:
        value: float = struct.unpack(form, cursor.take(size, path, noun))[0]
        return value if math.isfinite(value) else str(value)

    return read


def _boolean(cursor: Cursor, path: str) -> bool:
    start = cursor.offset
    byte = cursor.take(1, path, "a boolean")[0]
    if byte > 1:
        raise Broken(start, path, f"expected a boolean, 0 or 1, got {byte}")
    return byte == 1


def _bytes(cursor: Cursor, path: str) -> bytes:
    return _sized(cursor, path, "bytes")


def _text(cursor: Cursor, path: str) -> str:
    start = cursor.offset
    taken = _sized(cursor, path, "a string")
    try:
        return taken.decode()
    except UnicodeDecodeError as error:
        at = cursor.offset - len(taken) + error.start
        raise Broken(at, path, f"expected UTF-8 in the string at offset {start}: {error.reason}") from None


def _sized(cursor: Cursor, path: str, what: str) -> bytes:
    start = cursor.offset
    size = cursor.zigzag(path, f"the length of {what}")
    if size < 0:
        raise Broken(start, path, f"expected the length of {what}, got {size}")
    return cursor.take(size, path, what)


_READ: Mapping[str, Callable[[Cursor, str], Json | bytes]] = {
    "null": lambda _cursor, _path: None,
    "boolean": _boolean,
    "int": _integer(32),
    "long": _integer(64),
    "float": _float("<f", 4, "a float"),
    "double": _float("<d", 8, "a double"),
    "bytes": _bytes,
    "string": _text,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MICROSECOND = 86_400_000_000 - 1
_Show: TypeAlias = Callable[[Any, Properties], str | None]


def _date(days: int, _properties: Properties) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _time(per_second: int) -> _Show:
    def show(number: int, _properties: Properties) -> str:
        micros = number * 1_000_000 // per_second
        if not 0 <= micros <= _LAST_MICROSECOND:
            raise ValueError(f"{number} is not a time of day")
        return (_EPOCH + timedelta(microseconds=micros)).time().isoformat()

    return show


def _timestamp(per_second: int, zone: str) -> _Show:
    def show(number: int, _properties: Properties) -> str:
        return (_EPOCH + timedelta(microseconds=number * 1_000_000 // per_second)).replace(
            tzinfo=None
        ).isoformat() + zone

    return show


def _nanos(zone: str) -> _Show:
    """Return what shows nanoseconds, which clients read as numbers, so that any number fits."""

    def show(number: int, properties: Properties) -> str | None:
        try:
            return _timestamp(1_000_000_000, zone)(number, properties)
        except OverflowError:
            return None

    return show


def _uuid(value: str | bytes, _properties: Properties) -> str:
    return str(UUID(value) if isinstance(value, str) else UUID(bytes=value))


def _decimal(value: bytes, properties: Properties) -> str | None:
    precision, scale = (properties.get(name, 0) for name in ("precision", "scale"))
    if not all(isinstance(size, int) and not isinstance(size, bool) for size in (precision, scale)):
        return None
    if not (precision > 0 and 0 <= scale <= precision):
        return None
    number = int.from_bytes(value, "big", signed=True)
    if abs(number) >= 10 ** min(precision, _MOST_DIGITS):
        raise ValueError(f"the number has more than {precision} digits")
    return f"{Decimal(number).scaleb(-scale, _EXACT):f}"


def _fixed_decimal(value: bytes, properties: Properties) -> str | None:
    precision = properties.get("precision")
    most = math.floor(math.log10(2) * (8 * len(value) - 1))
    return _decimal(value, properties) if isinstance(precision, int) and precision <= most else None


_LOGICAL: Mapping[tuple[str, str], _Show] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time(1_000),
    ("long", "time-micros"): _time(1_000_000),
    ("long", "timestamp-millis"): _timestamp(1_000, "Z"),
    ("long", "timestamp-micros"): _timestamp(1_000_000, "Z"),
    ("long", "timestamp-nanos"): _nanos("Z"),
    ("long", "local-timestamp-millis"): _timestamp(1_000, ""),
    ("long", "local-timestamp-micros"): _timestamp(1_000_000, ""),
    ("long", "local-timestamp-nanos"): _nanos(""),
    ("string", "uuid"): _uuid,
    ("fixed 16", "uuid"): _uuid,
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _fixed_decimal,
}
"""How people see values of the logical types that readers apply, by type and name."""
