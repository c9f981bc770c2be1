"""The proofs of a check: bounds on time, and sentences for people."""

import json

import pytest

from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Direction, Level
from strata.compat.limits import Limits
from strata.compat.proofs import Altered, Budget, NoWitness, Refused, RuleOnly, Witness
from strata.compat.result import Finding
from strata.compat.schema import SchemaFormat
from strata.compat.witness.search import SILENT_CHANGE, proven, silent_changes
from strata.compat.witness.text import lines_of


def record(*fields):
    """Return a record schema."""
    made = [{"name": name, "type": kind} for name, kind in fields]
    return FORMATS[SchemaFormat.AVRO].parse(json.dumps({"type": "record", "name": "R", "fields": made}), strict=False)


PROTO = FORMATS[SchemaFormat.PROTOBUF].parse('syntax = "proto3"; message R {}', strict=False)


def over():
    """Return a budget whose time is over."""
    return Budget(Limits().ending_in(-1))


def test_no_time():
    """Without time, each finding says that it has no witness, and that changes of values are not judged."""
    new, previous = record(("a", "string"), ("b", "double")), [Previous(1, record(("a", "int"), ("b", "long")))]
    refused = check(new, previous, Level.BACKWARD).incompatibilities

    assert [NoWitness("time")] == [one.proof for one in proven(new, previous, refused, over())]
    (unjudged,) = silent_changes(new, previous, Level.BACKWARD, refused, over())
    assert (SILENT_CHANGE, NoWitness("time")) == (unjudged.rule, unjudged.proof)


def test_another_format():
    """A finding about the format has no record, and nothing else is compared."""
    previous = [Previous(1, PROTO)]
    refused = check(record(), previous, Level.FULL).incompatibilities

    assert [NoWitness("undecided")] == [one.proof for one in proven(record(), previous, refused, Budget())]
    assert [] == silent_changes(record(), previous, Level.FULL, refused, Budget())


def test_what_is_refused_is_not_listed_again():
    """A part that a rule refuses is not an accepted change; a level without directions accepts everything unseen."""
    new, previous = record(("a", "string"), ("b", "double")), [Previous(1, record(("a", "int"), ("b", "long")))]
    refused = check(new, previous, Level.BACKWARD).incompatibilities

    assert ["b"] == [one.field for one in silent_changes(new, previous, Level.BACKWARD, refused, Budget())]
    assert [] == silent_changes(new, previous, Level.NONE, refused, Budget())


RECORD = {"a": "\u202e\x07"}
ROWS = [
    (Witness(RECORD, b"", Refused("Odd.")), Direction.BACKWARD, 3,
     ['This record, written with version 3, cannot be read with the new schema: {"a": "\\u202e\\u0007"}', "Odd."]),
    (Witness({}, b"", Altered({"a": 1}, {"b": 2})), Direction.FORWARD, 3,
     ["This record, written with the new schema, is read with version 3 as another one: {}",
      'Written as {"a": 1}, read as {"b": 2}.']),
    (Witness({}, b"", Refused("No.")), Direction.BACKWARD, None,
     ["This record, written with the previous version, cannot be read with the new schema: {}", "No."]),
    (RuleOnly("Names do not count."), Direction.BACKWARD, 3, ["No record breaks. Names do not count."]),
    (NoWitness("size"), Direction.BACKWARD, 3, ["The smallest record that shows it is too large."]),
]  # fmt: skip


@pytest.mark.parametrize(("proof", "direction", "version", "expected"), ROWS)
def test_a_proof_in_words(proof, direction, version, expected):
    """The sentences name who writes and who reads, and hold no control characters."""
    finding = Finding("RULE", "", direction=direction, version=version, proof=proof)

    assert expected == list(lines_of(finding))
