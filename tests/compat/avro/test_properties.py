"""Generated Avro schemas follow the laws that hold for every schema."""

import json
from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.compat.avro.equivalence import equivalent
from strata.compat.avro.normalizer import normalize
from strata.compat.avro.parser import parse
from strata.compat.avro.rules import check
from strata.compat.check import Previous
from strata.compat.check import check as check_level
from strata.compat.levels import Level
from strata.compat.schema import SchemaParseError

SLOW = settings(deadline=None, max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
WORDS = {
    "type",
    "name",
    "namespace",
    "doc",
    "aliases",
    "fields",
    "symbols",
    "size",
    "items",
    "values",
    "default",
    "order",
}
ATTRIBUTES = st.dictionaries(TEXTS.filter(lambda key: key not in WORDS), VALUES, max_size=2) | st.sampled_from(
    [
        {},
        {"logicalType": "date", "z": 1, "a": 2},
        {"scale": 1, "precision": 4, "logicalType": "decimal", "a": {"z": 1, "b": 2}},
    ]
)
BIG = st.integers(-(2**80), 2**80)
NAMED_NUMBERS = st.sampled_from(["NaN", "Infinity", "-Infinity", " 0x1p3f "])
DEFAULTS = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False) | BIG | NAMED_NUMBERS,
    "double": st.floats(allow_nan=False, allow_infinity=False) | BIG | NAMED_NUMBERS,
    "string": TEXTS,
    "bytes": st.text(st.characters(max_codepoint=255), max_size=3),
}
PRIMITIVES = sorted(DEFAULTS)


class _Schemas:
    """Generator of one schema; it numbers names so that no name is defined twice."""

    def __init__(self, draw):
        self.draw = draw
        self.names = []
        self.full = {}
        self.count = 0

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def node(self, depth, *, in_union=False):
        kinds = ["primitive", "primitive", "reference", "enum", "fixed"]
        if depth:
            kinds += ["array", "map", "record", "record"] + ([] if in_union else ["union"])
        return getattr(self, self.pick(*kinds))(depth)

    def primitive(self, _depth):
        kind, attributes = self.pick(*PRIMITIVES), self.draw(ATTRIBUTES)
        return {"type": kind, **attributes} if attributes or self.pick(True, False) else kind

    def reference(self, depth):
        return self.pick(*self.names) if self.names else self.primitive(depth)

    def array(self, depth):
        return {"type": "array", "items": self.node(depth - 1), **self.draw(ATTRIBUTES)}

    def map(self, depth):
        return {"values": self.node(depth - 1), **self.draw(ATTRIBUTES), "type": "map"}

    def union(self, depth):
        branches = {}
        for _ in range(self.pick(0, 1, 2, 3)):
            known = len(self.names)
            branch = self.node(depth - 1, in_union=True)
            name = branch if isinstance(branch, str) else self.full.get(id(branch), branch["type"])
            if branches.setdefault(name, branch) is not branch:
                del self.names[known:]
        return list(branches.values())

    def named(self, kind, **words):
        self.count += 1
        space = self.pick("n", "m.o")
        simple = f"{kind[0].upper()}{self.count}"
        if self.pick(True, False):
            words["doc"] = self.draw(TEXTS)
        if self.pick(True, False):
            words["aliases"] = [f"x.Z{self.count}", f"Y{self.count}"]
        spelled = self.pick({"name": f"{space}.{simple}"}, {"name": simple, "namespace": space})
        node = {"type": kind, **spelled, **words, **self.draw(ATTRIBUTES)}
        self.full[id(node)] = f"{space}.{simple}"
        self.names.append(f"{space}.{simple}")
        return node

    def enum(self, _depth):
        return self.named("enum", symbols=["A", "B"], default=self.pick("A", "B"))

    def fixed(self, _depth):
        return self.named("fixed", size=self.pick(1, 12, 16))

    def record(self, depth):
        node = self.named(self.pick("record", "record", "error"))
        node["fields"] = [self.field(number, depth) for number in range(self.pick(0, 1, 2, 3))]
        return node

    def field(self, number, depth):
        kind = self.node(depth - 1)
        field = {"name": f"f{number}", "type": kind, **self.draw(ATTRIBUTES)}
        first = kind["type"] if isinstance(kind, dict) else kind
        if isinstance(first, str) and first in DEFAULTS and self.pick(True, False):
            field["default"] = self.draw(DEFAULTS[first])
        if self.pick(True, False):
            field["aliases"] = [f"g{number}", f"b{number}"]
        return field


@st.composite
def _schemas(draw):
    return _Schemas(draw).node(4)


def shuffled(value, generator):
    """Return the same JSON with the keys of every object in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, generator)) for key, item in value.items()]
        generator.shuffle(items)
        return dict(items)
    return [shuffled(item, generator) for item in value] if isinstance(value, list) else value


@SLOW
@given(_schemas())
def test_canonical_text_is_a_fixed_point(schema):
    """Canonical text parses to the schema that it was printed from."""
    parsed = parse(json.dumps(schema), strict=True)
    again = parse(parsed.canonical, strict=True)

    assert parsed.canonical == again.canonical
    assert equivalent(parsed, again)


@SLOW
@given(_schemas(), st.integers(0, 4) | st.none(), st.booleans())
def test_spelling_does_not_count(schema, indent, ascii_only):
    """Blanks, line ends and escapes do not change the canonical text."""
    compact = json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
    spelled = json.dumps(schema, indent=indent, separators=(" ,\t", "\n: "), ensure_ascii=ascii_only)

    assert parse(compact, strict=True).canonical == parse(f"\r\n{spelled} ", strict=True).canonical


@SLOW
@given(_schemas())
def test_normalize_is_idempotent(schema):
    """Normalizing is idempotent, and its result is canonical."""
    normalized = normalize(parse(json.dumps(schema), strict=True))
    again = parse(normalized, strict=True)

    assert normalized == again.canonical
    assert normalized == normalize(again)


@SLOW
@given(_schemas(), st.randoms(use_true_random=False))
def test_order_of_attributes_does_not_count(schema, generator):
    """The order of attributes changes neither equivalence nor the normalized text."""
    one = parse(json.dumps(schema), strict=True)
    other = parse(json.dumps(shuffled(schema, generator)), strict=True)

    assert equivalent(one, other)
    assert normalize(one) == normalize(other)


@SLOW
@given(_schemas())
def test_a_schema_reads_itself(schema):
    """Every schema is compatible with itself, and with its normalized form in both directions."""
    parsed = parse(json.dumps(schema), strict=True)
    normal = parse(normalize(parsed), strict=True)

    assert [(), (), ()] == [tuple(check(*pair)) for pair in ((parsed, parsed), (parsed, normal), (normal, parsed))]


@SLOW
@given(_schemas(), _schemas())
def test_full_is_both_directions(one, other):
    """FULL allows what BACKWARD and FORWARD both allow, and finds what they find."""
    new, old = (parse(json.dumps(schema), strict=True) for schema in (one, other))
    results = {level: check_level(new, [Previous(1, old)], level) for level in Level}
    both = results[Level.FORWARD].incompatibilities + results[Level.BACKWARD].incompatibilities

    assert both == results[Level.FULL].incompatibilities
    assert results[Level.FULL].compatible == (not both)


def _survives(text, *, strict):
    with suppress(SchemaParseError):
        parse(text, strict=strict)


@SLOW
@given(st.text(max_size=50), st.booleans())
def test_any_text(text, strict):
    """Text that is not a schema is a parse error and nothing else."""
    _survives(text, strict=strict)


@SLOW
@given(VALUES, st.booleans())
def test_any_json(value, strict):
    """JSON that is not a schema is a parse error and nothing else."""
    _survives(json.dumps(value), strict=strict)


@SLOW
@given(_schemas(), st.randoms(use_true_random=False), st.booleans())
def test_damaged_schemas(schema, generator, strict):
    """A schema with characters lost, doubled or swapped is a schema or a parse error."""
    text = json.dumps(schema)
    for _ in range(3):
        place = generator.randrange(len(text) + 1)
        piece = generator.choice(
            ["", "", '"', "\\", "{", "]", ",", "null", "0", "\ud800", "/*", text[place : place + 9]]
        )
        text = text[:place] + piece + text[place + generator.choice([0, 1, 5]) :]
    _survives(text, strict=strict)


@SLOW
@given(_schemas(), VALUES, st.randoms(use_true_random=False), st.booleans())
def test_schemas_with_a_part_replaced(schema, value, generator, strict):
    """A schema with one part replaced by any JSON is a schema or a parse error."""
    schema = json.loads(json.dumps(schema))
    parts = [schema]
    for part in parts:
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    holders = [part for part in parts if part and isinstance(part, dict | list)]
    if holders:
        holder = generator.choice(holders)
        key = generator.choice(list(holder)) if isinstance(holder, dict) else generator.randrange(len(holder))
        holder[key] = value
    _survives(json.dumps(schema), strict=strict)
