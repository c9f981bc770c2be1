"""Replay of the recorded answers under the policy LOGICAL against `compat` alone."""

import json
from collections import Counter
from functools import lru_cache

import pytest

from harness.recorded_cases import recorded_cases
from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Level, Policy
from strata.compat.schema import ResolvedReference, SchemaFormat


@pytest.fixture(scope="module")
def cases():
    """Return the recorded cases."""
    return recorded_cases("logical_compat")


def _parse(case, schema):
    registered = {(other["subject"], other["version"]): other["schema"] for other in case.get("references", ())}
    references = [
        ResolvedReference(reference["name"], registered[reference["subject"], reference["version"]])
        for reference in schema.get("references", ())
    ]
    return _parsed(SchemaFormat(case["type"]), schema["schema"], tuple(references))


@lru_cache(500)  # cases beside each other share texts
def _parsed(schema_format, text, references):
    return FORMATS[schema_format].parse(text, strict=False, references=references)


def _messages(case, previous):
    """Return the messages of a check, as the service answers them."""
    result = check(_parse(case, case["new"]), previous, Level(case["level"]), Policy(case["policy"]))
    assert result.compatible == (not result.messages)
    return (
        [*result.messages, f"{{validateFields: 'false', compatibility: '{case['level']}'}}"] if result.messages else []
    )


def _answers(case):
    """Return the messages about the last version and about all versions."""
    texts = dict.fromkeys(json.dumps(old) for old in case["previous"])  # a text that is there already is no new version
    previous = [Previous(number, _parse(case, json.loads(old))) for number, old in enumerate(texts, start=1)]
    last = _messages(case, previous[-1:])
    return last, last if len(previous) == 1 else _messages(case, previous)


@pytest.mark.parametrize("schema_type", ["AVRO", "JSON", "PROTOBUF"])
def test_answers_under_logical(cases, schema_type):
    """Each recorded verdict is the same, and so are the messages, except texts of the Java runtime."""
    differ = []
    cases = [case for case in cases if case["type"] == schema_type]
    for case in cases:
        expected = case["messages"], case.get("all_messages", case["messages"])
        actual = _answers(case)
        last = actual[0] if "all_messages" in case or len(case["previous"]) < 2 else expected[0]
        if case.get("jvm_text"):
            same = [not messages for messages in expected] == [not last, not actual[1]]
        else:
            same = [Counter(messages) for messages in expected] == [Counter(last), Counter(actual[1])]
        if not same:
            differ.append((case["id"], expected, actual))
    assert len(cases) > 500
    assert [] == differ
