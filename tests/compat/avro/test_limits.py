"""Hostile schemas get a one-sentence error that names the bound."""

import json
import sys

import pytest

from strata.compat.avro.parser import parse
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.schema import SchemaParseError

SMALL = Limits(text=10_000, depth=10, types=3, fields=4, branches=3, symbols=3)


def _arrays(depth):
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def _records(count):
    return json.dumps([{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(count)])


def _fields(count):
    inner = [{"name": f"f{number}", "type": "int"} for number in range(count)]
    return json.dumps({"type": "record", "name": "R", "fields": inner})


def forward_chain(count):
    """Return flat text in which each type uses the one after it, so that its canonical text is nested."""
    types = [
        {"type": "record", "name": f"T{number}", "fields": [{"name": "x", "type": f"T{number + 1}"}]}
        for number in range(count)
    ]
    types.append({"type": "record", "name": f"T{count}", "fields": []})
    return json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": f"t{n}", "type": kind} for n, kind in enumerate(types)]}
    )


BOUNDS = [
    ("text", '"int"' + " " * 9_995, '"int"' + " " * 9_996),
    ("depth", _arrays(10), _arrays(11)),
    ("depth of a union", "[" + _arrays(9) + "]", "[" + _arrays(10) + "]"),
    (
        "depth of an attribute",
        '{"type":"int","x":' + "[" * 9 + "]" * 9 + "}",
        '{"type":"int","x":' + "[" * 10 + "]" * 10 + "}",
    ),
    ("depth by forward references", forward_chain(1), forward_chain(3)),
    ("types", _records(3), _records(4)),
    ("fields", _fields(4), _fields(5)),
    ("branches", '["null","int","long"]', '["null","int","long","string"]'),
    (
        "symbols",
        '{"type":"enum","name":"E","symbols":["A","B","C"]}',
        '{"type":"enum","name":"E","symbols":["A","B","C","D"]}',
    ),
]


@pytest.mark.parametrize(("within", "beyond"), [row[1:] for row in BOUNDS], ids=[row[0] for row in BOUNDS])
def test_bounds(within, beyond):
    """A schema may be as large as its bound, and no larger."""
    assert parse(within, strict=True, limits=SMALL).canonical
    with pytest.raises(SchemaParseError, match=r"more than|deeper|More than"):
        parse(beyond, strict=True, limits=SMALL)


# what it is, a function that returns the text
HOSTILE = [
    ("brackets", lambda: "[" * 500_000),
    ("braces", lambda: '{"type":' * 500_000),
    ("closed brackets", lambda: "[" * 100_000 + "]" * 100_000),
    ("arrays", lambda: _arrays(50_000)),
    ("quotes", lambda: '"' * 200_001),
    ("backslashes", lambda: '"' + "\\" * 200_000),
    ("unterminated comments", lambda: "/*" * 50_000),
    ("comments", lambda: "/**/" * 25_000),
    ("runs of digits", lambda: "[" + ("9" * 999 + "x,") * 300),
    ("one number", lambda: '{"type":"int","x":' + "9" * 200_000 + "}"),
    ("one fraction", lambda: '{"type":"int","x":0.' + "9" * 200_000 + "}"),
    ("exponent", lambda: '{"type":"fixed","name":"F","size":1e999999999}'),
    ("types without end", lambda: _records(DEFAULT_LIMITS.types + 1)),
    ("a union of unions", lambda: "[" + ",".join(["[]"] * 1_000) + "]"),
    ("nested records", lambda: '{"type":"record","name":"R","fields":[{"name":"a","type":' * 50_000),
    ("flat text, deep schema", lambda: forward_chain(3_000)),
]


@pytest.mark.parametrize("text", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
def test_hostile_text(text, strict):
    """Any hostile text gives a parse error, not a crash or another exception."""
    with pytest.raises(SchemaParseError):
        parse(text(), strict=strict)


def nested_defaults(count):
    """Return records of which each has two fields that default to the record before."""
    kinds = [{"type": "record", "name": "T0", "fields": [{"name": "x", "type": "int", "default": 1}]}]
    for number in range(1, count):
        inner = [{"name": name, "type": f"T{number - 1}", "default": {}} for name in "xy"]
        kinds.append({"type": "record", "name": f"T{number}", "fields": inner})
    outer = [{"name": f"t{number}", "type": kind, "default": {}} for number, kind in enumerate(kinds)]
    return json.dumps({"type": "record", "name": "R", "fields": outer})


def test_defaults_within_defaults_end():
    """A default that expands to two to the thirty values is checked by looking at thirty."""
    assert parse(nested_defaults(30), strict=True).canonical


@pytest.fixture
def small_stack():
    """Leave only a few hundred calls until the stack overflows."""
    before, depth, frame = sys.getrecursionlimit(), 0, sys._getframe()
    while frame:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + 300)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("small_stack")
def test_defaults_too_deep_are_refused():
    """A chain of defaults that would overflow the stack is a parse error."""
    with pytest.raises(SchemaParseError, match="too deeply"):
        parse(nested_defaults(150), strict=True)


def test_the_deepest_schema_can_be_read_back():
    """A schema accepted under the default bounds can be read back as stored text."""
    canonical = parse(_arrays(DEFAULT_LIMITS.depth), strict=True).canonical

    assert canonical == parse(canonical, strict=False).canonical
