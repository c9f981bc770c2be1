"""The estimated memory of a CEL expression is never less than the expression takes."""

import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.client import RegistryClient, Rule, Schema
from strata.serdes.errors import RuleError
from strata.serdes.protobuf.files import find_message, link
from strata.serdes.rules import cel_cost
from strata.serdes.rules.cel import CelExecutor, CelFieldExecutor
from strata.serdes.rules.executors import FieldContext, RuleContext

CEL = CelExecutor(RegistryClient("http://localhost:1"), {})
FIELD = CelFieldExecutor(RegistryClient("http://localhost:1"), {})
TOO_MUCH = "may need more than 256 MiB for this value"


def context(expr, kind="TRANSFORM"):
    """Return the context of a rule with an expression."""
    rule = Rule(name="costly", type="CEL", kind=kind, expr=expr)
    return RuleContext(rule, "domainRules", "WRITE", "s", "t", False, None, Schema("{}"))


def levels(number, body, start):
    """Return an expression that passes a value through macros nested in each other's lists."""
    for _ in range(number):
        start = f"[{start}].map(a, {body})[0]"
    return start


JOINED = levels(5, f"[{', '.join('a' * 16)}].join()", "message")
ORDER = {"lines": [{"sku": f"sku-{n}", "price": 1.5} for n in range(1000)], "shop": "downtown", "note": "x" * 100_000}


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        pytest.param("message.replace('a', message)", "a" * 100_000, id="a text for each of its characters"),
        pytest.param("message.replace('', message)", "b" * 100_000, id="a text between its characters"),
        pytest.param("message.map(x, message.join(','))", ["a" * 1000] * 1000, id="a list joined for each item"),
        pytest.param("message.map(x, x + message[0])", ["a" * 100_000] * 9000, id="a text for each item"),
        pytest.param("message.map(x, message + message)", [1] * 9000, id="a list for each item"),
        pytest.param("message.map(x, message)", [list(range(300))] * 300, id="a tree for each item"),
        pytest.param(JOINED, "x" * 1000, id="texts joined"),
        pytest.param(levels(8, f"[{', '.join('a' * 8)}]", "1"), None, id="lists of lists"),
        pytest.param(levels(10, "a + a", "message"), "x" * 2_000_000, id="texts doubled"),
        pytest.param(f"{JOINED} == '' ; 1", "x" * 1000, id="a guard"),
        pytest.param("'%s%s%s%s'.format([message, message, message, message])", ["x" * 10_000_000], id="formatted"),
    ],
)
def test_what_takes_too_much_does_not_begin(expr, value):
    """An expression that would take too much fails before it allocates anything."""
    with pytest.raises(RuleError, match=TOO_MUCH):
        CEL.transform(context(expr), value)


def test_fields_are_bounded_too():
    """A field rule is bounded by its value and by the record around it."""
    field = FieldContext("R.a", "a", "STRING", frozenset(), {"a": "a" * 100_000})

    with pytest.raises(RuleError, match=TOO_MUCH):
        FIELD.field_transform(context("value.replace('a', message.a)"))(field, "a" * 100_000)


@pytest.mark.parametrize(
    ("expr", "size"),
    [
        pytest.param("message.lines.map(l, l.sku + '@' + message.shop)", 1000, id="a text of the record for each item"),
        pytest.param("message.lines.map(l, {'sku': l.sku.upperAscii(), 'price': l.price * 2.0})", 1000, id="maps"),
        pytest.param("message.lines.filter(l, l.price > 1.0).map(l, l.sku)", 1000, id="some of them"),
        pytest.param(
            "message.note.split('').map(c, c.upperAscii()).join('') == '' ? [] : message.lines", 1000, id="cut"
        ),
        pytest.param("message.map(k, k + message.note)", 3, id="for each field"),
        pytest.param("[message.note.replace('x', 'yz'), '%s'.format([message.shop])]", 2, id="texts"),
    ],
)
def test_what_rules_do_passes(expr, size):
    """Usual rules pass, even over a large record."""
    record = ORDER | {"note": "x" * 1000} if "split" in expr else ORDER

    assert size == len(CEL.transform(context(expr), record))


def test_messages_are_measured():
    """Protobuf messages are measured like any other values."""
    schema = Schema('syntax = "proto3"; message M { repeated string many = 1; string one = 2; }', "PROTOBUF")
    kind = GetMessageClass(find_message(link(schema, {}), (0,)))
    expr = "size(message.many.map(x, x + message.one)) == 2000"

    assert CEL.transform(context(expr), kind(many=["a"] * 2000, one="b")) is True
    with pytest.raises(RuleError, match=TOO_MUCH):
        CEL.transform(context(expr), kind(many=["a"] * 2000, one="b" * 100_000))


def test_macros_in_macros():
    """Macros nest to a useful depth; deeper ones, whose estimate would take too long, are refused."""
    nested = "".join(f"[1].all({name}, " for name in "abcdefgh")

    assert CEL.transform(context(f"{nested} true {')' * 8}"), None) is True
    with pytest.raises(RuleError, match="nests macros deeper than 8"):
        CEL.transform(context(f"{nested} [1].all(i, true) {')' * 8}"), None)


TEXTS = st.recursive(
    st.sampled_from(["message.s", "message.t", "'lit'"]),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("{}.replace({}, {})".format, inner, st.sampled_from(["'a'", "''", "message.t"]), inner),
        st.builds("[{0}, {1}].map(x, x + {1}).join({0})".format, inner, inner),
        st.builds("message.l.map(x, x + {}).join(',')".format, inner),
        st.builds("'%s-%s'.format([{}, {}])".format, inner, inner),
        st.builds("{}.split('').join({})".format, inner, inner),
        st.builds("(size({0}) > 3 ? {0} : {1})".format, inner, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=examples(100), deadline=None)
@given(
    TEXTS,
    st.fixed_dictionaries(
        {"s": st.text("aé€", max_size=20), "t": st.text("ab", max_size=5), "l": st.lists(st.text("ab"))}
    ),
)
def test_never_less_than_it_takes(expr, value):
    """The resulting text is no longer than the estimate."""
    environment = CEL._programs._environment(None)
    try:
        compiled = environment.compile(expr)
    except RuntimeError:
        return  # nested deeper than the library supports
    cost = cel_cost.Cost(compiled.serialize(), ("message", "now"))

    told = cost._spent({"message": cel_cost._Known(value)})

    assert len(compiled.eval(data={"message": value}).plain_value().encode()) <= told
