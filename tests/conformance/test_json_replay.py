"""Replay of the recorded JSON Schema answers against `compat` alone."""

from functools import lru_cache

import pytest

from harness.recorded_cases import recorded_cases
from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Level, Policy
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

JSON = FORMATS[SchemaFormat.JSON]
FILES = ("canonical", "compat", "deviations", "history", "parse", "unevaluated")


def _resolved(case, schema):
    """Return the schemas that a schema refers to, dependencies first, each once."""
    registered = {(other["subject"], other["version"]): other for other in case.get("references", ())}
    found = {}

    def visit(referring):
        for reference in referring.get("references", ()):
            key = (reference["subject"], reference["version"])
            if key not in registered:
                raise SchemaParseError(f"No schema reference found for {key}")
            visit(registered[key])
            found.setdefault(
                (reference["name"], key), ResolvedReference(reference["name"], registered[key]["schema"], str(key))
            )

    visit(schema)
    return list(found.values())


def _parse(case, schema):
    return _parsed(schema["schema"], tuple(_resolved(case, schema)))


@lru_cache(500)  # cases beside each other share texts
def _parsed(text, references):
    return JSON.parse(text, strict=True, references=references)


def _answer_canonical(case):
    schema = _parse(case, case["new"])
    return {"canonical": schema.canonical, "normalized": JSON.normalize(schema)}


def _answer_check(case):
    previous = [Previous(number, _parse(case, old)) for number, old in enumerate(case["previous"], start=1)]
    policy = Policy(case.get("policy", "STRICT"))
    result = check(_parse(case, case["new"]), previous, Level(case["level"]), policy)
    last = [] if result.compatible else [f"{{validateFields: 'false', compatibility: '{case['level']}'}}"]
    return {"compatible": result.compatible, "messages": sorted([*result.messages, *last])}


def _answer_parse(case):
    try:
        _parse(case, case["new"])
    except SchemaParseError:
        return {"accepted": False}
    return {"accepted": True}


ANSWERS = {"canonical": _answer_canonical, "compat": _answer_check, "history": _answer_check, "parse": _answer_parse}


@pytest.mark.parametrize("name", FILES)
def test_recorded_answers(name):
    """Verdicts, messages and texts equal the reference's, or the intended ones where the reference is wrong."""
    cases = recorded_cases(f"json_{name}")
    wrong = {}
    for case in cases:
        actual = ANSWERS[case["kind"]](case)
        expected = {key: sorted(case[key]) if key == "messages" else case[key] for key in actual}
        if expected != actual:
            wrong[case["id"]] = (case["rule"], expected, actual)

    assert {} == wrong
    assert cases
