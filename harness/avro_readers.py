"""Avro records and what two libraries read from them, in one form: fastavro, and Avro's own for Java.

Values are plain: records are lists, values of a union pairs of branch and value. The bytes are written from the schema
alone, independently of any codec.
"""

import io
import json
import struct
from collections.abc import Iterable
from random import Random
from typing import Any, Final

import fastavro

from harness.java_probes import RunJava

__all__ = ["Names", "from_fastavro", "from_java", "in_fastavro", "in_java", "same", "value_of", "written"]

_VALUES: Final[dict[str, list[Any]]] = {
    "null": [None],
    "boolean": [True, False],
    "int": [0, -1, 2**24 + 1, 2**31 - 1, -(2**31)],
    "long": [0, -1, 2**24 + 1, 2**53 + 1, 2**63 - 1],
    "float": [0.0, 1.5, -0.25],
    "double": [0.0, 1e300, 0.1],
    "bytes": [b"a", b"\xff\x01", b"\x00\x80"],
    "string": ["", "é", "a"],
}


class Names(dict[str, Any]):
    """The named types of a schema, by full name; a schema's types get their full names."""

    def __init__(self, schema: Any) -> None:
        super().__init__()
        self.root = self.collect(schema, "")

    def collect(self, schema: Any, namespace: str) -> Any:
        """Return a schema in which each definition is in the table and each use leads there."""
        if isinstance(schema, list):
            return [self.collect(branch, namespace) for branch in schema]
        if isinstance(schema, str):
            return self.get(schema, self.get(f"{namespace}.{schema}", {"type": schema}))
        if isinstance(schema["type"], dict | list):
            return self.collect(schema["type"], namespace)
        made = dict(schema)
        if "name" in schema:
            space = schema.get("namespace", namespace)
            made["simple"] = schema["name"].rpartition(".")[2]
            if "." in schema["name"]:
                space = schema["name"].rpartition(".")[0]
            self[f"{space}.{made['simple']}".lstrip(".")] = made
            namespace = space
        for name in ("items", "values"):
            if name in made:
                made[name] = self.collect(made[name], namespace)
        if "fields" in made:
            made["fields"] = [field | {"type": self.collect(field["type"], namespace)} for field in made["fields"]]
        return made


def value_of(schema: Any, chance: Random) -> Any:
    """Return a random value of a schema: records are lists, values of a union pairs of branch and value."""
    if isinstance(schema, list):
        at = chance.randrange(len(schema))
        return [at, value_of(schema[at], chance)]
    match schema["type"]:
        case "record":
            return [value_of(field["type"], chance) for field in schema["fields"]]
        case "array":
            return [value_of(schema["items"], chance) for _ in range(chance.randrange(3))]
        case "map":
            return {key: value_of(schema["values"], chance) for key in "ab"[: chance.randrange(3)]}
        case "enum":
            return chance.choice(schema["symbols"])
        case "fixed":
            return bytes(chance.choices(range(256), k=schema["size"]))
        case kind if schema.get("logicalType") == "uuid" and kind == "string":
            return "00000000-0000-0000-0000-00000000000" + chance.choice("12")
        case kind:
            return chance.choice(_VALUES[kind])


def written(schema: Any, value: Any) -> bytes:
    """Return the bytes of a value, by Avro's specification."""
    if isinstance(schema, list):
        return _zigzag(value[0]) + written(schema[value[0]], value[1])
    match schema["type"]:
        case "record":
            return b"".join(written(field["type"], part) for field, part in zip(schema["fields"], value, strict=True))
        case "array":
            items = b"".join(written(schema["items"], item) for item in value)
            return (_zigzag(len(value)) + items if value else b"") + b"\0"
        case "map":
            items = b"".join(
                written({"type": "string"}, key) + written(schema["values"], it) for key, it in value.items()
            )
            return (_zigzag(len(value)) + items if value else b"") + b"\0"
        case "enum":
            return _zigzag(schema["symbols"].index(value))
        case "int" | "long":
            return _zigzag(value)
        case "float" | "double" as kind:
            return struct.pack("<f" if kind == "float" else "<d", value)
        case "boolean":
            return bytes([value])
        case "string" | "bytes":
            raw = value.encode() if isinstance(value, str) else value
            return _zigzag(len(raw)) + raw
    return value or b""


def _zigzag(number: int) -> bytes:
    """Return a number in Avro's variable length."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


def _plain(schema: Any) -> Any:
    """Return a schema without the logical types that Avro's Java library would apply, except UUIDs."""
    if isinstance(schema, list):
        return [_plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    drop = {"logicalType", "precision", "scale"} if schema.get("logicalType") != "uuid" else set()
    made = {name: part for name, part in schema.items() if name not in drop}
    for name in ("items", "values", "type"):
        made |= {name: _plain(made[name])} if isinstance(made.get(name), dict | list) else {}
    if isinstance(made.get("fields"), list):
        made["fields"] = [_plain(field) for field in made["fields"]]
    return made


def same(writer: Any, before: Any, reader: Any, after: Any, is_new: bool) -> bool:
    """Return whether a reader has the value that was written; a field that the writer lacks has its default.

    A default stands for what was written before the field existed (the reader is new), or for "missing" if it is null.
    """
    if isinstance(writer, list):
        return same(writer[before[0]], before[1], reader, after, is_new)
    if isinstance(reader, list):
        return same(writer, before, reader[after[0]], after[1], is_new)
    if writer["type"] == "record":
        held = {field["name"]: (field["type"], part) for field, part in zip(writer["fields"], before, strict=True)}
        known_as = {alias for field in writer["fields"] for alias in field.get("aliases", ())}
        for field, part in zip(reader["fields"], after, strict=True):
            source = next((held[name] for name in (field["name"], *field.get("aliases", ())) if name in held), None)
            if source is None:
                is_missing = part is None or (isinstance(field["type"], list) and part[1] is None)
                if field["name"] in known_as or not (is_new or is_missing):
                    return False
            elif not same(*source, field["type"], part, is_new):
                return False
        return True
    if writer["type"] == "array":
        pairs = zip(before, after, strict=True)
        return all(same(writer["items"], one, reader["items"], other, is_new) for one, other in pairs)
    if writer["type"] == "map":
        return all(same(writer["values"], one, reader["values"], after[key], is_new) for key, one in before.items())
    if _meaning(writer) != _meaning(reader):
        return False
    raw = [one.encode() if isinstance(one, str) else one for one in (before, after)]
    return raw[0] == raw[1]


def _meaning(schema: Any) -> tuple[str, int] | None:
    """Return the logical type that a reader would apply, with what changes the value."""
    name = schema.get("logicalType")
    bases = {"timestamp": "long", "local-timestamp": "long", "date": "int", "uuid": "string", "decimal": "bytes fixed"}
    base = bases.get((name or "").replace("-millis", "").replace("-micros", ""), "")
    return (name, schema.get("scale", 0)) if schema["type"] in base.split() else None


def from_java(schema: Any, value: Any) -> Any:
    """Return a value as Java prints it in the form of ours."""
    if isinstance(schema, list):
        return [value[0], from_java(schema[value[0]], value[1])]
    match schema["type"]:
        case "record":
            return [from_java(field["type"], part) for field, part in zip(schema["fields"], value, strict=True)]
        case "array":
            return [from_java(schema["items"], item) for item in value]
        case "map":
            return {key: from_java(schema["values"], item) for key, item in value.items()}
        case "float" | "double" as kind:
            bits, number = ("<i", "<f") if kind == "float" else ("<q", "<d")
            return struct.unpack(number, struct.pack(bits, value))[0]
        case "bytes" | "fixed":
            return bytes.fromhex(value)
    return value


def from_fastavro(schema: Any, value: Any) -> Any:
    """Return a value as fastavro reads it in the form of ours; the branch of a union is the first that fits."""
    if isinstance(schema, list):
        at = next(at for at, branch in enumerate(schema) if _fits(branch, value))
        return [at, from_fastavro(schema[at], value)]
    match schema["type"]:
        case "record":
            return [from_fastavro(field["type"], value[field["name"]]) for field in schema["fields"]]
        case "array":
            return [from_fastavro(schema["items"], item) for item in value]
        case "map":
            return {key: from_fastavro(schema["values"], item) for key, item in value.items()}
    return value


def _fits(schema: Any, value: Any) -> bool:
    """Return whether a value can be one of a type."""
    kinds = {"null": type(None), "boolean": bool, "int": int, "long": int, "float": float, "double": float}
    kinds |= {"bytes": bytes, "fixed": bytes, "string": str, "enum": str, "array": list, "map": dict, "record": dict}
    return type(value) is kinds[schema["type"]]


def in_java(run: RunJava, tasks: Iterable[tuple[Any, Any, bytes]]) -> list[dict[str, Any]]:
    """Return what Avro's Java library reads.

    Args:
        run: runs a class in the JVM of the fixture `run_library`.
        tasks: schemas of the writer and the reader, and the payload.
    """
    jobs = [
        {"writer": json.dumps(_plain(writer)), "reader": json.dumps(_plain(reader)), "payload": payload.hex()}
        for writer, reader, payload in tasks
    ]
    return [answer["read"] for answer in run("strata.serdes.AvroJava", jobs)]


def in_fastavro(writer: Any, reader: Any, payload: bytes) -> dict[str, Any]:
    """Return what fastavro reads, with the numbers below logical types."""
    bare = [
        json.loads(json.dumps(_plain(schema)).replace('"logicalType": "uuid"', '"x": 0')) for schema in (writer, reader)
    ]
    try:
        schemas = [fastavro.parse_schema(schema) for schema in bare]
        return {"value": fastavro.schemaless_reader(io.BytesIO(payload), schemas[0], schemas[1])}
    except Exception as error:  # noqa: BLE001 - fastavro raises errors of any kind
        return {"reason": repr(error)}
