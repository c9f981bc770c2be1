"""Any text gives a schema or a `SchemaParseError`, in bounded time, and no fetch."""

import base64
import gzip
import json
import socket
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.compat.check import Previous, check
from strata.compat.difference.compare import difference
from strata.compat.difference.text import as_json, as_lines
from strata.compat.formats import FORMATS
from strata.compat.levels import Level, Policy
from strata.compat.limits import Limits, OutOfTime
from strata.compat.proofs import LARGEST_WITNESS, Budget
from strata.compat.proofs import as_json as as_proof
from strata.compat.schema import ResolvedReference, SchemaFormat, SchemaParseError
from strata.compat.witness.search import proven, silent_changes
from strata.compat.witness.text import lines_of

AVRO, JSON, PROTOBUF = SchemaFormat.AVRO, SchemaFormat.JSON, SchemaFormat.PROTOBUF
RECORDED = Path(__file__).parents[1] / "conformance"
LIMITS = Limits(comparisons=5_000, seconds=2)
QUICK = settings(deadline=None, max_examples=10, suppress_health_check=list(HealthCheck))
LONG = settings(QUICK, max_examples=1_500)

# --- generated text


@cache
def recorded(schema_format):
    """Return the schemas of the recorded answers that are short enough to mutate."""
    texts = set()
    for path in sorted(RECORDED.glob(f"{schema_format.value.lower()}_*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for case in map(json.loads, lines):
                texts.update(one["schema"] for one in (*case.get("previous", ()), case.get("new")) if one)
    return sorted(text for text in texts if isinstance(text, str) and len(text) < 2_000)


SNIPPETS = {
    AVRO: ['"int"', '{"type":"null"}', "[]", '"aliases":["a"],', '"default":1e400,', '"type":', "//", '"R"', "1e-400"],
    JSON: ['"$ref":"#",', '{"$ref":"#/a"}', "[]", "true", '"$id":"a:b",', '"type":', "1e99999", "-0", '"not":{},'],
    PROTOBUF: [
        "message A{",
        "}",
        "map<a,b> c=1;",
        "optional",
        "=-1",
        "[(a).b={c:1}]",
        "/*",
        '"\\x',
        "reserved 1 to max;",
    ],
}
ODD = ["\0", "\ud800", "\ufeff", "é", "\u2028", '"', "\\", "{", "}", "[", "]", ",", "1" * 400, "-", ".", "\r"]


@st.composite
def mutations(draw, schema_format):
    """Draw a recorded schema with a few places cut, doubled, swapped or overwritten by parts of other texts."""
    text = draw(st.sampled_from(recorded(schema_format)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        piece = draw(st.sampled_from([*SNIPPETS[schema_format], *ODD, "", text[start:end] * 2]))
        text = text[:start] + piece + text[end:]
    return text


WORDS = {
    AVRO: ["type", "name", "fields", "items", "values", "symbols", "size", "default", "aliases", "namespace", "order"],
    JSON: [
        "type", "properties", "items", "$ref", "$id", "$schema", "allOf", "anyOf", "oneOf", "not", "enum", "const",
        "required", "patternProperties", "additionalProperties", "dependencies", "minLength", "multipleOf", "$defs",
        "definitions", "prefixItems", "if", "then", "contains", "$anchor", "unevaluatedItems", "pattern", "maximum",
    ],
}  # fmt: skip
VALUES = {
    AVRO: ["record", "enum", "fixed", "array", "map", "int", "double", "bytes", "R", "a.R", "", "null", "NaN"],
    JSON: ["object", "string", "integer", "#", "#/properties", "#/$defs/a", "a", "^a", "(", "https://json-schema.org/draft/2020-12/schema"],
}  # fmt: skip
NUMBERS = st.integers(-2, 3) | st.sampled_from([2**63, 10**400, 1e300, -0.0, 0.1])


def near_schemas(schema_format):
    """Draw JSON that has the words of a schema, most often in wrong places."""
    scalars = st.none() | st.booleans() | NUMBERS | st.sampled_from(VALUES[schema_format])
    names = st.sampled_from(WORDS[schema_format]) | st.sampled_from(["a", "b", ""])
    inner = st.recursive(
        scalars,
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(names, parts, max_size=4),
        max_leaves=20,
    )
    return st.dictionaries(names, inner, max_size=5).map(json.dumps)


def texts(schema_format):
    """Draw mutations, near-schemas and plain text, for Protobuf also descriptors."""
    if schema_format is PROTOBUF:
        raw = st.binary(max_size=80).map(lambda data: base64.b64encode(data).decode())
        descriptors = mutations(PROTOBUF).map(_damaged_descriptor)
        return st.one_of(mutations(PROTOBUF), descriptors, raw, st.text(max_size=60))
    return st.one_of(mutations(schema_format), near_schemas(schema_format), st.text(max_size=60))


def _damaged_descriptor(text):
    """Return the descriptor of a text, if it has one, with one character changed."""
    try:
        whole = FORMATS[PROTOBUF].printed_as["serialized"](FORMATS[PROTOBUF].parse(text, strict=False))
    except SchemaParseError:
        return text
    place = len(text) % max(len(whole), 1)
    return whole[:place] + "A" + whole[place + 1 :]


def _parsed(schema_format, text, *, strict):
    try:
        return FORMATS[schema_format].parse(text, strict=strict, limits=LIMITS.started())
    except SchemaParseError:
        return None


# --- laws


def the_answer_is_a_schema_or_a_parse_error(schema_format, text):
    """Raise no other exception; canonical text is its own canonical text, and prints in every form."""
    rules = FORMATS[schema_format]
    for strict in (True, False):
        schema = _parsed(schema_format, text, strict=strict)
        if schema is None:
            continue
        again = rules.parse(schema.canonical, strict=False, limits=LIMITS.started())
        assert schema.canonical == again.canonical
        assert rules.equivalent(schema, again, limits=LIMITS.started())
        _or_refused(lambda: rules.normalize(schema, limits=LIMITS.started()))  # noqa: B023 - called here
        for form in rules.printed_as.values():
            _or_refused(lambda: form(schema))  # noqa: B023 - called here


def every_check_ends(schema_format, one, other, policy):
    """Check that every check has a verdict, and that a schema is compatible with itself unless it is too complex."""
    rules = FORMATS[schema_format]
    left, right = (_parsed(schema_format, text, strict=False) for text in (one, other))
    if left and right:
        result = check(left, [Previous(1, right)], Level.FULL, policy, LIMITS.started())
        assert result.compatible == (not result.messages)
        for finding in result.incompatibilities:
            assert rules.explain(finding)
        found = difference(right, left, policy=policy, limits=LIMITS.started())
        assert found.verdicts[Level.FULL] == result.compatible
        refused = any(one.readers.refused or one.writers.refused for one in found.changes)
        assert refused == bool(result.incompatibilities)
        assert json.dumps(as_json(found)).encode()
        assert [line.encode() for line in as_lines(found)]
        every_proof_is_small(left, right, result.incompatibilities)
        rules.equivalent(left, right, limits=LIMITS.started())


def every_proof_is_small(new, previous, refused):
    """Check that each finding has a proof of bounded size, or the reason why not, and that it can be shown."""
    budget = Budget(LIMITS.ending_in(0.2))
    versions = [Previous(1, previous)]
    found = proven(new, versions, refused, budget)
    assert len(found) == len(refused)
    for one in (*found, *silent_changes(new, versions, Level.FULL, refused, budget)):
        shown = json.dumps(as_proof(one.proof)["witness"])
        assert len(shown) < 6 * 4 * LARGEST_WITNESS
        assert [line.encode() for line in lines_of(one)]


def _or_refused(call):
    try:
        call()
    except SchemaParseError:
        return


FORMATS_IN_ROWS = pytest.mark.parametrize("schema_format", list(SchemaFormat), ids=str)


@FORMATS_IN_ROWS
@QUICK
@given(data=st.data())
def test_any_text(schema_format, data):
    """Hostile text gives a schema or a parse error."""
    the_answer_is_a_schema_or_a_parse_error(schema_format, data.draw(texts(schema_format)))


@FORMATS_IN_ROWS
@QUICK
@given(data=st.data(), policy=st.sampled_from(list(Policy)))
def test_any_two_schemas(schema_format, data, policy):
    """Any two readable schemas can be compared."""
    one, other = data.draw(texts(schema_format)), data.draw(texts(schema_format))
    every_check_ends(schema_format, one, other, policy)


@pytest.mark.slow
@FORMATS_IN_ROWS
@LONG
@given(data=st.data(), policy=st.sampled_from(list(Policy)))
def test_any_text_at_length(schema_format, data, policy):
    """The same laws hold over a longer run."""
    one, other = data.draw(texts(schema_format)), data.draw(texts(schema_format))
    the_answer_is_a_schema_or_a_parse_error(schema_format, one)
    every_check_ends(schema_format, one, other, policy)


# --- inputs that once took minutes, or unbounded memory


def _union_default(branches, items):
    fixed = [{"name": f"a{n}", "type": {"type": "fixed", "name": f"F{n}", "size": 1}} for n in range(branches)]
    names = [f"F{n}" for n in range(branches)]
    default = {"name": "d", "type": {"type": "array", "items": [*names, "int"]}, "default": [1] * items}
    return json.dumps({"type": "record", "name": "T", "fields": [*fixed, default]})


def _union_of_records(count, salt):
    fields = [{"name": f"f{number}", "type": "int"} for number in range(25)]
    return json.dumps([{"type": "record", "name": f"R{salt}{number}", "fields": fields} for number in range(count)])


def _recursive_one_of(count, salt):
    def branch(number, own):
        targets = {f"p{n}": {"$ref": f"#/definitions/D{(number * 3 + n * 5 + own) % count}"} for n in range(5)}
        return {"type": "object", "properties": {**targets, "k": {"type": "string", "maxLength": own + salt}}}

    definitions = {f"D{n}": {"oneOf": [branch(n, own) for own in range(count)]} for n in range(count)}
    return json.dumps({"definitions": definitions, "$ref": "#/definitions/D0"})


def _patterns(pattern, count):
    closed = {"patternProperties": {f"{pattern}{n}": {} for n in range(count)}, "additionalProperties": False}
    return json.dumps({"type": "object", **closed})


def _properties(count):
    return json.dumps({"type": "object", "properties": {"a" * 200 + str(n): {"type": "string"} for n in range(count)}})


def _nested(inner, depth):
    return 'syntax="proto3";' + "message A{" * depth + inner + "}" * depth


def _fields(count):
    return "".join(f"int32 f{number}={number + 1};" for number in range(count))


EXPENSIVE = [
    pytest.param(AVRO, _union_default(2_000, 50_000), None, id="a default against a wide union"),
    pytest.param(AVRO, _union_of_records(120, "a"), _union_of_records(120, "b"), id="unions of records"),
    pytest.param(JSON, _recursive_one_of(20, 0), _recursive_one_of(20, 1), id="recursive oneOf"),
    pytest.param(JSON, _patterns("(a{1,500}){1,500}", 1_000), _properties(1_000), id="patterns that compile slowly"),
    pytest.param(JSON, _patterns("(?=(a*)*b)", 1_000), _properties(1_000), id="patterns that backtrack"),
    pytest.param(PROTOBUF, _nested(_fields(40_000), 190), None, id="print of a deep message"),
    pytest.param(PROTOBUF, f"message A{{option (x){'.a' * 200_000}=1;}}", None, id="an option of many parts"),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("schema_format", "text", "other"), EXPENSIVE)
def test_expensive_work_is_given_up(schema_format, text, other):
    """Input that would take minutes is given up at the deadline, or refused for its size."""
    limits = Limits(seconds=0.05)

    def ask():
        schema = FORMATS[schema_format].parse(text, strict=True, limits=limits.started() if other is None else Limits())
        if other:
            previous = FORMATS[schema_format].parse(other, strict=False)
            check(schema, [Previous(1, previous)], Level.FULL, limits=limits.started())

    with pytest.raises(SchemaParseError, match=r"more than|too many parts"):
        ask()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("schema_format", "text"),
    [
        pytest.param(PROTOBUF, "message A{" + "option (x)={a:1};" * 2_000 + "}", id="parts of one option"),
        pytest.param(PROTOBUF, "".join(f'import public "{n}";' for n in range(5_000)), id="public imports"),
        pytest.param(PROTOBUF, f"message A{{optional int32 a=1[{','.join(['default=1'] * 5_000)}];}}", id="defaults"),
        pytest.param(
            JSON, '{"allOf":[' * 90 + '{"description":"' + "x" * 100_000 + '"}' + "]}" * 90, id="nested allOf"
        ),
    ],
)
def test_large_schemas_are_read(schema_format, text):
    """A large schema takes time in proportion to its size, in every form that it is printed in."""
    schema = FORMATS[schema_format].parse(text, strict=False)

    assert FORMATS[schema_format].normalize(schema)
    assert all(isinstance(form(schema), str) for form in FORMATS[schema_format].printed_as.values())


def _chain(length, last):
    """Return records inside each other, the innermost one with a field of a type."""
    made = last
    for number in range(length):
        made = {"type": "record", "name": f"R{number}", "fields": [{"name": "f", "type": ["null", made]}]}
    return json.dumps(made)


def _crossed(count, last):
    """Return records whose branches lead to all others, so that there are many ways to each place."""
    names = [f"R{number}" for number in range(count)]
    return json.dumps(
        [
            {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": ["null", *names]} for n in range(3)]
             + [{"name": "x", "type": last}]}
            for name in names
        ]
    )  # fmt: skip


HARD = [
    pytest.param(AVRO, _chain(40, "int"), _chain(40, "string"), id="a long chain of records"),
    pytest.param(AVRO, _crossed(15, "int"), _crossed(15, "string"), id="records that hold each other"),
    pytest.param(
        PROTOBUF,
        'syntax="proto3"; message A {' + "".join(f"int32 f{n}={n + 1};" for n in range(1500)) + "}",
        'syntax="proto3"; message A {' + "".join(f"string f{n}={n + 1};" for n in range(1500)) + "}",
        id="a message of many fields",
    ),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("schema_format", "one", "other"), HARD)
def test_hard_proofs_end(schema_format, one, other):
    """The search for records ends within its time, and each finding has a proof or the reason why not."""
    left, right = (FORMATS[schema_format].parse(text, strict=False) for text in (one, other))
    result = check(left, [Previous(1, right)], Level.FULL)
    started = time.thread_time()

    every_proof_is_small(left, right, result.incompatibilities)
    assert result.incompatibilities
    assert time.thread_time() - started < 60  # a bound on a search without end, not a measurement


def test_time_over_is_no_verdict():
    """A check that runs out of time says so, and gives no verdict on the schemas."""
    schema = FORMATS[AVRO].parse('{"type":"array","items":"int"}', strict=True)

    with pytest.raises(OutOfTime, match="more than 0 s of computing"):
        check(schema, [Previous(1, schema)], Level.FULL, limits=Limits(seconds=0).started())


def test_messages_are_bounded_together():
    """A finding that occurs a thousand times does not repeat its thousand words."""

    def wide(salt):
        enum = {"type": "enum", "name": "E", "symbols": [f"S{salt}{number}" for number in range(5_000)]}
        uses = [{"name": f"f{number}", "type": "E"} for number in range(1_000)]
        fields = [{"name": "e", "type": enum}, *uses]
        return FORMATS[AVRO].parse(json.dumps({"type": "record", "name": "T", "fields": fields}), strict=True)

    result = check(wide("a"), [Previous(1, wide("b"))], Level.BACKWARD)

    assert not result.compatible
    assert sum(map(len, result.messages)) < 2 * Limits().messages


# --- nothing is fetched

URIS = ["http://127.0.0.1:PORT/s", "http://localhost:PORT/s", "file://FILE", "FILE", "//127.0.0.1:PORT/s"]
POINTING = [
    *((JSON, f'{{"{word}":"URI"}}') for word in ("$ref", "$schema", "$id", "$dynamicRef", "$recursiveRef", "id")),
    (JSON, '{"$schema":"URI","$id":"URI","properties":{"a":{"$ref":"x.json#/a"}}}'),
    (JSON, '{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"URI","$ref":"other#a"}'),
    (JSON, '{"allOf":[{"$id":"URI","items":{"$ref":"y"}}],"patternProperties":{"a":{"$ref":"URI#/b"}}}'),
    (PROTOBUF, 'syntax="proto3"; import "URI"; message A {}'),
    (PROTOBUF, 'syntax="proto3"; import public "URI"; message A { B b = 1; }'),
    (AVRO, '{"type":"record","name":"A","$schema":"URI","fields":[{"name":"a","type":"URI"}]}'),
    (AVRO, '{"type":"URI"}'),
]
_touched = []  # the arguments of the interpreter's events for opening files, looking up hosts and connecting


def _note_what_is_touched(event, arguments):
    if event in ("open", "socket.connect", "socket.getaddrinfo"):
        _touched.append(repr(arguments))


sys.addaudithook(_note_what_is_touched)


@pytest.mark.parametrize("uri", URIS)
@pytest.mark.parametrize(("schema_format", "text"), POINTING)
def test_nothing_is_fetched(tmp_path, schema_format, text, uri):
    """No pointer in a schema, even as a reference, causes a connection or the reading of a file."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"type":"object"}')
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = str(listener.getsockname()[1])
        pointing = text.replace("URI", uri.replace("PORT", port).replace("FILE", str(secret)))
        _touched.clear()
        for references in ((), (ResolvedReference("r", pointing, "r 1"),)):
            with suppress(SchemaParseError):
                schema = FORMATS[schema_format].parse(pointing, strict=True, references=references)
                check(schema, [Previous(1, schema)], Level.FULL)
                FORMATS[schema_format].normalize(schema)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert [] == [touched for touched in _touched if port in touched or "secret" in touched]
