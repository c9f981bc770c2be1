"""Replay of the recorded Protobuf answers against `compat` alone."""

import hashlib
import uuid
from collections import Counter
from functools import lru_cache
from itertools import pairwise

import pytest

from harness.recorded_cases import recorded_cases
from strata.compat.check import Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import Level
from strata.compat.protobuf.rules import differences
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError

PROTOBUF = FORMATS[SchemaFormat.PROTOBUF]
FILES = ("canonical", "compat", "history", "options", "parse")


@lru_cache(500)  # cases beside each other share texts
def _parsed(text, references=(), *, strict):
    return PROTOBUF.parse(text, strict=strict, references=references)


class _Registered:
    """Return the schemas that a case registers first."""

    def __init__(self, case):
        self._known = {(one["subject"], one["version"]): one for one in case.get("references", ())}

    def resolve(self, references):
        """Return the schemas that the references lead to, dependencies first."""
        found = {}
        for reference in references:
            key = (reference["subject"], reference["version"])
            if key not in self._known:
                raise SchemaParseError(f"No schema reference found for {key}")
            schema = self._known[key]
            for inner in self.resolve(schema.get("references", ())):
                found.setdefault((inner.name, inner.identity), inner)
            text = _parsed(schema["schema"], strict=False).canonical
            one = ResolvedReference(reference["name"], text, f"{key[0]}/{key[1]}")
            found[one.name, one.identity] = one
        return list(found.values())

    def parse(self, schema):
        """Return a new schema."""
        return _parsed(schema["schema"], tuple(self.resolve(schema.get("references", ()))), strict=True)

    def stored(self, schema):
        """Return a schema as read from the log: strictly parsed once, then leniently from its canonical text."""
        references = self.resolve(schema.get("references", ()))
        return _parsed(self.parse(schema).canonical, tuple(references), strict=False)


def _guid(text, references):
    """Return the MD5 of a text, then of name, subject and version of each reference."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False)
    for reference in references:
        digest.update(reference["name"].encode())
        digest.update(reference["subject"].encode())
        digest.update(reference["version"].to_bytes(4, "big"))
    return str(uuid.UUID(digest.hexdigest()))


def _answer_canonical(case):
    schema = _Registered(case).parse(case["new"])
    references = case["new"].get("references", ())
    normalized = PROTOBUF.normalize(schema)
    answer = {
        "canonical": schema.canonical,
        "guid": _guid(schema.canonical, references),
        "normalized": normalized,
        "guid_normalized": _guid(normalized, case.get("normalized_references", ())),
    }
    if "formats" in case:
        answer["formats"] = {name: PROTOBUF.printed_as[name](schema) for name in case["formats"]}
    return answer


def _answer_check(case):
    registered = _Registered(case)
    new = registered.parse(case["new"])
    previous = [Previous(number, registered.stored(old)) for number, old in enumerate(case["previous"], start=1)]
    result = check(new, previous, Level(case["level"]))
    last = [] if result.compatible else [f"{{validateFields: 'false', compatibility: '{case['level']}'}}"]
    reader, writer = new, previous[-1].schema
    if case["level"].startswith("FORWARD"):
        reader, writer = writer, reader
    return {
        "compatible": result.compatible,
        "messages": sorted([*result.messages, *last]),
        "differences": sorted(f"{found.difference} {found.path}" for found in differences(reader, writer)),
    }


def _answer_parse(case):
    try:
        _Registered(case).parse(case["new"])
    except SchemaParseError:
        return {"accepted": False}
    return {"accepted": True}


ANSWERS = {"canonical": _answer_canonical, "compat": _answer_check, "history": _answer_check, "parse": _answer_parse}
UNORDERED = ("messages", "differences")


@pytest.mark.parametrize("name", FILES)
def test_recorded_answers(name):
    """Verdicts, messages, differences, texts, GUIDs and formats equal the reference's."""
    cases = recorded_cases(f"protobuf_{name}")
    wrong = {}
    for case in cases:
        actual = ANSWERS[case["kind"]](case)
        expected = {key: sorted(case[key]) if key in UNORDERED else case[key] for key in actual}
        if expected != actual:
            wrong[case["id"]] = (case["rule"], expected, actual)

    assert {} == wrong
    assert cases


def test_versions_stay_apart():
    """Two recorded versions of one subject with different texts do not count as one schema."""
    taken = Counter()
    for case in recorded_cases("protobuf_history"):
        registered = _Registered(case)
        versions = [registered.parse(schema) for schema in [*case["previous"], case["new"]]]
        for one, other in pairwise(versions):
            taken[one.canonical != other.canonical and PROTOBUF.equivalent(one, other)] += 1

    assert 0 == taken[True]
    assert taken[False]
