"""Hostile expressions and values give a value or an error within bounded time."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.avro.logical_types import Branch
from strata.serdes.client import RegistryClient, Rule, Schema
from strata.serdes.errors import RuleError, SchemaError
from strata.serdes.json_schema import rule_values
from strata.serdes.json_schema.rule_values import JsonValues
from strata.serdes.rules import jsonata
from strata.serdes.rules.cel import CelExecutor, CelFieldExecutor
from strata.serdes.rules.executors import FieldContext, RuleContext
from strata.serdes.rules.jsonata import JsonataExecutor

NOBODY = RegistryClient("http://localhost:1")
CEL, FIELD = CelExecutor(NOBODY, {}), CelFieldExecutor(NOBODY, {})
JSONATA = JsonataExecutor(NOBODY, {"timeout.sec": 30})
HASTY = JsonataExecutor(NOBODY, {"timeout.sec": 0.1})  # the time may count while a virtual machine is paused


def context(expr, kind="TRANSFORM"):
    """Return a context of a rule with an expression, and of no particular record."""
    rule = Rule(name="hostile", type="X", kind=kind, expr=expr)
    return RuleContext(rule, "domainRules", "WRITE", "s", "t", False, None, Schema("{}"))


def deep(depth):
    """Return a value nested deeply in itself."""
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


SECRET = {"text": "secret-4711", "many": list(range(100))}
TEN = "[0,1,2,3,4,5,6,7,8,9]"
LOOPS = "".join(f"{TEN}.all({name}, " for name in "abcdef") + "true" + ")" * 6
LONG = "$pad('', 30000, 'a')"
TREE = "$reduce([1..25], function($a, $b){[[$a], [$a]]}, 1)"
EXPRESSIONS = [
    pytest.param(CEL, "", "no expression", id="CEL, none"),
    pytest.param(CEL, None, "no expression", id="CEL, null"),
    pytest.param(CEL, "message.", "invalid CEL", id="CEL, broken"),
    pytest.param(CEL, "true\0 && false", "zero character", id="CEL, a zero"),
    pytest.param(CEL, "(" * 5000 + "1" + ")" * 5000, "invalid CEL", id="CEL, deep"),
    pytest.param(CEL, "1" + "+1" * 20000, "longer than", id="CEL, long"),
    pytest.param(CEL, LOOPS, "cannot be evaluated", id="CEL, loops"),
    pytest.param(CEL, "message.text.nosuch()", "invalid CEL", id="CEL, no function"),
    pytest.param(CEL, "int(message.text)", "cannot be evaluated", id="CEL, no number"),
    pytest.param(CEL, "{message.text: 1}['x']", "cannot be evaluated", id="CEL, no key"),
    pytest.param(CEL, "message.nosuch", "no_such_field : nosuch|NOT_FOUND", id="CEL, no field"),
    pytest.param(CEL, "1 / (message.many[0])", "divide by zero", id="CEL, zero"),
    pytest.param(CEL, "message.text.matches('(')", "cannot be evaluated|no CEL", id="CEL, a broken pattern"),
    pytest.param(JSONATA, "", "no expression", id="JSONATA, none"),
    pytest.param(JSONATA, "$.(", "invalid JSONata", id="JSONATA, broken"),
    pytest.param(JSONATA, "(" * 3000 + "1" + ")" * 3000, "nested too deeply|invalid JSONata|deep", id="JSONATA, deep"),
    pytest.param(JSONATA, "1" + "+1" * 40000, "longer than", id="JSONATA, long"),
    pytest.param(HASTY, "($f := function(){$f()}; $f())", "took longer than 0.1", id="JSONATA, for ever"),
    pytest.param(
        JSONATA, "($f := function($n){1+$f($n)}; $f(1))", "deeper than 200|too deeply", id="JSONATA, recursion"
    ),
    pytest.param(HASTY, "$map([1..900000], function($v){$v*2})", "took longer", id="JSONATA, slow"),
    pytest.param(JSONATA, "[1..99999999]", "cannot be evaluated", id="JSONATA, a range"),
    pytest.param(JSONATA, "$pad('x', 100000000000)", "larger than", id="JSONATA, padding"),
    pytest.param(
        JSONATA, "$reduce([1..40], function($a,$b){$a & $a}, 'xxxx')", "larger|longer", id="JSONATA, doubling"
    ),
    pytest.param(
        JSONATA, "$reduce([1..250], function($a,$b){[[$a]]}, 1)", "deeper than 200|longer", id="JSONATA, a deep result"
    ),
    pytest.param(
        JSONATA, "$reduce([1..40], function($a,$b){[$a, $a]}, 1)", "larger|longer", id="JSONATA, a full result"
    ),
    pytest.param(JSONATA, f"$replace({LONG}, 'a', {LONG})", "larger", id="JSONATA, replacing"),
    pytest.param(JSONATA, f"$replace({LONG}, /a/, {LONG})", "larger", id="JSONATA, replacing a pattern"),
    pytest.param(JSONATA, "$replace($pad('', 1000000, 'a'), 'a', '')", "larger", id="JSONATA, replacing much"),
    pytest.param(JSONATA, f"$join([1..1000].($$.text), {LONG})", "larger", id="JSONATA, joining"),
    pytest.param(JSONATA, f"$string([1..1000].({{'a': {LONG}}}))", "larger|longer", id="JSONATA, a text of texts"),
    pytest.param(JSONATA, "$number(text)", "cannot be evaluated", id="JSONATA, no number"),
    pytest.param(JSONATA, "$match(text, /(?=s)/)", "invalid JSONata", id="JSONATA, a look ahead"),
    pytest.param(JSONATA, "$error(text)", "cannot be evaluated", id="JSONATA, an error"),
]


@pytest.mark.parametrize(("executor", "expr", "detail"), EXPRESSIONS)
def test_expressions(executor, expr, detail):
    """An invalid or excessive expression is an error, which does not quote the record."""
    with pytest.raises(RuleError, match=detail) as caught:
        executor.transform(context(expr), SECRET)

    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("expr", [f"$string([{TREE}])", f"$distinct([{TREE}, 1])"])
def test_lists_that_are_full_of_one_list(monkeypatch, expr):
    """Functions over a whole value check its size first; the limit here is lower, since the check takes time."""
    monkeypatch.setattr(jsonata, "MAX_SIZE", 10_000)

    with pytest.raises(RuleError, match="larger than 10000"):
        JSONATA.transform(context(expr), SECRET)


@pytest.mark.parametrize("executor", [CEL, HASTY])
def test_patterns_take_their_time(executor):
    """A pattern on which backtracking engines hang is matched at once."""
    text = "a" * 5000 + "!"
    expr = "message.matches('(a+)+$')" if executor is CEL else "$contains($, /(a+)+$/)"

    assert executor.transform(context(expr), text) is False


class Waits(dict):
    """A value whose fields take time to read, as on a busy machine."""

    def get(self, *arguments):
        """Return the field after a wait."""
        time.sleep(0.2)
        return super().get(*arguments)


def test_time_is_the_threads_own():
    """Only the computing time of a rule counts: no rule fails because the machine is busy."""
    assert "bbb" == HASTY.transform(context("a & a & a"), Waits(a="b"))


@pytest.mark.parametrize(
    ("value", "detail"),
    [
        pytest.param(deep(100_000), "nested deeper than 200", id="deep"),
        pytest.param([2**64], "more than 64 bits", id="a long integer"),
        pytest.param({"a\0": 1}, "a key with a zero", id="a zero in a key"),
        pytest.param({"a": object()}, "a object, which CEL has no type for", id="an object"),
        pytest.param("\ud800", "cannot be evaluated", id="half a character"),
    ],
)
def test_values_that_cel_does_not_take(value, detail):
    """A value that the library cannot handle is refused before it gets there."""
    with pytest.raises(RuleError, match=detail):
        CEL.transform(context("message"), value)


@pytest.mark.parametrize(
    ("value", "expected"), [((1, 2), [1, 2]), (("R", {"a": 1}), {"a": 1}), (Branch(1, "x"), "x"), (("a",), ["a"])]
)
def test_tuples_in_cel(value, expected):
    """A tuple is a list, except one that names the branch of a union, of which CEL sees the value."""
    assert expected == CEL.transform(context("message"), value)


def test_fields_of_no_primitive_type():
    """A field rule returns a value that is not a primitive unchanged, and its condition holds."""
    field = FieldContext("R.a", "a", "ENUM", frozenset(), {})

    assert "A" == FIELD.field_transform(context("1"))(field, "A")
    assert FIELD.field_transform(context("false", "CONDITION"))(field, "A") is True


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8", exclude_characters="\0")), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(80), deadline=None)
@given(JSON_VALUES | st.binary())
def test_cel_hands_on_what_it_gets(value):
    """CEL returns an unchanged value exactly, bytes and zeros included."""
    found = CEL.transform(context("[message]"), value)

    assert [value] == found
    assert type(value) is type(found[0])


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        pytest.param("text.$pad(4, '-')", "ab--", id="pad, of the context"),
        pytest.param("$pad(text, -4)", "  ab", id="pad, in front"),
        pytest.param("text.$replace('b', 'c$0$$')", "acb$", id="replace, of the context"),
        pytest.param("$replace('aaa', 'a', 'b', 2)", "bba", id="replace, some"),
        pytest.param("$replace('a1b22', /[0-9]+/, '<$0>')", "a<1>b<22>", id="replace, a pattern"),
        pytest.param("$replace('a1', /[0-9]/, function($m){$m.match & '!'})", "a1!", id="replace, by a function"),
        pytest.param("$join(['a', 'b'], '-') & $join(['c', 'd'])", "a-bcd", id="join"),
        pytest.param("many.$string()", ["1", "[[2]]"], id="string, of the context"),
        pytest.param(
            "$distinct([1, 2, 1.0, [1], [1], {'a': 1}, {'a': 1}, null, null])",
            [1, 2, [1], {"a": 1}, None],
            id="distinct",
        ),
        pytest.param("$count($distinct([1..20000]))", 20000, id="distinct, many"),
        pytest.param("$map(['ab', 'b'], $string)", ["ab", "b"], id="a function handed on"),
        pytest.param("nowhere.$string()", None, id="nothing"),
    ],
)
def test_bounded_functions(expr, expected):
    """The bounded functions give the results of the original ones."""
    assert expected == JSONATA.transform(context(expr), {"text": "ab", "many": [1, [[2]]]})


@settings(max_examples=examples(20), deadline=None)
@given(st.dictionaries(st.text(max_size=3), JSON_VALUES, min_size=1))
def test_jsonata_hands_on_what_it_gets(value):
    """JSONata returns an unchanged value exactly."""
    assert json.dumps(value, sort_keys=True) == json.dumps(JSONATA.transform(context("$"), value), sort_keys=True)


@pytest.mark.parametrize("kind", ["anyOf", "allOf"])
def test_branches_that_all_fit(monkeypatch, kind):
    """A deep value has twice as many paths at each level; the visitor stops at a limit."""
    branch = {"properties": {"left": {"$ref": "#/definitions/tree"}, "name": {"type": "string"}}}
    document = {"$ref": "#/definitions/tree", "definitions": {"tree": {kind: [branch, branch]}}}
    values = JsonValues({"": document}, lambda uri: lambda value: None, None)
    visit = values.visitor(Rule(name="r", type="X"))
    monkeypatch.setattr(rule_values, "_MOST_STEPS", 10_000)
    value = {"name": "a", "left": {"name": "b"}}

    assert {"name": "A!!", "left": {"name": "B!!!!"}} == visit(lambda _, text: text.upper() + "!", value)
    for _ in range(100):
        value = {"left": value}
    with pytest.raises(SchemaError, match="more than 10000 steps"):
        visit(lambda _, text: text, value)
