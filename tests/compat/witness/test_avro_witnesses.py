"""Each proof of an Avro finding is what Avro's Java library and fastavro do with the record."""

import json
from collections import Counter
from itertools import chain, islice
from random import Random

import pytest

from harness.avro_readers import Names, from_java, in_fastavro, in_java, same, value_of, written
from harness.proof_cases import Pair, proofs, random_pairs, recorded_pairs
from strata.compat.check import Previous
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.compat.proofs import Altered, Budget, NoWitness, Refused, RuleOnly, Witness
from strata.compat.schema import SchemaFormat
from strata.compat.witness.search import budget_within, silent_changes

AVRO = FORMATS[SchemaFormat.AVRO]


def record(*fields, name="R", **more):
    """Return a record of fields, each a name, a type, and maybe attributes."""
    made = [{"name": name, "type": kind, **dict(*rest)} for name, kind, *rest in fields]
    return {"type": "record", "name": name, **more, "fields": made}


def enum(*symbols, name="E", **more):
    """Return an enum."""
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def parsed(schema):
    """Parse a schema."""
    return AVRO.parse(json.dumps(schema), strict=False)


def text(schema):
    """Return a schema with its references written out, as JSON."""
    return json.loads(AVRO.printed_as["resolved"](schema))


def first(writer, reader):
    """Return the proof of the first finding."""
    return proofs(Pair("", parsed(reader), parsed(writer)))[0][1]


def silent(writer, reader, level=Level.BACKWARD):
    """Return the record, and what is written and read, of each accepted change of a value."""
    budget = budget_within(Limits())
    old, new = (writer, reader) if level is Level.BACKWARD else (reader, writer)
    found = silent_changes(parsed(new), [Previous(3, parsed(old))], level, (), budget)
    return [
        (one.proof.record, one.proof.outcome.written_as, one.proof.outcome.read_as)
        if isinstance(one.proof.outcome, Altered)
        else (one.proof.record, one.proof.outcome)
        for one in found
    ]


INT = ("a", "int")
TREE = record(("next", ["null", "T"]), ("a", "int"), name="T")
DEEPER = record(("next", ["null", "T"]), ("a", "int"), ("b", "int"), name="T")
LISTS = {"type": "array", "items": {"type": "map", "values": record(INT)}}
REFUSED = {  # rule: the writer's schema, the reader's, the record and its bytes, and a part of the error
    "a field without a default": (record(INT), record(INT, ("b", "int")), {"a": 0}, b"\0", "no field 'b'"),
    "a type": (record(INT), record(("a", "string")), {"a": 0}, b"\0", "expects string, but int is written"),
    "a branch": (
        *(["null", "int", "string"], ["null", "string"], {"int": 0}, b"\2\0"),
        "union [null, string] has no branch for int",
    ),
    "a symbol": (enum("A", "B", "C"), enum("A", "C"), "B", b"\2", "has neither the symbol 'B' nor a default"),
    "a symbol in a branch": (
        *(record(("e", ["null", enum("A", "B")])), record(("e", ["null", enum("A")])), {"e": {"E": "B"}}, b"\2\2"),
        "has neither the symbol 'B' nor a default",
    ),
    "the size of a fixed": (
        *({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}, "\0\0", b"\0\0"),
        "expects 3 bytes in fixed F, but 2 are written",
    ),
    "the name of an enum": (enum("A"), enum("A", name="G"), "A", b"\0", "expects enum G, but enum E is written"),
    "a field inside lists": (
        *(LISTS, json.loads(json.dumps(LISTS).replace("]}}", ', {"name": "b", "type": "int"}]}}'))),
        *([{"k": {"a": 0}}], b"\2\2\2k\0\0\0", "no field 'b'"),
    ),
    "a recursive type": (TREE, DEEPER, {"next": None, "a": 0}, b"\0\0", "no field 'b'"),
    "a field below an optional one": (
        *(record(("o", ["null", record(INT, name="I")])), record(("o", ["null", record(("a", "string"), name="I")]))),
        *({"o": {"I": {"a": 0}}}, b"\2\0", "expects string, but int is written"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_smallest_record_that_breaks(name):
    """The record takes the branch, uses the symbol and fills the list on the way; the rest is as small as can be."""
    writer, reader, expected, payload, error = REFUSED[name]
    proof = first(writer, reader)

    assert (expected, payload) == (proof.record, proof.payload)
    assert error in proof.outcome.error


def test_the_name_of_a_record_is_a_rule_only():
    """Avro's Java library does not compare it, also not below a union if the fields fit."""
    renamed = first(record(INT), record(INT, name="Q"))
    in_union = first(["null", record(INT)], ["null", record(("a", "long"), name="Q")])

    assert "reads each record of 'R' as 'Q'" in renamed.because
    assert isinstance(in_union, RuleOnly)


def test_a_record_of_another_name_hides_aliases():
    """Avro's Java library ignores the aliases of fields in a record of another name, so that the name does matter."""
    aliased = ("b", "int", {"aliases": ["a"]})
    refused = first(record(INT), record(aliased, name="Q"))
    hidden = first(record(INT), record(("b", "int", {"aliases": ["a"], "default": 7}), name="Q"))

    assert "no field 'b'" in refused.outcome.error
    assert Altered({"a": 1}, {"b": 7}) == hidden.outcome


def test_a_type_without_values_is_a_rule_only():
    """No record reaches a finding below a type that always holds another of itself."""
    endless = record(("next", "T"), ("a", "int"), name="T")
    proof = first(endless, endless | {"fields": [*endless["fields"], {"name": "b", "type": "int"}]})

    assert "always holds another of itself" in proof.because


def test_a_large_record_is_no_witness():
    """A witness has at most 4 kB."""
    fixed = ("f", {"type": "fixed", "name": "F", "size": 5000})

    assert NoWitness("size") == first(record(fixed), record(fixed, INT))
    assert NoWitness("size") == first(
        record(*((f"{'f' * 100}{number}", "int") for number in range(60))), record(("z", "int"))
    )


MILLIS, MICROS, LOCAL = (
    {"type": "long", "logicalType": name} for name in ("timestamp-millis", "timestamp-micros", "local-timestamp-millis")
)
ALTERED = {  # change: the writer's schema, the reader's, the record, what is written and what is read
    "long to double": (record(("a", "long")), record(("a", "double")), {"a": 2**53 + 1}, 2**53 + 1, 2.0**53),
    "int to float": (record(("a", "int")), record(("a", "float")), {"a": 2**24 + 1}, 2**24 + 1, 2.0**24),
    "an enum's default": (
        *(enum("A", "B", default="A"), enum("A", default="A"), "B", "B", "A"),
    ),
    "a field renamed for the writer only": (
        *(record(("a", "int", {"aliases": ["b"]})), record(("b", "int", {"default": 7}))),
        *({"a": 1}, {"a": 1}, {"b": 7}),
    ),
    "millis to micros": (
        *(record(("t", MILLIS)), record(("t", MICROS)), {"t": 1}),
        *("1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.000001Z"),
    ),
    "zoned to local": (
        *(record(("t", MILLIS)), record(("t", LOCAL)), {"t": 1}, "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.001"),
    ),
    "the scale of a decimal": (
        *({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},),
        *({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}, "\1", "0.01", "0.001"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_an_accepted_change_of_a_value(name):
    """The witness shows the value as it was written, and as it is read."""
    writer, reader, *expected = ALTERED[name]

    assert [tuple(expected)] == silent(writer, reader)


def test_a_removed_field_with_a_default():
    """The old reader sees the default, not that the field is missing."""
    old, new = record(INT, ("b", "int", {"default": 7})), record(INT)

    assert [({"a": 0}, {}, {"b": 7})] == silent(new, old, Level.FORWARD)
    assert [] == silent(old, new)


def test_an_alias_that_readers_ignore():
    """The rules accept a field renamed by an alias in a record of another namespace, and readers do not find it."""
    old = record(INT, namespace="m")
    refused = silent(old, record(("b", "int", {"aliases": ["a"]}), namespace="n"))
    hidden = silent(old, record(("b", "int", {"aliases": ["a"], "default": 7}), namespace="n"))

    assert [({"a": 0}, Refused("The record has no field 'b', and the reader has no default for it."))] == refused
    assert [({"a": 1}, {"a": 1}, {"b": 7})] == hidden


def test_bytes_that_are_not_text():
    """Bytes may be read as text by the rules, and some cannot."""
    found = silent(record(("a", "bytes")), record(("a", "string")))

    assert [({"a": "\xff"}, Refused("The bytes are not UTF-8, so that they cannot be read as text."))] == found


# Where fastavro alone reads on: it takes an empty union for no reader, and an alias without the namespace for a name.
# It does not exchange two fields by their aliases, and it refuses a record of another name.
def fastavro_differs(pair, proof):
    """Return whether fastavro is known to do something else with the record of a proof."""
    return "no branch for null" in str(proof.outcome) or '"aliases"' in json.dumps(text(pair.reader))


def judged(run_library, cases):
    """Return the pairs whose proof a judge contradicts."""
    held = [(pair, finding, proof) for pair, finding, proof in cases if isinstance(proof, Witness)]
    tasks = [(text(pair.writer), text(pair.reader), proof.payload) for pair, _, proof in held]
    wrong = []
    for (pair, finding, proof), task, answer in zip(held, tasks, in_java(run_library, tasks), strict=True):
        breaks = isinstance(proof.outcome, Refused)
        if ("reason" in answer) != breaks:
            wrong.append((pair.name, finding, proof, answer))
        elif ("reason" in in_fastavro(*task)) != breaks and not fastavro_differs(pair, proof):
            wrong.append((pair.name, finding, proof, "fastavro"))
    return wrong


def all_proofs(pairs):
    """Return the findings of pairs, with their proofs."""
    return [(pair, finding, proof) for pair in pairs for finding, proof in proofs(pair)]


@pytest.mark.parametrize(("every", "size"), [(80, 25), pytest.param(1, 10_000, marks=pytest.mark.slow)])
def test_each_finding_has_a_true_proof(run_library, every, size):
    """Each incompatible recorded or random pair has a record that both readers refuse, or a rule that none needs."""
    pairs = chain(
        recorded_pairs(SchemaFormat.AVRO, every),
        islice(random_pairs(SchemaFormat.AVRO, Random(2027)), size),
    )
    cases = all_proofs(pairs)
    kinds = Counter(type(proof) for _, _, proof in cases)

    assert [] == [(pair.name, finding) for pair, finding, proof in cases if isinstance(proof, NoWitness)]
    assert [] == judged(run_library, cases)
    assert kinds[Witness] > kinds[RuleOnly] > 0


# What Avro's Java library refuses though the rules, taken from the same library, accept it.
STRICTER = ("Invalid default", "UUID string")


def is_read(writer, reader, value, answer):
    """Return whether Avro's Java library reads a record as it was written."""
    root = Names(reader).root
    return "value" in answer and same(Names(writer).root, value, root, from_java(root, answer["value"]), is_new=True)


@pytest.mark.parametrize(("size", "records"), [(12, 5), pytest.param(40, 1000, marks=pytest.mark.slow)])
def test_no_record_changes_without_a_finding(run_library, size, records):
    """A pair without a witness is read as it was written: it is compatible, or a rule refuses what no record breaks."""
    chance, tried, shapes = Random(41), [], Counter()
    for pair in islice(random_pairs(SchemaFormat.AVRO, Random(2029)), size * 4):
        found = [proof for _, proof in proofs(pair)]
        changes = silent_changes(pair.reader, [Previous(1, pair.writer)], Level.BACKWARD, (), Budget())
        if changes or any(not isinstance(proof, RuleOnly) for proof in found):
            continue
        shapes[bool(found)] += 1
        writer, reader = text(pair.writer), text(pair.reader)
        root = Names(writer).root
        for _ in range(records):
            value = value_of(root, chance)
            tried.append((writer, reader, value, written(root, value)))
    answers = in_java(run_library, [(writer, reader, payload) for writer, reader, _, payload in tried])
    wrong = [
        (task, answer)
        for task, answer in zip(tried, answers, strict=True)
        if not any(reason in answer.get("reason", "") for reason in STRICTER) and not is_read(*task[:3], answer)
    ]

    assert [] == wrong
    assert shapes[False] > shapes[True] > 0
