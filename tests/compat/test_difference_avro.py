"""What the difference of two Avro schemas says is what fastavro and Avro's Java library do with the records."""

import json
from random import Random

import pytest

from harness.avro_cases import Maker
from harness.avro_readers import Names, from_fastavro, from_java, in_fastavro, in_java, same, value_of, written
from strata.compat.difference.compare import difference
from strata.compat.difference.outcomes import SEVERITY, Verdict
from strata.compat.formats import FORMATS
from strata.compat.schema import SchemaFormat

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
    "field renamed by alias, in another namespace": (
        *(record(("a", "int"), namespace="m"), record(("b", "int", {"aliases": ["a"]}), namespace="n")),
        *(BREAKS, BREAKS),
    ),
    "field renamed by alias, with a default, in another namespace": (
        *(record(("a", "int"), namespace="m"), record(("b", "int", {"aliases": ["a"], "default": 7}), namespace="n")),
        *(SILENT, BREAKS),
    ),
    "an alias of a field that stays": (
        *(record(INT), record(INT, ("b", "int", {"aliases": ["a"], "default": 7}))),
        *(BREAKS, SAFE),
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
RECORDS = 12


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
def seen(run_library):
    """Return, for each row, the worst that happened to records in each direction, at either reader."""
    chance = Random(28)
    tried = [(name, trial) for name, row in ROWS.items() for trial in trials(row[0], row[1], chance)]
    answers = in_java(run_library, [(it.writer, it.reader, it.payload) for _, it in tried])
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


@pytest.mark.parametrize("size", [25, pytest.param(3000, marks=pytest.mark.slow)])
def test_no_random_record_fares_worse_than_said(run_library, size):
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
    answers = in_java(run_library, [(it.writer, it.reader, it.payload) for _, it in tried])
    worse = [
        (verdict, answer, trial.writer, trial.reader)
        for (verdict, trial), answer in zip(tried, answers, strict=True)
        if verdict is not Verdict.UNKNOWN
        and not any(reason in answer.get("reason", "") for reason in STRICTER)
        and SEVERITY.index(trial.verdict(answer, from_java)) < SEVERITY.index(verdict)
    ]

    assert [] == worse
    assert {BREAKS, SILENT, SAFE} <= {verdict for verdict, _ in tried}
