"""Every recorded Avro answer, put to `compat` alone."""

import gzip
import hashlib
import json
import uuid
from collections import Counter
from pathlib import Path

import pytest

from compat.check import Previous, check
from compat.formats import FORMATS
from compat.levels import Level
from compat.schema import SchemaFormat, SchemaParseError

AVRO = FORMATS[SchemaFormat.AVRO]
FILES = ("canonical", "compat", "deviations", "history", "parse")
LEFT_OUT = {"canonical": 5, "compat": 56, "deviations": 0, "history": 0, "parse": 5}


def _recorded(name):
    path = Path(__file__).with_name(f"avro_{name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _needs_references(case):
    schemas = [case["new"], *case.get("previous", ())]
    return "references" in case or any("references" in schema for schema in schemas)


def _guid(text):
    return str(uuid.UUID(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()))


def stored(text):
    """A schema as it is read back from the log: strictly parsed once, then leniently from its canonical text."""
    return AVRO.parse(AVRO.parse(text, strict=True).canonical, strict=False)


def _answer_canonical(case):
    schema = AVRO.parse(case["new"]["schema"], strict=True)
    normalized = AVRO.normalize(schema)
    return {
        "canonical": schema.canonical,
        "guid": _guid(schema.canonical),
        "normalized": normalized,
        "guid_normalized": _guid(normalized),
    }


def _answer_check(case):
    new = AVRO.parse(case["new"]["schema"], strict=True)
    previous = [Previous(number, stored(old["schema"])) for number, old in enumerate(case["previous"], start=1)]
    result = check(new, previous, Level(case["level"]))
    last = [] if result.compatible else [f"{{validateFields: 'false', compatibility: '{case['level']}'}}"]
    return {"compatible": result.compatible, "messages": sorted([*result.messages, *last])}


def _answer_parse(case):
    try:
        AVRO.parse(case["new"]["schema"], strict=True)
    except SchemaParseError:
        return {"accepted": False}
    return {"accepted": True}


ANSWERS = {"canonical": _answer_canonical, "compat": _answer_check, "history": _answer_check, "parse": _answer_parse}


@pytest.mark.parametrize("name", FILES)
def test_recorded_answers(name):
    """Verdicts, messages, texts and GUIDs are those of the reference, or the intended ones where it errs."""
    cases = [case for case in _recorded(name) if not _needs_references(case)]
    wrong = {}
    for case in cases:
        actual = ANSWERS[case["kind"]](case)
        expected = {key: sorted(case[key]) if key == "messages" else case[key] for key in actual}
        if expected != actual:
            wrong[case["id"]] = (case["rule"], expected, actual)

    assert {} == wrong
    assert cases


def test_cases_left_out():
    """What is not put to the test is exactly what needs references."""
    counted = Counter({name: sum(map(_needs_references, _recorded(name))) for name in FILES})

    assert LEFT_OUT == dict(counted)
