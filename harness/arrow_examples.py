"""Random schemas, readers derived from them, and values of them; the batch decoder against the deserializer."""

import json
import math
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from harness.avro_cases import LOGICAL_TYPES, PRIMITIVES
from strata.serdes.arrow import BatchDecoder, UnsupportedSchema, decode_batch, encode_batch
from strata.serdes.avro import Branch, compile_decoder, compile_encoder
from strata.serdes.avro.schema import Array, Map, Node, Primitive, Record, Union, parse
from strata.serdes.errors import DecodeError, SchemaError

__all__ = ["Schemas", "check"]

LOGICALS = [one for one in LOGICAL_TYPES if one != ("string", "uuid")]  # for Arrow, a uuid is a string like any other
WIDER = {"int": ["long", "float", "double"], "long": ["float", "double"], "float": ["double"]}
TEXTS = ["", "a", "zürich", "🚋" * 3, "x" * 40]


class Schemas:
    """Generator of random schemas, readers derived from them, and values of them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - examples
        self.names = 0

    def name(self, stem: str) -> str:
        """Return an unused name."""
        self.names += 1
        return f"{stem}{self.names}"

    def schema(self, depth: int = 3) -> Any:
        """Return any type."""
        chance = self.chance
        if depth == 0 or chance.random() < 0.4:
            return self.leaf()
        match chance.randrange(5):
            case 0:
                return {"type": "array", "items": self.schema(depth - 1)}
            case 1:
                return {"type": "map", "values": self.schema(depth - 1)}
            case 2:
                return self.union(depth)
            case _:
                return self.record(depth)

    def record(self, depth: int = 3) -> Any:
        """Return a record of some fields."""
        fields = [{"name": f"f{n}", "type": self.schema(depth - 1)} for n in range(self.chance.randrange(5))]
        return {"type": "record", "name": self.name("R"), "fields": fields}

    def union(self, depth: int) -> Any:
        """Return a union, mostly with null."""
        branches: list[Any] = ["null"] if self.chance.random() < 0.7 else []
        kinds = [k for k in PRIMITIVES if k != "null"]
        branches += self.chance.sample(kinds, self.chance.randrange(1, 3))
        if self.chance.random() < 0.5:
            branches.append(self.record(depth - 1))
        if self.chance.random() < 0.2:
            branches.append({"type": "array", "items": self.leaf()})
        self.chance.shuffle(branches)
        return branches

    def leaf(self) -> Any:
        """Return a type without nested types."""
        chance = self.chance
        match chance.randrange(8):
            case 0:
                kind, logical = chance.choice(LOGICALS)
                return {"type": kind, "logicalType": logical}
            case 1:
                return {"type": "enum", "name": self.name("E"), "symbols": ["A", "BB", "CCC"][: chance.randrange(1, 4)]}
            case 2:
                return {"type": "fixed", "name": self.name("F"), "size": chance.randrange(5)}
            case 3:
                precision = chance.choice([1, 5, 9, 18, 19, 30, 38, 39, 76])
                scale = chance.randrange(min(precision, 12) + 1)
                base: dict[str, Any] = {"type": "bytes"}
                if chance.random() < 0.3:
                    base = {"type": "fixed", "name": self.name("D"), "size": 33}
                return {**base, "logicalType": "decimal", "precision": precision, "scale": scale}
            case _:
                return chance.choice(PRIMITIVES)

    def reader(self, written: Any) -> Any:  # noqa: C901 - a case for each kind of type
        """Return a type to read the given one as; mostly one that can read it."""
        chance = self.chance
        if chance.random() < 0.03:
            return self.leaf()
        if chance.random() < 0.1 and not isinstance(written, list):
            return chance.choice([["null", self.reader(written)], [self.reader(written)]])
        match written:
            case list():
                branches = [self.reader(one) for one in written if chance.random() < 0.95]
                branches = [one for one in branches if not isinstance(one, list)]
                chance.shuffle(branches)
                return branches or ["null"]
            case str():
                return chance.choice([written, written, written, *WIDER.get(written, [written])])
            case {"type": "array", "items": items}:
                return {"type": "array", "items": self.reader(items)}
            case {"type": "map", "values": values}:
                return {"type": "map", "values": self.reader(values)}
            case {"type": "record"}:
                return self.reader_record(written)
            case {"type": "enum"}:
                symbols = [*written["symbols"][1:], "Z"]
                return chance.choice(
                    [written, {**written, "symbols": symbols, "default": "Z"}, {**written, "symbols": symbols}]
                )
            case {"logicalType": "decimal"}:
                if chance.random() < 0.3:
                    return {
                        **written,
                        "precision": min(written["precision"] + 2, 76),
                        "scale": max(written["scale"] + chance.choice([-2, 2, 0]), 0),
                    }
                return written
            case {"logicalType": name, "type": kind} if name.endswith("millis") and kind == "long":
                return chance.choice(
                    [written, {"type": "long", "logicalType": name.replace("millis", "micros")}, "long"]
                )
            case {"logicalType": name, "type": "long"}:
                return chance.choice(
                    [
                        written,
                        {"type": "long", "logicalType": name.replace("micros", "millis")}
                        if "stamp" in name
                        else written,
                    ]
                )
        return written

    def reader_record(self, written: Any) -> Any:
        """Return the record with fields left out, renamed or added with a default."""
        fields = []
        for one in written["fields"]:
            roll = self.chance.random()
            if roll < 0.1:
                continue
            found = {**one, "type": self.reader(one["type"])}
            if roll < 0.2:
                found = {**found, "name": f"z{one['name']}", "aliases": [one["name"]]}
            if 0.2 < roll < 0.25:
                fields.append({**found, "name": f"y{one['name']}", "aliases": [one["name"]]})
            fields.append(found)
        if self.chance.random() < 0.3:
            kind = self.schema(2)
            fields.append({"name": "added", "type": kind, "default": self.default(kind)})
        self.chance.shuffle(fields)
        return {**written, "fields": fields}

    def default(self, kind: Any) -> Any:
        """Return a default as JSON; now and then a wrong one."""
        match kind:
            case list():
                return self.default(kind[0])
            case {"type": "record", "fields": fields}:
                return {one["name"]: self.default(one["type"]) for one in fields}
            case {"type": "array", "items": items}:
                return [self.default(items) for _ in range(self.chance.randrange(3))]
            case {"type": "map", "values": values}:
                return {text: self.default(values) for text in TEXTS[: self.chance.randrange(3)]}
            case {"type": "enum", "symbols": symbols}:
                return symbols[-1]
            case {"type": "fixed", "size": size}:
                return "\x00" * size
            case {"type": base}:
                return self.default(base)
        return {"null": None, "boolean": True, "int": 7, "long": 123456, "float": 0.5, "double": -0.25}.get(kind, "é")

    def value(self, kind: Any) -> Any:
        """Return a value that the encoder accepts."""
        chance = self.chance
        match kind:
            case list():
                index = chance.randrange(len(kind))
                value = self.value(kind[index])
                return value if len(kind) == 2 and "null" in kind else Branch(index, value)
            case {"type": "record", "fields": fields}:
                return {one["name"]: self.value(one["type"]) for one in fields}
            case {"type": "array", "items": items}:
                return [self.value(items) for _ in range(chance.choice([0, 1, 3]))]
            case {"type": "map", "values": values}:
                return {text: self.value(values) for text in chance.sample(TEXTS, chance.choice([0, 1, 3]))}
            case {"type": "enum", "symbols": symbols}:
                return chance.choice(symbols)
            case {"logicalType": "decimal", "precision": precision, "scale": scale}:
                digits = chance.randrange(
                    -(10 ** chance.randrange(precision + 1)) + 1, 10 ** chance.randrange(precision + 1)
                )
                return Decimal(digits).scaleb(-scale)
            case {"type": "fixed", "size": size}:
                return chance.randbytes(size)
            case {"logicalType": name}:
                return self.clock(name)
        return self.primitive(kind)

    def clock(self, name: str) -> Any:
        """Return a date or time."""
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.chance.randrange(-(10**16), 10**16))
        at = at.replace(microsecond=at.microsecond // 1000 * 1000) if name.endswith("millis") else at
        match name.split("-")[0]:
            case "date":
                return date(2024, 2, 29)
            case "time":
                return time(23, 59, 59, 999000)
            case "local":
                return at.replace(tzinfo=None)
        return at

    def primitive(self, kind: str) -> Any:
        """Return a value of a primitive type, often one at a limit."""
        chance = self.chance
        match kind:
            case "int":
                return chance.choice([0, -1, 63, 64, 2**31 - 1, -(2**31), chance.randrange(-(2**20), 2**20)])
            case "long":
                return chance.choice([0, -1, 2**63 - 1, -(2**63), 2**53 + 1, chance.randrange(-(2**40), 2**40)])
            case "float":
                return chance.choice([0.5, math.inf, -0.0, 1e30])
            case "double":
                return chance.choice([0.1, -math.inf, math.nan, 1e300])
            case "bytes":
                return chance.randbytes(chance.randrange(12))
            case "string":
                return chance.choice(TEXTS)
        return None if kind == "null" else chance.random() < 0.5

    def damaged(self, payload: bytes) -> bytes:
        """Return the payload with some bytes changed, cut or added."""
        chance, changed = self.chance, bytearray(payload)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(changed) + 1)
            changed[at : at + chance.randrange(3)] = bytes(
                chance.choice([0, 1, 2, 3, 4, 0x7F, 0x80, 0xFF, chance.randrange(256)])
                for _ in range(chance.randrange(3))
            )
        return bytes(changed)


def shown(value: Any, node: Node) -> Any:
    """Return a deserializer's value in the form that Arrow gives back."""
    match value, node:
        case Branch(), Union():
            others = [
                n for n, one in enumerate(node.branches) if not (isinstance(one, Primitive) and one.kind == "null")
            ]
            inner = shown(value.value, node.branches[value.position])
            kinds = {one.kind for one in node.branches if isinstance(one, Primitive) and one.kind != "null"}
            if len(others) == 2 and kinds in ({"int", "long"}, {"float", "double"}):
                return inner
            return {f"member{n}": inner if index == value.position else None for n, index in enumerate(others)}
        case None, _:
            return None
        case _, Union():
            return shown(value, next(b for b in node.branches if not (isinstance(b, Primitive) and b.kind == "null")))
        case dict(), Record():
            return {one.name: shown(value[one.name], one.type) for one in node.fields}
        case dict(), Map():
            return [(key, shown(one, node.values)) for key, one in value.items()]
        case list(), Array():
            return [shown(one, node.items) for one in value]
    if isinstance(value, float):
        return repr(value)
    return value


def plain(value: Any) -> Any:
    """Return Arrow's value, with comparable floats and every time zone as UTC."""
    match value:
        case float():
            return repr(value)
        case dict():
            return {key: plain(one) for key, one in value.items()}
        case list() | tuple():
            return type(value)(plain(one) for one in value)
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC)
    return value


def check(seed: int) -> int:
    """Check one pair of schemas with some payloads, good and damaged; return how many decoded."""
    make = Schemas(seed)
    writer = make.schema()
    reader = make.reader(writer)
    texts = json.dumps(writer), json.dumps(reader)
    payloads = []
    encode = compile_encoder(texts[0])
    for _ in range(4):
        payload = encode(make.value(writer))
        payloads += [payload, make.damaged(payload), make.damaged(payload)]
    try:
        decode = compile_decoder(*texts, tagged_unions=True)
        batches = BatchDecoder(texts[1], {5: texts[0]})
    except (UnsupportedSchema, SchemaError):
        return 0
    batch = batches.decode([b"\0\0\0\0\x05" + payload for payload in payloads])
    batch.validate(full=True)
    node = parse(texts[1])
    rows = batch.drop_columns(["error"]).to_pylist()
    for payload, row, error in zip(payloads, rows, batch.column("error").to_pylist(), strict=True):
        found = plain(row if isinstance(node, Record) else row["value"])
        try:
            expected = shown(decode(payload), node)
        except DecodeError as refused:
            reason = f"{refused.reason}: {refused.detail}" if refused.reason == "resolution" else str(refused.reason)
            told = {"reason": reason, "schema_id": 5, "position": refused.offset}
            assert told == error, (texts, payload, told, error)
            assert found is None or set(found.values()) <= {None}
        else:
            assert error is None, (texts, payload, error)
            assert expected == found, (texts, payload)
    assert_same_rows_when_written_again(batch.filter(batch.column("error").is_null()), texts[1])
    return sum(error is None for error in batch.column("error").to_pylist())


def assert_same_rows_when_written_again(batch: pa.RecordBatch, schema: str) -> None:
    """Assert that encoding what was read, with the same schema, gives the same rows."""
    frames = encode_batch(batch.drop_columns(["error"]), schema, schema_id=1)
    again = decode_batch(frames, schema, writer_schemas={1: schema})
    assert plain(batch.to_pylist()) == plain(again.to_pylist()), schema
