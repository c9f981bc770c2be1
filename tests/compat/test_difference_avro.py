"""What the difference of two Avro schemas says is what fastavro and Avro's Java library do with the records."""

import io
import json
import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

import fastavro
import pytest

from harness import spark_jar
from harness.avro_cases import Maker
from strata.compat.difference.compare import difference
from strata.compat.difference.outcomes import SEVERITY, Verdict
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat

JAVA = Path(__file__).parents[1] / "serdes/java"
BREAKS, SILENT, SAFE = Verdict.BREAKS, Verdict.SILENT, Verdict.SAFE


def record(*fields, **more):
    """Return a record R of fields, each a name, a type, and maybe attributes."""
    made = [{"name": name, "type": kind, **dict(*rest)} for name, kind, *rest in fields]
    return {"type": "record", "name": "R", **more, "fields": made}


def enum(*symbols, **more):
    """Return an enum E."""
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


def fixed(size, **more):
    """Return a fixed F."""
    return {"type": "fixed", "name": "F", "size": size, **more}


def inner(kind, **more):
    """Return a record I with a field x."""
    return {"type": "record", "name": "I", "fields": [{"name": "x", "type": kind}], **more}


def told(kind, logical, **more):
    """Return a type with a logical type."""
    return {"type": kind, "logicalType": logical, **more}


def decimal(precision, scale, kind="bytes"):
    """Return a decimal."""
    return told(kind, "decimal", precision=precision, scale=scale)


def one(before, after):
    """Return two schemas that differ in the type of one field."""
    return record(("a", before)), record(("a", after))


def lists(kind):
    """Return an array of a map of a type."""
    return {"type": "array", "items": {"type": "map", "values": kind}}


INT = ("a", "int")
ROWS = {  # kind of edit: the previous schema and the new one, and the verdicts for readers and writers
    "field added": (record(INT), record(INT, ("b", "int")), BREAKS, SAFE),
    "field added with a default": (record(INT), record(INT, ("b", "int", {"default": 7})), SAFE, SAFE),
    "field removed": (record(INT, ("b", "int")), record(INT), SAFE, BREAKS),
    "field removed, with a default": (record(INT, ("b", "int", {"default": 7})), record(INT), SAFE, SILENT),
    "field removed, null by default": (
        (record(INT, ("b", ["null", "int"], {"default": None})), record(INT), SAFE, SAFE)
    ),
    "field renamed by alias": (record(("a", "int")), record(("b", "int", {"aliases": ["a"]})), SAFE, BREAKS),
    "field renamed by alias, with a default": (
        *(record(("a", "string", {"default": "EUR"})), record(("b", "string", {"default": "EUR", "aliases": ["a"]}))),
        *(SAFE, SILENT),
    ),
    "field renamed by alias, null by default": (
        *(record(("a", ["null", "int"], {"default": None})), record(("b", ["null", "int"], {"aliases": ["a"]}))),
        *(SAFE, SILENT),
    ),
    "field renamed by an alias of the old schema": (
        *(record(("a", "int", {"aliases": ["b"]})), record(("b", "int", {"default": 7}))),
        *(SILENT, SAFE),
    ),
    "field renamed by aliases on both sides": (
        *(record(("a", "int", {"aliases": ["b"]})), record(("b", "int", {"aliases": ["a"]}))),
        *(SAFE, SAFE),
    ),
    "default changed": (record(("a", "int", {"default": 1})), record(("a", "int", {"default": 2})), SAFE, SAFE),
    "doc changed": (record(("a", "int")), record(("a", "int", {"doc": "d"}), doc="r"), SAFE, SAFE),
    "order of fields": (record(INT, ("b", "int")), record(("b", "int"), INT), SAFE, SAFE),
    "order of a field": (record(("a", "int")), record(("a", "int", {"order": "ignore"})), SAFE, SAFE),
    "int to long": (*one("int", "long"), SAFE, BREAKS),
    "int to float": (*one("int", "float"), SILENT, BREAKS),
    "int to double": (*one("int", "double"), SAFE, BREAKS),
    "long to float": (*one("long", "float"), SILENT, BREAKS),
    "long to double": (*one("long", "double"), SILENT, BREAKS),
    "float to double": (*one("float", "double"), SAFE, BREAKS),
    "long to double in lists": (*one(lists("long"), lists("double")), SILENT, BREAKS),
    "long to double in a record": (*one(inner("long"), inner("double")), SILENT, BREAKS),
    "long to optional double": (*one("long", ["null", "double"]), SILENT, BREAKS),
    "long to float or long": (*one("long", ["float", "long"]), SAFE, BREAKS),
    "bytes to string": (*one("bytes", "string"), BREAKS, SAFE),
    "int to string": (*one("int", "string"), BREAKS, BREAKS),
    "int to array": (*one("int", lists("int")), BREAKS, BREAKS),
    "symbol added": (*one(enum("A", "B"), enum("A", "B", "C")), SAFE, BREAKS),
    "symbol added, with a default": (
        (*one(enum("A", "B", default="A"), enum("A", "B", "C", default="A")), SAFE, SILENT)
    ),
    "symbol removed, with a default": (*one(enum("A", "B", default="A"), enum("A", default="A")), SILENT, SAFE),
    "symbol removed": (*one(enum("A", "B"), enum("A")), BREAKS, SAFE),
    "order of symbols": (*one(enum("A", "B"), enum("B", "A")), SAFE, SAFE),
    "default of an enum": (*one(enum("A", "B"), enum("A", "B", default="B")), SAFE, SAFE),
    "branch added": (*one(["null", "int"], ["null", "int", "string"]), SAFE, BREAKS),
    "branch removed": (*one(["null", "int", "string"], ["null", "int"]), BREAKS, SAFE),
    "branch promoted": (*one(["null", "long"], ["null", "double"]), SILENT, BREAKS),
    "order of a union": (*one(["null", "int"], ["int", "null"]), SAFE, SAFE),
    "made optional": (*one("int", ["null", "int"]), SAFE, BREAKS),
    "size of a fixed": (*one(fixed(2), fixed(4)), BREAKS, BREAKS),
    "record renamed": (*one(inner("int"), inner("int", name="J")), BREAKS, BREAKS),
    "record renamed by alias": (*one(inner("int"), inner("int", name="J", aliases=["I"])), SAFE, BREAKS),
    "enum renamed": (*one(enum("A"), enum("A", name="G")), BREAKS, BREAKS),
    "fixed renamed": (*one(fixed(2), fixed(2, name="G")), BREAKS, BREAKS),
    "namespace of a record": (*one(inner("int"), inner("int", namespace="n")), SAFE, SAFE),
    "namespace of an enum": (*one(enum("A"), enum("A", namespace="n")), SAFE, SAFE),
    "namespace of a fixed in a union": (*one(["null", fixed(2)], ["null", fixed(2, namespace="n")]), SAFE, SAFE),
    "millis to micros": (*one(told("long", "timestamp-millis"), told("long", "timestamp-micros")), SILENT, SILENT),
    "zoned to local": (*one(told("long", "timestamp-millis"), told("long", "local-timestamp-millis")), SILENT, SILENT),
    "number to time": (*one("long", told("long", "timestamp-millis")), SILENT, SILENT),
    "date to time": (*one(told("int", "date"), told("long", "timestamp-millis")), SILENT, BREAKS),
    "number to date": (*one("int", told("int", "date")), SILENT, SILENT),
    "scale of a decimal": (*one(decimal(9, 2), decimal(9, 3)), SILENT, SILENT),
    "precision of a decimal": (*one(decimal(9, 2), decimal(12, 2)), SAFE, SAFE),
    "scale of a fixed decimal": (
        *one(fixed(4, logicalType="decimal", precision=9, scale=2), fixed(4, logicalType="decimal", precision=9)),
        *(SILENT, SILENT),
    ),
    "bytes to decimal": (*one("bytes", decimal(9, 2)), SILENT, SILENT),
    "text to uuid": (*one("string", told("string", "uuid")), BREAKS, SILENT),
    "a logical type without a meaning": (*one("string", told("string", "tongue")), SAFE, SAFE),
    "a logical type that does not fit": (*one("int", told("int", "uuid")), SAFE, SAFE),
    "attribute": (*one("int", {"type": "int", "x": 1}), SAFE, SAFE),
}
RECORDS = 25
VALUES = {
    "null": [None],
    "boolean": [True, False],
    "int": [0, -1, 2**24 + 1, 2**31 - 1, -(2**31)],
    "long": [0, -1, 2**24 + 1, 2**53 + 1, 2**63 - 1],
    "float": [0.0, 1.5, -0.25],
    "double": [0.0, 1e300, 0.1],
    "bytes": [b"a", b"\xff\x01", b"\x00\x80"],
    "string": ["", "é", "a"],
}


class Names(dict):
    """The named types of a schema, by full name; a schema's types get their full names."""

    def __init__(self, schema):
        super().__init__()
        self.root = self.collect(schema, "")

    def collect(self, schema, namespace):
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


def value_of(schema, chance):
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
            return chance.choice(VALUES[kind])


def written(schema, value):
    """Return the bytes of a value, by Avro's specification."""
    if isinstance(schema, list):
        return zigzag(value[0]) + written(schema[value[0]], value[1])
    match schema["type"]:
        case "record":
            return b"".join(written(field["type"], part) for field, part in zip(schema["fields"], value, strict=True))
        case "array":
            items = b"".join(written(schema["items"], item) for item in value)
            return (zigzag(len(value)) + items if value else b"") + b"\0"
        case "map":
            items = b"".join(
                written({"type": "string"}, key) + written(schema["values"], it) for key, it in value.items()
            )
            return (zigzag(len(value)) + items if value else b"") + b"\0"
        case "enum":
            return zigzag(schema["symbols"].index(value))
        case "int" | "long":
            return zigzag(value)
        case "float" | "double" as kind:
            return struct.pack("<f" if kind == "float" else "<d", value)
        case "boolean":
            return bytes([value])
        case "string" | "bytes":
            raw = value.encode() if isinstance(value, str) else value
            return zigzag(len(raw)) + raw
    return value or b""


def zigzag(number):
    """Return a number in Avro's variable length."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    return bytes([*out, left])


def plain(schema):
    """Return a schema without the logical types that Avro's Java library would apply, except UUIDs."""
    if isinstance(schema, list):
        return [plain(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    drop = {"logicalType", "precision", "scale"} if schema.get("logicalType") != "uuid" else set()
    made = {name: part for name, part in schema.items() if name not in drop}
    for name in ("items", "values", "type"):
        made |= {name: plain(made[name])} if isinstance(made.get(name), dict | list) else {}
    if isinstance(made.get("fields"), list):
        made["fields"] = [plain(field) for field in made["fields"]]
    return made


def same(writer, before, reader, after, is_new):
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
    if meaning(writer) != meaning(reader):
        return False
    raw = [one.encode() if isinstance(one, str) else one for one in (before, after)]
    return raw[0] == raw[1]


def meaning(schema):
    """Return the logical type that a reader would apply, with what changes the value."""
    name = schema.get("logicalType")
    bases = {"timestamp": "long", "local-timestamp": "long", "date": "int", "uuid": "string", "decimal": "bytes fixed"}
    base = bases.get((name or "").replace("-millis", "").replace("-micros", ""), "")
    return (name, schema.get("scale", 0)) if schema["type"] in base.split() else None


def from_java(schema, value):
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


def from_fastavro(schema, value):
    """Return a value as fastavro reads it in the form of ours; the branch of a union is the first that fits."""
    if isinstance(schema, list):
        at = next(at for at, branch in enumerate(schema) if fits(branch, value))
        return [at, from_fastavro(schema[at], value)]
    match schema["type"]:
        case "record":
            return [from_fastavro(field["type"], value[field["name"]]) for field in schema["fields"]]
        case "array":
            return [from_fastavro(schema["items"], item) for item in value]
        case "map":
            return {key: from_fastavro(schema["values"], item) for key, item in value.items()}
    return value


def fits(schema, value):
    """Return whether a value can be one of a type."""
    kinds = {"null": type(None), "boolean": bool, "int": int, "long": int, "float": float, "double": float}
    kinds |= {"bytes": bytes, "fixed": bytes, "string": str, "enum": str, "array": list, "map": dict, "record": dict}
    return type(value) is kinds[schema["type"]]


def in_java(tasks, folder):
    """Return what Avro's Java library reads; one JVM for all tasks."""
    spark_jar.compile_java(sorted(JAVA.rglob("*.java")), folder)
    command = [
        *(shutil.which("java") or "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("-cp", f"{folder}:{spark_jar.spark_class_path()}", "strata.serdes.AvroJava"),
    ]
    lines = "".join(
        json.dumps({"writer": json.dumps(plain(writer)), "reader": json.dumps(plain(reader)), "payload": payload.hex()})
        + "\n"
        for writer, reader, payload in tasks
    )
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [json.loads(line)["read"] for line in done.stdout.splitlines()]


def in_fastavro(writer, reader, payload):
    """Return what fastavro reads, with the numbers below logical types."""
    bare = [
        json.loads(json.dumps(plain(schema)).replace('"logicalType": "uuid"', '"x": 0')) for schema in (writer, reader)
    ]
    try:
        return {"value": fastavro.schemaless_reader(io.BytesIO(payload), *map(fastavro.parse_schema, bare))}
    except Exception as error:  # noqa: BLE001 - fastavro raises errors of any kind
        return {"reason": repr(error)}


class Trial:
    """A record that one schema writes and the other one reads."""

    def __init__(self, writer, reader, value, payload, *, is_new):
        self.writer, self.reader, self.payload, self.is_new = writer, reader, payload, is_new
        self.value = value

    def verdict(self, answer, form):
        """Return what happened to the record at a reader."""
        if "reason" in answer:
            return BREAKS
        writer, reader = Names(self.writer).root, Names(self.reader).root
        return SAFE if same(writer, self.value, reader, form(reader, answer["value"]), self.is_new) else SILENT


def trials(previous, new, chance):
    """Yield random records in both directions."""
    for writer, reader, is_new in ((previous, new, True), (new, previous, False)):
        root = Names(writer).root
        for _ in range(RECORDS):
            value = value_of(root, chance)
            yield Trial(writer, reader, value, written(root, value), is_new=is_new)


def said(previous, new):
    """Return the verdicts of the difference for readers and writers."""
    parse = FORMATS[SchemaFormat.AVRO].parse
    found = difference(*(parse(json.dumps(schema), strict=False) for schema in (previous, new)))
    return found.readers, found.writers


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return, for each row, the worst that happened to records in each direction, at either reader."""
    chance = Random(28)
    tried = [(name, trial) for name, row in ROWS.items() for trial in trials(row[0], row[1], chance)]
    answers = in_java([(it.writer, it.reader, it.payload) for _, it in tried], tmp_path_factory.mktemp("avro-java"))
    found = {name: ({True: [], False: []}, {True: [], False: []}) for name in ROWS}
    for (name, trial), answer in zip(tried, answers, strict=True):
        found[name][0][trial.is_new].append(trial.verdict(answer, from_java))
        other = in_fastavro(trial.writer, trial.reader, trial.payload)
        found[name][1][trial.is_new].append(trial.verdict(other, from_fastavro))
    return found


FASTAVRO_ALONE = {"long to float or long"}  # takes a promotion before a union's branch of the very kind


@pytest.mark.parametrize("name", ROWS)
def test_the_verdict_is_what_readers_do(seen, name):
    """Each kind of edit breaks, changes values or is safe in each direction as two real readers show it."""
    previous, new, *expected = ROWS[name]
    readers = seen[name][: 1 if name in FASTAVRO_ALONE else 2]
    observed = [
        min((verdict for reader in readers for verdict in reader[is_new]), key=SEVERITY.index)
        for is_new in (True, False)
    ]

    assert observed == expected
    assert tuple(expected) == said(previous, new)


# What Avro's Java library refuses though the rules, taken from the same library, accept it.
STRICTER = ("Invalid default", "UUID string")


@pytest.mark.parametrize("size", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_no_random_record_fares_worse_than_said(size, tmp_path):
    """A random pair never breaks a record that is called readable, nor changes a value that is called safe."""
    maker, chance = Maker(Random(31)), Random(31)
    tried = []
    for _ in range(size):
        case = maker.case()
        writer, reader = json.loads(case.writer), json.loads(case.reader)
        verdicts = said(writer, reader)[0], said(reader, writer)[1]
        root = Names(writer).root
        for is_new, verdict in zip((True, False), verdicts, strict=True):
            for _ in range(3):
                value = value_of(root, chance)
                tried.append((verdict, Trial(writer, reader, value, written(root, value), is_new=is_new)))
    answers = in_java([(it.writer, it.reader, it.payload) for _, it in tried], tmp_path)
    worse = [
        (verdict, answer, trial.writer, trial.reader)
        for (verdict, trial), answer in zip(tried, answers, strict=True)
        if verdict is not Verdict.UNKNOWN
        and not any(reason in answer.get("reason", "") for reason in STRICTER)
        and SEVERITY.index(trial.verdict(answer, from_java)) < SEVERITY.index(verdict)
    ]

    assert [] == worse
    assert {BREAKS, SILENT, SAFE} <= {verdict for verdict, _ in tried}
