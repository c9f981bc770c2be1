"""docs/logs.md lists every event of the log with its severity and fields, and no other."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from strata.registry.node.logs.changes import CHANGES, EVENTS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs/logs.md").read_text()
METHODS = {"info": "INFO", "warning": "WARNING", "error": "ERROR", "exception": "ERROR", "log": None}
LOGGERS = {"_log", "_logger"}
MENTIONED = re.compile(r"""\b_log(ger)?\.|["']event["']""")
ROW = re.compile(r"^\| `(\w+)` \| ([A-Z]+) \|([^|]*)\| ", re.MULTILINE)


class Call(NamedTuple):
    """A call that logs an event: its severity, None if it varies; its text; its fields."""

    level: str | None
    text: str
    fields: dict[str, ast.expr]


@cache
def logging_calls():
    """Return each call of a logger in the service that is not for debugging, with its place."""
    found = []
    for path in sorted([*(ROOT / "registry").rglob("*.py"), *(ROOT / "storage").rglob("*.py")]):
        text = path.read_text()
        if not MENTIONED.search(text):  # to parse all files takes a second
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                named = isinstance(node.func.value, ast.Name) and node.func.value.id in LOGGERS
                mappings = [item for item in node.args if isinstance(item, ast.Dict)]
                if named or (mappings and "event" in _fields(mappings[0])):
                    found.append((f"{path.relative_to(ROOT)}:{node.lineno}", node, mappings))
    return found


def _fields(mapping):
    return {
        key.value: value
        for key, value in zip(mapping.keys, mapping.values, strict=True)
        if isinstance(key, ast.Constant)
    }


@pytest.fixture(scope="module")
def calls():
    """Return the calls by the name of their event."""
    found = defaultdict(list)
    for _, node, mappings in logging_calls():
        if not mappings:
            continue
        fields = _fields(mappings[0])
        event = fields.pop("event")
        if isinstance(event, ast.Constant):
            text = next((item.value for item in node.args if isinstance(item, ast.Constant)), "")
            found[event.value].append(Call(METHODS[node.func.attr], text, fields))
    return found


def test_every_line_is_an_event():
    """A line above DEBUG has an event; the exceptions pass on the text and the fields of a caller that names one."""
    without = [place.partition(":")[0] for place, _, mappings in logging_calls() if not mappings]

    assert ["storage/kafka/writers.py"] == without


def test_the_document_lists_the_events(calls):
    """The tables hold the events of the code, each with its severity."""
    documented = {name: level for name, level, _ in ROW.findall(DOCUMENT)}

    assert documented.keys() == calls.keys()
    for name, level in documented.items():
        assert {level} >= {call.level for call in calls[name] if call.level}, name


def test_the_document_lists_the_fields(calls):
    """The tables hold the fields of each event; the two of the access log share a table of the code."""
    for name, _, fields in ROW.findall(DOCUMENT):
        if name not in ("request", "request_slow"):
            assert set(re.findall(r"`(\w+)`", fields)) == {field for call in calls[name] for field in call.fields}, name


def test_texts_name_fields_of_their_event(calls):
    """The text of an event uses its own fields only."""
    for name, found in calls.items():
        for call in found:
            if name not in ("request", "request_slow"):
                assert set(re.findall(r"%\((\w+)\)", call.text)) <= call.fields.keys(), name


def test_changes_have_the_names_of_the_audit():
    """The log and the audit name a change alike, and the document lists the names."""
    names = {*EVENTS.values(), "change"}

    assert names == CHANGES.keys()
    assert all(f"`{name}`" in DOCUMENT for name in EVENTS.values())
