"""Each proof of a Protobuf finding is what Google's Java and Python libraries do with the message."""

from collections import Counter
from itertools import chain, islice
from random import Random

import pytest
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from harness.proof_cases import Pair, proofs, random_pairs, recorded_pairs
from harness.protobuf_messages import Task, in_java, in_python
from harness.protobuf_readers import filled, same
from strata.compat.check import Previous
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.limits import Limits
from strata.compat.proofs import Altered, NoWitness, Refused, RuleOnly, Witness
from strata.compat.schema import SchemaFormat
from strata.compat.witness.protobuf_types import message_types
from strata.compat.witness.search import budget_within, silent_changes

PROTOBUF = FORMATS[SchemaFormat.PROTOBUF]


def parsed(text):
    """Parse a schema."""
    return PROTOBUF.parse(text, strict=False)


def three(body, more=""):
    """Return a proto3 file with a message A."""
    return f'syntax = "proto3"; message A {{ {body} }} message M {{ int32 x = 1; }} {more}'


def two(body):
    """Return a proto2 file with a message A."""
    return f'syntax = "proto2"; message A {{ {body} }} message M {{ optional int32 x = 1; }}'


def first(writer, reader):
    """Return the proof of the first finding."""
    return proofs(Pair("", parsed(reader), parsed(writer)))[0][1]


def silent(writer, reader, level=Level.BACKWARD):
    """Return what is written and read, or the error, of each accepted change of a value."""
    old, new = (writer, reader) if level is Level.BACKWARD else (reader, writer)
    found = silent_changes(parsed(new), [Previous(3, parsed(old))], level, (), budget_within(Limits()))
    outcomes = [one.proof.outcome for one in found]
    return [(one.written_as, one.read_as) if isinstance(one, Altered) else one for one in outcomes]


LARGE = 2**31 - 1
ROWS = {  # change: the writer's schema, the reader's, and the outcome of the first finding
    "a required field": (
        *(two(""), two("required int32 a = 1;"), Refused("The reader requires what the message lacks: a.")),
    ),
    "another wire type": (three("int32 a = 1;"), three("string a = 1;"), Altered({"a": 1}, {"a": ""})),
    "zigzag": (three("int32 a = 1;"), three("sint32 a = 1;"), Altered({"a": 1}, {"a": -1})),
    "text to a message": (
        *(three("string a = 1;"), three("M a = 1;")),
        Refused("The bytes of field 1 are written as string; the reader cannot parse them as M."),
    ),
    "a list to a number": (
        two("repeated int32 a = 1;"),
        two("optional int32 a = 1;"),
        Altered({"a": [1, 1]}, {"a": 1}),
    ),
    "several fields to a oneof": (
        *(three("string a = 1; string b = 2;"), three("oneof o { string a = 1; string b = 2; }")),
        Altered({"a": "a", "b": "a"}, {"b": "a"}),
    ),
    "a member of a oneof removed": (
        *(three("oneof o { string a = 1; string b = 2; }"), three("oneof o { string a = 1; }")),
        Altered({"b": "a"}, {}),
    ),
    "a field inside another message": (
        *(three("N a = 1; message N { int32 x = 1; }"), three("O a = 1; message O { sint32 x = 1; }")),
        Refused("The reader has no message type 'A.N' to read it with."),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_message_that_shows_it(name):
    """Values are set so that the reader's view differs from the writer's."""
    writer, reader, outcome = ROWS[name]
    found = proofs(Pair("", parsed(reader), parsed(writer)))

    assert outcome in [proof.outcome for _, proof in found if isinstance(proof, Witness)]


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (three("int32 a = 1;"), three("int32 a = 1;").replace(";", "; package p;", 1)),
        (two("required int32 a = 1;"), two("")),
        (two("required int32 a = 1;"), two("optional int32 a = 1;")),
    ],
    ids=["package", "required field removed", "required made optional"],
)
def test_a_rule_that_no_message_needs(writer, reader):
    """The rule refuses the change, and readers read every message as it was written."""
    assert isinstance(first(writer, reader), RuleOnly)


SYMBOLS = "E a = 1; enum E {{ Z = 0; {} }}"
ALTERED = {  # change: the writer's schema, the reader's, and what is written and read
    "int32 to uint32": (three("int32 a = 1;"), three("uint32 a = 1;"), {"a": -1}, {"a": 2**32 - 1}),
    "int32 to bool": (three("int32 a = 1;"), three("bool a = 1;"), {"a": -1}, {"a": True}),
    "int64 to int32": (three("int64 a = 1;"), three("int32 a = 1;"), {"a": str(2**31)}, {"a": -(2**31)}),
    "a symbol that the reader lacks": (
        *(three(SYMBOLS.format("B = 1;")), three(SYMBOLS.format("")), {"a": "B"}, {"a": 1}),
    ),
    "fields swapped": (three("int32 a = 1; int32 b = 2;"), three("int32 b = 1; int32 a = 2;"), {"a": 1}, {"b": 1}),
    "presence": (three("optional int32 a = 1;"), three("int32 a = 1;"), {}, {"a": 0}),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_accepted_change_of_a_value(name):
    """The witness shows the field as it was written, and as it is read."""
    writer, reader, before, after = ALTERED[name]

    assert (before, after) == silent(writer, reader)[0]


def test_a_removed_field():
    """The old reader sees zero, not that the field is missing."""
    assert [({}, {"b": 0})] == silent(three("int32 a = 1;"), three("int32 a = 1; int32 b = 2;"), Level.FORWARD)


def kind_of(schema, path):
    """Return the message type that a path names."""
    types = message_types(schema, Limits())[1]
    steps = path.removeprefix("#/").split("/")
    names = [".".join(steps[:end]) for end in range(len(steps), 0, -1)]
    return next(types[name] for name in names if name in types)


def judged(run_library, cases):
    """Return the cases whose proof a judge contradicts."""
    held = [case for case in cases if isinstance(case[2], Witness) and "no message type" not in str(case[2].outcome)]
    tasks = [
        Task(kind_of(schema, finding.path), proof.payload)
        for pair, finding, proof in held
        for schema in (pair.writer, pair.reader)
    ]
    answers = list(zip(in_java(run_library, tasks), map(in_python, tasks), strict=True))
    wrong = []
    for (pair, finding, proof), written, read in zip(held, answers[::2], answers[1::2], strict=True):
        if isinstance(proof.outcome, Refused):
            is_true = all("error" in answer for answer in read)
        else:  # the two libraries differ in what they make of the entry of a map whose key or value does not fit
            values = [answer.get("value") for answer in read]
            is_map = has_map(kind_of(pair.reader, finding.path), set())
            is_true = None not in values and (values[0] == values[1] or (is_map and read[0] != written[0]))
        if written[0] != written[1] or "value" not in written[0] or not is_true:
            wrong.append((pair.name, finding.kind, finding.path, proof, written, read))
    return wrong


def has_map(kind, seen):
    """Return whether a message type has a map, itself or inside."""
    seen.add(kind.full_name)
    inner = [field.message_type for field in kind.fields if field.message_type is not None]
    return any(one.GetOptions().map_entry for one in inner) or any(
        has_map(one, seen) for one in inner if one.full_name not in seen
    )


def lacking(cases):
    """Return the cases that say that the reader lacks a type which it has."""
    return [
        (pair.name, finding.path)
        for pair, finding, proof in cases
        if isinstance(proof, Witness)
        and "no message type" in str(proof.outcome)
        and finding.path.removeprefix("#/").replace("/", ".") in message_types(pair.reader, Limits())[0]
    ]


@pytest.mark.parametrize(("every", "size"), [(120, 10), pytest.param(1, 10_000, marks=pytest.mark.slow)])
def test_each_finding_has_a_true_proof(run_library, every, size):
    """Each incompatible recorded or random pair has a message that shows it, or a rule that none needs."""
    pairs = chain(
        recorded_pairs(SchemaFormat.PROTOBUF, every),
        islice(random_pairs(SchemaFormat.PROTOBUF, Random(2027)), size),
    )
    cases = [(pair, finding, proof) for pair in pairs for finding, proof in proofs(pair)]
    kinds = Counter(type(proof) for _, _, proof in cases)

    assert [] == [(pair.name, finding) for pair, finding, proof in cases if isinstance(proof, NoWitness)]
    assert [] == judged(run_library, cases)
    assert [] == lacking(cases)
    assert kinds[Witness] > kinds[RuleOnly] > 0


@pytest.mark.parametrize(("size", "records"), [(15, 5), pytest.param(1000, 1000, marks=pytest.mark.slow)])
def test_no_message_changes_without_a_finding(size, records):
    """A pair without a witness is read as it was written: it is compatible, or a rule refuses what none needs."""
    chance, shapes = Random(41), Counter()
    for pair in chain(
        islice(random_pairs(SchemaFormat.PROTOBUF, Random(2029)), size),
        recorded_pairs(SchemaFormat.PROTOBUF, 20),
    ):
        found = [proof for _, proof in proofs(pair)]
        changes = silent_changes(pair.reader, [Previous(1, pair.writer)], Level.BACKWARD, (), budget_within(Limits()))
        if changes or any(not isinstance(proof, RuleOnly) for proof in found):
            continue
        shapes[bool(found)] += 1
        readers, writers = message_types(pair.reader, Limits())[0], message_types(pair.writer, Limits())[0]
        for name in readers.keys() & writers.keys():
            written, read = GetMessageClass(writers[name]), GetMessageClass(readers[name])
            for _ in range(records):
                assert is_read(filled(written(), chance), read()), (pair.name, name)
    assert shapes[False] > 0
    assert shapes[True] > 0


def is_read(message, read):
    """Return whether a reader has what was written."""
    try:
        read.ParseFromString(message.SerializeToString())
    except (DecodeError, UnicodeDecodeError):
        return False
    return read.IsInitialized() and same(message, read, is_new=True)
