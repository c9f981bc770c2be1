"""Random Avro cases: a writer schema, a reader schema derived from it (or it from the reader), and an encoded value.

The bytes are written from the schema alone, independently of any codec; arrays and maps come in several blocks, with
and without their length. The changes between the two schemas are named, so that a test can say which changes another
implementation handles differently.

Rules of this file: all randomness comes from the given `Random`; no codec.
"""

import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID

from strata.compat.avro.promotions import PROMOTED_TO

__all__ = ["LOGICAL_TYPES", "PRIMITIVES", "Case", "Maker", "zigzag"]

Schema = Any
"""A primitive's name, a list for a union, or a dictionary; the same dictionary object is the same named type."""

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL_TYPES: Final[tuple[tuple[str, str], ...]] = (
    ("int", "date"),
    ("int", "time-millis"),
    ("long", "time-micros"),
    ("long", "timestamp-millis"),
    ("long", "timestamp-micros"),
    ("long", "local-timestamp-millis"),
    ("long", "local-timestamp-micros"),
    ("string", "uuid"),
)
_UNITS: Final = {"millis": "micros", "micros": "millis"}
_WORDS: Final = ("", "a", "zürich", "\U0001f68b", "\0", "a longer text, of more than eight bytes")
_SYMBOLS: Final = "ABCDEF"
_DEEPEST: Final = 3


class Case(NamedTuple):
    """A payload of the writer schema to read with the reader schema; `changes` names the changes between them."""

    writer: str
    reader: str
    payload: bytes
    changes: frozenset[str]


class Maker:
    """A generator of cases; the same `Random` gives the same cases."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._names = 0

    def case(self) -> Case:
        """Return a case in which one schema is derived from the other."""
        old = self._type(0) if self._chance.random() < 0.15 else self._record(0)
        change = _Change(self, self._chance)
        new = change.of(old)
        writer, reader = (old, new) if self._chance.random() < 0.5 else (new, old)
        return self._case(writer, reader, change.names)

    def family(self, size: int) -> list[Case]:
        """Return cases with different writer schemas for one reader schema, which is a record."""
        reader = self._record(0)
        changes = [_Change(self, self._chance) for _ in range(size)]
        return [self._case(change.of(reader), reader, change.names) for change in changes]

    def _case(self, writer: Schema, reader: Schema, names: set[str]) -> Case:
        bare = writer == "bytes" or (isinstance(writer, dict) and writer["type"] == "bytes")
        payload = self.random_bytes() if bare else self.payload(writer)
        extra = {"a top-level bytes"} if bare else set()
        return Case(_text(writer), _text(reader), payload, frozenset(names | extra))

    # Schemas

    def name(self, prefix: str) -> str:
        """Return an unused name."""
        self._names += 1
        return f"{prefix}{self._names}"

    def _type(self, depth: int) -> Schema:
        kinds = [self._primitive] * 4 + [self._logical] * 2 + [self._enum, self._fixed, self._decimal]
        if depth < _DEEPEST:
            inner = depth + 1
            kinds += [lambda: self._record(inner), lambda: self._items(inner), lambda: self._union(inner)] * 2
        return self._chance.choice(kinds)()

    def _primitive(self) -> Schema:
        return self._chance.choice(PRIMITIVES)

    def _logical(self) -> Schema:
        kind, logical = self._chance.choice(LOGICAL_TYPES)
        return {"type": kind, "logicalType": logical}

    def _enum(self) -> Schema:
        symbols = self._chance.sample(_SYMBOLS, self._chance.randint(1, 4))
        default = {"default": symbols[0]} if self._chance.random() < 0.5 else {}
        return {"type": "enum", "name": self.name("E"), "symbols": symbols, **default}

    def _fixed(self) -> Schema:
        return {"type": "fixed", "name": self.name("X"), "size": self._chance.choice((0, 1, 8, 17))}

    def _decimal(self) -> Schema:
        precision = self._chance.choice((4, 18, 19, 38))
        logical = {"logicalType": "decimal", "precision": precision, "scale": self._chance.randint(0, 4)}
        if self._chance.random() < 0.5:
            return {"type": "bytes", **logical}
        return {"type": "fixed", "name": self.name("D"), "size": 17, **logical}

    def _items(self, depth: int) -> Schema:
        inner = self._type(depth)
        return {"type": "array", "items": inner} if self._chance.random() < 0.6 else {"type": "map", "values": inner}

    def _union(self, depth: int) -> Schema:
        branches: dict[str, Schema] = {}
        for _ in range(self._chance.randint(1, 3)):
            one = self._type(depth)
            if not isinstance(one, list):
                branches.setdefault(_branch(one), one)
        if self._chance.random() < 0.6:
            branches.setdefault("null", "null")
        return self._chance.sample(list(branches.values()), len(branches)) or ["null"]

    def _record(self, depth: int) -> Schema:
        fields: list[dict[str, Any]] = []
        for index in range(self._chance.randint(0 if depth else 1, 5)):
            known = [field["type"] for field in fields if isinstance(field["type"], dict) and "name" in field["type"]]
            again = known and self._chance.random() < 0.1
            fields.append(self.field(f"f{index}", self._chance.choice(known) if again else self._type(depth + 1)))
        return {"type": "record", "name": self.name("R"), "fields": fields}

    def field(self, name: str, schema: Schema) -> dict[str, Any]:
        """Return a field, with a default or without."""
        default = {"default": self._default(schema)} if self._chance.random() < 0.6 else {}
        return {"name": name, "type": schema, **default}

    def new_field(self, depth: int) -> dict[str, Any]:
        """Return a field that only one of the schemas has."""
        return self.field(self.name("g"), self._type(depth + 1))

    def _default(self, schema: Schema) -> Any:
        kind = _kind(schema)
        choose = self._chance.choice
        simple: dict[str, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": lambda: choose((True, False)),
            "int": lambda: choose((0, -7, 2**31 - 1)),
            "long": lambda: choose((0, -7, 2**40)),
            "float": lambda: choose((0.0, 0.5, -2.0)),
            "double": lambda: choose((0.0, 0.1, 1e300)),
            "bytes": lambda: choose(("", "\u0000\u00ff")),
            "string": lambda: choose(_WORDS),
            "enum": lambda: choose(schema["symbols"]),
            "fixed": lambda: "\u0001" * schema["size"] if "logicalType" not in schema else "\u0000" * schema["size"],
            "array": lambda: [self._default(schema["items"]) for _ in range(self._chance.randrange(3))],
            "map": lambda: {word: self._default(schema["values"]) for word in _WORDS[: self._chance.randrange(3)]},
            "union": lambda: self._default(schema[0]),
            "record": lambda: {one["name"]: self._default(one["type"]) for one in schema["fields"]},
        }
        return "\u0001" if kind == "bytes" and isinstance(schema, dict) else simple[kind]()

    # Bytes

    def payload(self, schema: Schema) -> bytes:
        """Return a random value of a schema, encoded."""
        kind = _kind(schema)
        choose = self._chance.choice
        simple: dict[str, Callable[[], bytes]] = {
            "null": lambda: b"",
            "boolean": lambda: choose((b"\0", b"\1")),
            "int": lambda: zigzag(choose((0, -1, 2**31 - 1, -(2**31), self._chance.randrange(-100, 70_000)))),
            "long": lambda: zigzag(self._long(schema)),
            "float": lambda: struct.pack("<f", choose((0.0, -0.0, 1.5, float("inf"), float("nan"), 3.0e38))),
            "double": lambda: struct.pack("<d", choose((0.0, -0.0, 0.1, float("-inf"), float("nan"), 1e300))),
            "bytes": lambda: _prefixed(self._unscaled() if isinstance(schema, dict) else self.random_bytes()),
            "string": lambda: _prefixed(self._string(schema).encode()),
            "enum": lambda: zigzag(self._chance.randrange(len(schema["symbols"]))),
            "fixed": lambda: self._fixed_bytes(schema),
            "array": lambda: self._blocks(lambda: self.payload(schema["items"])),
            "map": lambda: self._blocks(lambda: self._key() + self.payload(schema["values"])),
            "record": lambda: b"".join(self.payload(one["type"]) for one in schema["fields"]),
            "union": lambda: self._branch(schema),
        }
        return simple[kind]()

    def random_bytes(self) -> bytes:
        """Return random bytes, usually not valid UTF-8."""
        return self._chance.choice((b"", b"text", self._chance.randbytes(self._chance.randrange(20))))

    def _string(self, schema: Schema) -> str:
        is_uuid = isinstance(schema, dict) and self._chance.random() < 0.9
        return str(UUID(bytes=self._chance.randbytes(16))) if is_uuid else self._chance.choice(_WORDS)

    def _long(self, schema: Schema) -> int:
        near = self._chance.randrange(-(10**15), 10**15)
        return self._chance.choice((0, -1, near, near) if isinstance(schema, dict) else (2**63 - 1, -(2**63), near))

    def _unscaled(self) -> bytes:
        return self._chance.randrange(-9999, 9999).to_bytes(self._chance.choice((2, 3, 17)), "big", signed=True)

    def _fixed_bytes(self, schema: Schema) -> bytes:
        size = schema["size"]
        if "logicalType" in schema:
            return self._chance.randrange(-9999, 9999).to_bytes(size, "big", signed=True)
        return self._chance.randbytes(size)

    def _key(self) -> bytes:
        return _prefixed(self._chance.choice(("a", "b", "c", "zürich", "")).encode())

    def _branch(self, branches: Sequence[Schema]) -> bytes:
        index = self._chance.randrange(len(branches))
        return zigzag(index) + self.payload(branches[index])

    def _blocks(self, item: Callable[[], bytes]) -> bytes:
        written = b""
        for _ in range(self._chance.choice((0, 1, 1, 1, 2, 3))):
            count = self._chance.randint(1, 3)
            block = b"".join(item() for _ in range(count))
            has_length = self._chance.random() < 0.3
            written += (zigzag(-count) + zigzag(len(block)) if has_length else zigzag(count)) + block
        return written + b"\0"


class _Change:
    """A derivation of one schema from another; `names` collects the names of the changes."""

    def __init__(self, maker: Maker, chance: Random) -> None:
        self.names: set[str] = set()
        self._maker = maker
        self._chance = chance
        self._made: dict[int, Schema] = {}

    def of(self, schema: Schema, depth: int = 0) -> Schema:
        """Return the schema, possibly changed."""
        if isinstance(schema, dict) and "name" in schema:
            if id(schema) not in self._made:
                self._made[id(schema)] = self._inside(schema, depth)
            return self._made[id(schema)]
        if self._happens(0.03):
            return self._told("another type", self._chance.choice(PRIMITIVES))
        if self._happens(0.08) and not isinstance(schema, list) and schema != "null":
            return self._told("a union more", self._chance.sample(["null", self._inside(schema, depth)], 2))
        return self._inside(schema, depth)

    def _inside(self, schema: Schema, depth: int) -> Schema:
        if isinstance(schema, list):
            return self._union(schema, depth)
        if isinstance(schema, str):
            return self._primitive(schema)
        kinds: dict[str, Callable[[], Schema]] = {
            "array": lambda: {"type": "array", "items": self.of(schema["items"], depth + 1)},
            "map": lambda: {"type": "map", "values": self.of(schema["values"], depth + 1)},
            "record": lambda: self._record(schema, depth),
            "enum": lambda: self._enum(schema),
        }
        return kinds.get(schema["type"], lambda: self._logical(schema))()

    def _primitive(self, schema: str) -> Schema:
        if self._happens(0.2) and schema in PROMOTED_TO:
            return self._told("promotion", self._chance.choice(PROMOTED_TO[schema]))
        return schema

    def _logical(self, schema: dict[str, Any]) -> Schema:
        name = schema.get("logicalType", "")
        unit = name.rpartition("-")[2]
        if "timestamp" in name and self._happens(0.2):
            return self._told("unit of time", {**schema, "logicalType": name.replace(unit, _UNITS[unit])})
        if name == "decimal" and self._happens(0.2):
            return self._told("scale of a decimal", {**schema, "scale": self._chance.randint(0, 4)})
        if schema["type"] == "fixed" and self._happens(0.05):
            return self._told("size", {**schema, "size": schema["size"] + 1})
        return schema

    def _union(self, schema: list[Schema], depth: int) -> Schema:
        branches = {_branch(one): one for one in (self._inside(one, depth) for one in schema)}
        if len(branches) > 1 and self._happens(0.1):
            del branches[self._chance.choice(list(branches))]
            self.names.add("a branch less")
        kept = list(branches.values())
        if self._happens(0.2):
            self._chance.shuffle(kept)
            self.names.add("order of branches")
        if len(kept) == 1 and self._happens(0.5):
            return self._told("no union", kept[0])
        return kept

    def _record(self, schema: dict[str, Any], depth: int) -> Schema:
        fields = [self._field(one, depth) for one in schema["fields"] if not self._happens(0.1)]
        if self._happens(0.3):
            fields.append(self._maker.new_field(depth))
        if self._happens(0.2):
            self._chance.shuffle(fields)
        return {**schema, **self._named(schema, 0.05), "fields": fields}

    def _field(self, one: dict[str, Any], depth: int) -> dict[str, Any]:
        changed = {"name": one["name"], "type": self.of(one["type"], depth + 1)}
        if self._happens(0.1):
            self.names.add("alias of a field")
            return {**changed, "name": self._maker.name("h"), "aliases": [one["name"]]}
        return changed

    def _enum(self, schema: dict[str, Any]) -> Schema:
        if not self._happens(0.3):
            return schema
        self.names.add("symbols")
        symbols = self._chance.sample(_SYMBOLS, self._chance.randint(1, 5))
        default = {"default": symbols[0]} if self._happens(0.5) else {}
        return {"type": "enum", "name": schema["name"], "symbols": symbols, **default, **self._named(schema, 0.1)}

    def _named(self, schema: dict[str, Any], likely: float) -> dict[str, Any]:
        if not self._happens(likely):
            return {}
        new, alias = self._maker.name("N"), self._happens(0.5)
        kinds: list[tuple[str, dict[str, Any]]] = [
            ("name with an alias", {"name": new, "aliases": [schema["name"]]}) if alias else ("name", {"name": new})
        ]
        if schema["type"] != "record":  # inside a namespace, a type without one could not be referenced
            kinds.append(("namespace", {"namespace": "elsewhere"}))
        name, change = self._chance.choice(kinds)
        return dict(self._told(name, change))

    def _happens(self, likely: float) -> bool:
        return self._chance.random() < likely

    def _told(self, name: str, schema: Schema) -> Schema:
        self.names.add(name)
        return schema


def zigzag(number: int) -> bytes:
    """Return a number in Avro's zigzag encoding."""
    raw = number * 2 if number >= 0 else -number * 2 - 1
    written = bytearray()
    while raw > 0x7F:
        written.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*written, raw])


def _prefixed(raw: bytes) -> bytes:
    return zigzag(len(raw)) + raw


def _kind(schema: Schema) -> str:
    return "union" if isinstance(schema, list) else schema if isinstance(schema, str) else schema["type"]


def _branch(schema: Schema) -> str:
    """Return the key by which a branch must be unique in a union."""
    return schema["name"] if isinstance(schema, dict) and "name" in schema else _kind(schema)


def _text(schema: Schema) -> str:
    """Return the schema as JSON; each named type is defined at its first use."""
    return json.dumps(_tree(schema, {}))


def _tree(schema: Schema, written: dict[int, str]) -> Any:
    if isinstance(schema, str):
        return schema
    if isinstance(schema, list):
        return [_tree(one, written) for one in schema]
    if "name" in schema:
        if id(schema) in written:
            return written[id(schema)]
        written[id(schema)] = ".".join(filter(None, (schema.get("namespace"), schema["name"])))
        schema = {"namespace": "", **schema}
    inner = {key: _tree(schema[key], written) for key in ("items", "values") if key in schema}
    if schema["type"] == "record":
        fields = schema["fields"]
        inner["fields"] = [{**one, "type": _tree(one["type"], written)} for one in fields]
    return {**schema, **inner}
