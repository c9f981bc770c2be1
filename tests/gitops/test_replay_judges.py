"""What a judge of `strata replay` finds in records in memory."""

import json

import numpy as np
import pytest

from strata.gitops.replay.judges import judge_of
from strata.gitops.replay.outcome import Key, Outcome, Place
from strata.gitops.replay.reports import as_text
from strata.gitops.replay.topic import Batch
from strata.serdes.client import Reference, RegistryClient, Schema

INTEGER, NUMBER = {"type": "integer"}, {"type": "number"}
LARGE = 2**53 + 1


def held(inner, **more):
    """Return the schema of an object with a property n."""
    return {"type": "object", "properties": {"n": inner}, **more}


def listed(inner):
    """Return the schema of an array."""
    return {"type": "array", "items": inner}


ROUNDED = {  # the writer's schema, the candidate, documents, and where which numbers become doubles
    "a number": (held(INTEGER), held(NUMBER), [{"n": 1}, {"n": LARGE}, {"n": 2**53}], [("n", 1)]),
    "items": (held(listed(INTEGER)), held(listed(NUMBER)), [{"n": [1, LARGE, -LARGE]}], [("n[]", 0), ("n[]", 0)]),
    "a branch": (
        *(held({"oneOf": [INTEGER, {"type": "string"}]}), held({"oneOf": [NUMBER, {"type": "string"}]})),
        *([{"n": "a"}, {"n": LARGE}], [("n", 1)]),
    ),
    "other properties": (
        *(held(INTEGER, additionalProperties=INTEGER), held(INTEGER, additionalProperties=NUMBER)),
        *([{"n": LARGE, "m": LARGE}], [("m", 0)]),
    ),
    "a number before": (held(NUMBER), held(NUMBER | {"title": "N"}), [{"n": LARGE}], []),
}


@pytest.fixture
def client(service):
    """Return a client of a registry."""
    return RegistryClient(service.url)


def judged(client, writer, candidate, documents):
    """Return what a judge finds in documents of a writer's schema."""
    schema_id = client.register("replayed-value", writer).schema_id
    frames = [b"\0" + schema_id.to_bytes(4, "big") + json.dumps(one).encode() for one in documents]
    batch = Batch(0, np.frombuffer(b"".join(frames), np.uint8), np.array([*map(len, frames)]), np.arange(len(frames)))
    outcome = Outcome()
    judge_of(candidate, client, writes=False).judge(batch, outcome)
    return schema_id, outcome.findings


@pytest.mark.parametrize("name", ROUNDED)
def test_numbers_that_become_doubles(client, name):
    """An integer that the candidate reads as a double is a changed value if it is another one, and only there."""
    writer, candidate, documents, expected = ROUNDED[name]
    client.set_config("NONE")
    schemas = (Schema(json.dumps(one), "JSON") for one in (writer, candidate))
    schema_id, findings = judged(client, *schemas, documents)
    paths = dict.fromkeys(path for path, _ in expected)

    assert [Key("changed", path, "another value is read", str(schema_id)) for path in paths] == [*findings]
    assert [[Place(0, row) for at, row in expected if at == path] for path in paths] == [
        finding.first for finding in findings.values()
    ]


def test_a_number_of_a_referenced_schema(client):
    """The types of references count too."""
    client.set_config("NONE")
    for subject, one in (("before", INTEGER), ("after", NUMBER)):
        client.register(subject, Schema(json.dumps(one), "JSON"))
    writer, candidate = (
        Schema(json.dumps(held({"$ref": "n.json"})), "JSON", (Reference("n.json", subject, 1),))
        for subject in ("before", "after")
    )
    schema_id, findings = judged(client, writer, candidate, [{"n": LARGE}])

    assert [Key("changed", "n", "another value is read", str(schema_id))] == [*findings]
    assert ["9007199254740993"] == [finding.example[0] for finding in findings.values()]


@pytest.mark.parametrize("part", ["value", "key"])
def test_records_with_nothing_to_read(part):
    """A report of records without values, or without keys, does not say that the candidate reads them."""
    lines = list(as_text(Outcome(records=2, empty=2), {}, is_whole=True, part=part))

    assert [f"2 records, 2 of them without {part}", f"no record has a {part} to read"] == lines
