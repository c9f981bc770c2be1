"""Replay of the recorded Avro answers against `compat` alone."""

import hashlib
import uuid

import pytest

from harness.recorded_cases import recorded_cases
from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

AVRO = FORMATS[SchemaFormat.AVRO]
FILES = ("canonical", "compat", "deviations", "history", "parse")


def _references(case, schema):
    """Return the schemas that a schema's references lead to, dependencies first."""
    registered = {(entry["subject"], entry["version"]): entry for entry in case.get("references", ())}
    found = {}

    def follow(references):
        for reference in references or ():
            place = (reference["subject"], reference["version"])
            entry = registered[place]
            follow(entry.get("references"))
            found.setdefault(place, ResolvedReference(reference["name"], entry["schema"], str(place)))

    follow(schema.get("references"))
    return tuple(found.values())


def _guid(text, references):
    digest = hashlib.md5(text.encode(), usedforsecurity=False)
    for reference in references:
        digest.update(reference["name"].encode() + reference["subject"].encode())
        digest.update(reference["version"].to_bytes(4, "big"))
    return str(uuid.UUID(digest.hexdigest()))


def _new(case):
    return AVRO.parse(case["new"]["schema"], strict=True, references=_references(case, case["new"]))


def _stored(case, schema):
    """Return a schema as read from the log: strictly parsed once, then leniently from its canonical text."""
    references = _references(case, schema)
    text = AVRO.parse(schema["schema"], strict=True, references=references).canonical
    return AVRO.parse(text, strict=False, references=references)


def _answer_canonical(case):
    schema = _new(case)
    normalized = AVRO.normalize(schema)
    references = case["new"].get("references", ())
    sorted_references = case.get("normalized_references", references)
    return {
        "canonical": schema.canonical,
        "guid": _guid(schema.canonical, references),
        "normalized": normalized,
        "guid_normalized": _guid(normalized, sorted_references),
    }


def _answer_check(case):
    new = _new(case)
    previous = [Previous(number, _stored(case, old)) for number, old in enumerate(case["previous"], start=1)]
    result = check(new, previous, Level(case["level"]))
    last = [] if result.compatible else [f"{{validateFields: 'false', compatibility: '{case['level']}'}}"]
    return {"compatible": result.compatible, "messages": sorted([*result.messages, *last])}


def _answer_parse(case):
    try:
        _new(case)
    except SchemaParseError:
        return {"accepted": False}
    return {"accepted": True}


ANSWERS = {"canonical": _answer_canonical, "compat": _answer_check, "history": _answer_check, "parse": _answer_parse}


@pytest.mark.parametrize("name", FILES)
def test_recorded_answers(name):
    """Verdicts, messages, texts and GUIDs equal the reference's, or the intended ones where the reference is wrong."""
    cases = recorded_cases(f"avro_{name}")
    wrong = {}
    for case in cases:
        actual = ANSWERS[case["kind"]](case)
        expected = {key: sorted(case[key]) if key == "messages" else case[key] for key in actual}
        if expected != actual:
            wrong[case["id"]] = (case["rule"], expected, actual)

    assert {} == wrong
    assert cases
