"""Values of an Avro schema: the smallest one, its JSON and binary encodings, and how people see it.

A value of a union is a `Taken`: the branch and its value. Other values are those of Python: bytes, text, numbers, lists
and dictionaries, which for a record have the names of its fields.

Source: the Avro 1.12 specification, "JSON Encoding", "Binary Encoding" and "Logical Types".
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Final, NamedTuple, TypeAlias

from strata.compat.avro.model import (
    ArrayType,
    EnumType,
    FixedType,
    Json,
    MapType,
    NamedType,
    Names,
    Node,
    RecordType,
    UnionType,
    resolve,
)
from strata.compat.difference.avro_reading import logical_type
from strata.compat.limits import Limits
from strata.strict_json import Json as JsonValue

__all__ = ["NoValue", "Taken", "TooLarge", "Value", "Values", "default_value", "one_more", "shown"]

_ZEROS: Final[Mapping[str, Json]] = {
    "null": None,
    "boolean": False,
    "int": 0,
    "long": 0,
    "float": 0.0,
    "double": 0.0,
    "bytes": b"",
    "string": "",
    "array": [],
    "map": {},
}
_LOGICAL_ZEROS: Final[Mapping[tuple[str, str], Json]] = {
    ("string", "uuid"): "00000000-0000-0000-0000-000000000000",
    ("bytes", "decimal"): b"\0",
    ("bytes", "big-decimal"): b"\x02\0\0",  # the bytes of the number, with their length, and the scale
}
_ONES: Final[Mapping[str, Json]] = {
    **_ZEROS,
    "boolean": True,
    "int": 1,
    "long": 1,
    "float": 1.0,
    "double": 1.0,
    "bytes": b"\1",
    "string": "a",
}
_KEY: Final = "k"  # of the entry of a map
_ENTRY_COST: Final = len(_KEY) + 8  # characters around an entry's value or a field's, at most
_EXACT: Final = Context(prec=5000)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class TooLarge(Exception):
    """The smallest value is larger than a witness may be."""


class NoValue(Exception):
    """A type has no value: each one would contain another."""


class Taken(NamedTuple):
    """A value of a union."""

    branch: int
    value: "Value"


Value: TypeAlias = "bool | int | float | str | bytes | list[Value] | dict[str, Value] | Taken | None"


class Values:
    """The values of one schema.

    Args:
        names: the named types of the schema.
        limits: bounds on time.
        size: the most characters of a value.
    """

    def __init__(self, names: Names, limits: Limits, size: int) -> None:
        self._names = names
        self._limits = limits
        self._size = size
        self._costs: dict[str, float] = {}  # characters of the smallest value of each named type
        self._smallest: dict[int, Value] = {}  # by the type; records share the values of fields off the way
        self._encoded: dict[tuple[int, int], tuple[Value, JsonValue]] = {}
        self._written: dict[tuple[int, int], tuple[Value, bytes]] = {}

    def cost(self, node: Node) -> float:
        """Return about how many characters the smallest value of a type has; infinity if it has no value."""
        node = resolve(node, self._names)
        if isinstance(node, NamedType):
            if node.name.full not in self._costs:
                self._relax(node)
            return self._costs[node.name.full]
        if isinstance(node, UnionType):
            return min((self.cost(branch) + len(_name(branch)) + 5 for branch in node.branches), default=math.inf)
        return self._cost(node)

    def _relax(self, node: NamedType) -> None:
        """Find the costs of a named type and of those inside it: each value costs more than its parts."""
        reached: dict[str, NamedType] = {}
        waiting: list[Node] = [node]
        while waiting:
            self._limits.look_at_clock()
            inner = resolve(waiting.pop(), self._names)
            if isinstance(inner, UnionType):
                waiting += inner.branches
            elif isinstance(inner, NamedType) and inner.name.full not in self._costs | reached:
                reached[inner.name.full] = inner
                waiting += [field.type for field in inner.fields] if isinstance(inner, RecordType) else ()
        self._costs |= dict.fromkeys(reached, math.inf)
        is_changed = True
        while is_changed:
            is_changed = False
            for name, inner in reversed(reached.items()):
                self._limits.look_at_clock()
                cost = self._cost(inner)
                is_changed |= cost < self._costs[name]
                self._costs[name] = min(cost, self._costs[name])

    def _cost(self, node: Node) -> float:
        if isinstance(node, UnionType):
            return min((self._part(branch) + len(_name(branch)) + 5 for branch in node.branches), default=math.inf)
        if isinstance(node, RecordType):
            return 2.0 + sum(self._part(field.type) + len(field.name) + 5 for field in node.fields)
        if isinstance(node, EnumType):
            return 2.0 + len(node.symbols[0]) if node.symbols else math.inf
        return 2.0 + 6 * node.size if isinstance(node, FixedType) else 5.0

    def _part(self, node: Node) -> float:
        node = resolve(node, self._names)
        return self._costs.get(node.name.full, math.inf) if isinstance(node, NamedType) else self._cost(node)

    def smallest(self, node: Node) -> Value:
        """Return the smallest value of a type.

        Raises:
            NoValue: there is no value.
            TooLarge: the smallest value is too large.
        """
        node = resolve(node, self._names)
        if id(node) not in self._smallest:
            self._smallest[id(node)] = self._made(node)
        return self._smallest[id(node)]

    def _made(self, node: Node) -> Value:
        if (cost := self.cost(node)) > self._size:
            raise NoValue if cost == math.inf else TooLarge
        if isinstance(node, UnionType):
            costs = [self.cost(branch) for branch in node.branches]
            at = costs.index(min(costs))
            return Taken(at, self.smallest(node.branches[at]))
        if isinstance(node, RecordType):
            return {field.name: self.smallest(field.type) for field in node.fields}
        if isinstance(node, EnumType):
            return node.symbols[0]
        if isinstance(node, FixedType):
            return b"\0" * node.size
        zero: Value = _LOGICAL_ZEROS.get((node.kind, (logical_type(node) or "").partition(" ")[0]), _ZEROS[node.kind])
        return zero

    def telling(self, node: Node) -> Value:
        """Return a small value of a type that people tell apart from the smallest one, if the type has another."""
        node = resolve(node, self._names)
        if isinstance(node, UnionType):
            costs = {at: self.cost(branch) for at, branch in enumerate(node.branches)}
            held = [at for at, branch in enumerate(node.branches) if branch.kind != "null"] or [*costs]
            at = min(held, key=costs.__getitem__)
            return Taken(at, self.telling(node.branches[at]))
        if isinstance(node, ArrayType):
            return [self.smallest(node.items)]
        if isinstance(node, MapType):
            return {_KEY: self.smallest(node.values)}
        if isinstance(node, EnumType):
            return node.symbols[-1]
        return self.smallest(node) if isinstance(node, RecordType) else one_more(node)

    def along(self, node: Node, steps: Sequence["int | str | None"], end: Callable[[Node], Value]) -> Value:
        """Return the smallest value of a type that has a chosen value at a place.

        Args:
            node: the type.
            steps: the way to the place: the number of a union's branch, the name of a field, None for the only item of
                an array or the only entry of a map.
            end: returns the value at the place, given its type.

        Raises:
            NoValue: there is no value.
            TooLarge: the value is too large.
        """
        if len(steps) * _ENTRY_COST > self._size * 4:
            raise TooLarge
        node = resolve(node, self._names)
        if not steps:
            return end(node)
        step, rest = steps[0], steps[1:]
        if isinstance(node, UnionType) and isinstance(step, int):
            return Taken(step, self.along(node.branches[step], rest, end))
        if isinstance(node, RecordType):
            return {
                field.name: self.along(field.type, rest, end) if field.name == step else self.smallest(field.type)
                for field in node.fields
            }
        if isinstance(node, ArrayType):
            return [self.along(node.items, rest, end)]
        if isinstance(node, MapType):
            return {_KEY: self.along(node.values, rest, end)}
        raise TypeError(f"{node.kind} has no part {step!r}")

    def as_json(self, node: Node, value: Value) -> JsonValue:
        """Return a value in the JSON encoding of Avro."""
        node = resolve(node, self._names)
        known = self._encoded.get((id(node), id(value)))
        if known is None or known[0] is not value:
            known = self._encoded[id(node), id(value)] = value, self._json(node, value)
        return known[1]

    def _json(self, node: Node, value: Value) -> JsonValue:
        if isinstance(node, UnionType) and isinstance(value, Taken):
            branch = resolve(node.branches[value.branch], self._names)
            return None if branch.kind == "null" else {_name(branch): self.as_json(branch, value.value)}
        if isinstance(node, RecordType) and isinstance(value, dict):
            return {field.name: self.as_json(field.type, value[field.name]) for field in node.fields}
        if isinstance(node, ArrayType) and isinstance(value, list):
            return [self.as_json(node.items, item) for item in value]
        if isinstance(node, MapType) and isinstance(value, dict):
            return {key: self.as_json(node.values, item) for key, item in value.items()}
        return _plain(value)

    def as_bytes(self, node: Node, value: Value) -> bytes:
        """Return a value in the binary encoding of Avro."""
        node = resolve(node, self._names)
        known = self._written.get((id(node), id(value)))
        if known is None or known[0] is not value:
            known = self._written[id(node), id(value)] = value, self._bytes(node, value)
        return known[1]

    def _bytes(self, node: Node, value: Value) -> bytes:
        if isinstance(node, UnionType) and isinstance(value, Taken):
            return _zigzag(value.branch) + self.as_bytes(node.branches[value.branch], value.value)
        if isinstance(node, RecordType) and isinstance(value, dict):
            return b"".join(self.as_bytes(field.type, value[field.name]) for field in node.fields)
        if isinstance(node, ArrayType) and isinstance(value, list):
            items = b"".join(self.as_bytes(node.items, item) for item in value)
            return _zigzag(len(value)) + items + b"\0" * bool(value)
        if isinstance(node, MapType) and isinstance(value, dict):
            items = b"".join(_sized(key.encode()) + self.as_bytes(node.values, item) for key, item in value.items())
            return _zigzag(len(value)) + items + b"\0" * bool(value)
        if isinstance(node, EnumType) and isinstance(value, str):
            return _zigzag(node.symbols.index(value))
        return _scalar(node.kind, value)


def _scalar(type_name: str, value: Value) -> bytes:
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int | float) and type_name in ("float", "double"):
        return struct.pack("<f" if type_name == "float" else "<d", value)
    if isinstance(value, int):
        return _zigzag(value)
    if isinstance(value, str):
        return _sized(value.encode())
    if isinstance(value, bytes):
        return value if type_name == "fixed" else _sized(value)
    return b""


def _sized(data: bytes) -> bytes:
    return _zigzag(len(data)) + data


def _zigzag(number: int) -> bytes:
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


def _name(node: Node) -> str:
    return node.name.full if isinstance(node, NamedType) else getattr(node, "full", node.kind)


def _plain(value: Value) -> JsonValue:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return value if isinstance(value, bool | int | float | str) else None


def one_more(node: Node) -> Value:
    """Return a small value of a type without parts that people tell apart from zero."""
    if isinstance(node, FixedType):
        return b"\0" * (node.size - 1) + b"\1" * bool(node.size)
    if node.kind == "bytes" and logical_type(node) == "big-decimal":
        return b"\x02\1\0"
    if logical_type(node) == "uuid":
        return "00000000-0000-0000-0000-000000000001"
    return _ONES.get(node.kind)


def shown(node: Node, value: Value) -> JsonValue:
    """Return a value without parts as people see it, with its logical type applied."""
    name = logical_type(node) or ""
    if isinstance(value, bytes) and name.startswith("decimal"):
        number = Decimal(int.from_bytes(value, "big", signed=True))
        return f"{number.scaleb(-int(name.rpartition(' ')[2]), _EXACT):f}"
    if isinstance(value, int) and not isinstance(value, bool) and name:
        return _moment(name, value)
    return _plain(value)


def _moment(name: str, number: int) -> str:
    if name == "date":
        return (date(1970, 1, 1) + timedelta(days=number)).isoformat()
    unit = name.rpartition("-")[2]
    digits = {"millis": 3, "micros": 6, "nanos": 9}[unit]
    whole, part = divmod(number, 10**digits)
    moment = _EPOCH + timedelta(seconds=whole)
    text = f"{moment:%H:%M:%S}.{part:0{digits}}" if name.startswith("time-") else (
        f"{moment:%Y-%m-%dT%H:%M:%S}.{part:0{digits}}"
    )  # fmt: skip
    return text + "Z" * name.startswith("timestamp-")


def default_value(node: Node, default: Json, names: Names) -> Value:
    """Return the value that a reader takes for the default of a field, which is JSON."""
    node = resolve(node, names)
    if isinstance(node, UnionType):
        branches = [resolve(branch, names) for branch in node.branches]
        at = next((at for at, branch in enumerate(branches) if _fits(branch, default)), 0)
        return Taken(at, default_value(branches[at], default, names))
    if isinstance(node, RecordType) and isinstance(default, dict):
        return {
            field.name: default_value(field.type, default.get(field.name, field.default), names)
            for field in node.fields
        }
    if isinstance(node, ArrayType) and isinstance(default, list):
        return [default_value(node.items, item, names) for item in default]
    if isinstance(node, MapType) and isinstance(default, dict):
        return {key: default_value(node.values, item, names) for key, item in default.items()}
    if node.kind in ("bytes", "fixed") and isinstance(default, str):
        return default.encode("latin-1", "replace")
    if node.kind in ("float", "double") and isinstance(default, int | float):
        return float(default)
    return default if isinstance(default, bool | int | float | str) else None


_JSON_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "bytes": (str,),
    "string": (str,),
    "enum": (str,),
    "fixed": (str,),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}


def _fits(node: Node, default: Json) -> bool:
    is_bool = isinstance(default, bool)
    return isinstance(default, _JSON_TYPES.get(node.kind, ())) and is_bool == (node.kind == "boolean")
