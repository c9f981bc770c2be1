"""Schemas are accepted and read as by the public loaders that the reference builds on, recorded and live."""

import gzip
import json
from decimal import Decimal
from itertools import islice

import pytest

from harness.json_cases import DIALECTS, patterns, schemas
from harness.json_loaders import RECORDED, ask
from strata.compat.json_schema.java_regex import check_pattern
from strata.compat.json_schema.model import (
    ArrayNode,
    BooleanNode,
    CombinedNode,
    ConditionalNode,
    ConstNode,
    EmptyNode,
    EnumNode,
    FalseNode,
    NotNode,
    NullNode,
    NumberNode,
    ObjectNode,
    ReferenceNode,
    StringNode,
)
from strata.compat.json_schema.parser import parse
from strata.compat.schema import ResolvedReference, SchemaParseError

PLAIN = {
    EmptyNode: "Empty",
    FalseNode: "False",
    BooleanNode: "Boolean",
    NullNode: "Null",
    ConditionalNode: "Conditional",
    ConstNode: "Const",
}


class Description:
    """A schema as a text: its kinds and their compared parts."""

    def __init__(self):
        self._around = {}

    def of(self, node):
        """Describe a node."""
        if node is None:
            return "-"
        if id(node) in self._around:
            return f"^{len(self._around) - self._around[id(node)]}"
        self._around[id(node)] = len(self._around)
        try:
            return self._kind(node) + ("" if isinstance(node, ReferenceNode) else _annotations(node))
        finally:
            del self._around[id(node)]

    def _kind(self, node):
        match node:
            case ReferenceNode():
                return f"&{self.of(node.target)}"
            case EnumNode():
                return f"Enum({len(node.values)})"
            case NotNode():
                return f"Not({self.of(node.inner)})"
            case StringNode():
                pattern = "-" if node.pattern is None else node.pattern
                return f"String({_counts(node, 'minLength', 'maxLength')},{pattern})"
            case NumberNode():
                words = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
                limits = ",".join(_number(node.bounds.get(word)) for word in words)
                return f"{'Integer' if node.integer else 'Number'}(,{limits},{_number(node.multiple_of)})"
            case CombinedNode():
                return f"{node.criterion.value}[{', '.join(sorted(map(self.of, node.branches)))}]"
            case ArrayNode():
                return self._array(node)
            case ObjectNode():
                return self._object(node)
        return PLAIN[type(node)]

    def _array(self, node):
        items = ", ".join(map(self.of, node.tuple_items or ()))
        return (
            f"Array({_counts(node, 'minItems', 'maxItems')},{_flag(node.unique)},{self.of(node.items)}[{items}],"
            f"{self._rest(node.additional)},"
            f"{_number(node.bounds.get('minContains'))},{_number(node.bounds.get('maxContains'))})"
        )

    def _object(self, node):
        dependencies = {name: f"[{', '.join(sorted(names))}]" for name, names in node.property_dependencies.items()}
        return (
            f"Object({_counts(node, 'minProperties', 'maxProperties')},[{', '.join(sorted(node.required))}]"
            f"{self._named(node.properties)},{self._rest(node.additional)},"
            f"{self._named(node.patterns)}{_map(dependencies)}{self._named(node.schema_dependencies)})"
        )

    def _rest(self, rest):
        return f"{_flag(rest)},-" if isinstance(rest, bool) else f"true,{self.of(rest)}"

    def _named(self, nodes):
        return _map({name: self.of(node) for name, node in nodes.items()})


def _annotations(node):
    named = {"id": node.id, "title": node.title, "description": node.description}
    texts = [f"@{name}={text}" for name, text in named.items() if text is not None]
    return "".join([*texts, "" if node.default is None else "@default"])


def _map(texts):
    return f"{{{', '.join(f'{name}={text}' for name, text in sorted(texts.items()))}}}"


def _flag(value):
    return "true" if value else "false"


def _counts(node, *words):
    return ",".join(str(node.bounds.get(word, "null")) for word in words)


def _number(value):
    if value is None:
        return "-"
    digits = Decimal(value)
    sign, figures, exponent = digits.as_tuple()
    while len(figures) > 1 and not figures[-1]:
        figures, exponent = figures[:-1], exponent + 1
    return "0" if not any(figures) else str(Decimal((sign, figures, exponent)))


def _answer(question, *, with_model):
    try:
        if "pattern" in question:
            check_pattern(question["pattern"])
            return {"accepted": True}
        references = [ResolvedReference(*named) for named in question.get("references", {}).items()]
        schema = parse(question["schema"], strict=True, references=references)
    except SchemaParseError:
        return {"accepted": False}
    return {"accepted": True, "model": Description().of(schema.root)} if with_model else {"accepted": True}


def _is_look_behind(case):
    """Return whether a look-behind was refused; we refuse none, since its bounds change with the Java release."""
    return any(start in case.get("pattern", "") for start in ("(?<=", "(?<!")) and not case["accepted"]


def _differing(cases):
    wrong = []
    for case in cases:
        answer = {key: case[key] for key in ("accepted", "model") if key in case}
        actual = _answer(case, with_model="model" in case)
        if answer != actual and not _is_look_behind(case):
            wrong.append((case, actual))
    return wrong


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_recorded_answers_of_the_loaders(step):
    """The parser accepts, rejects and reads schemas and patterns as the recorded loaders do."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in islice(lines, 0, None, step)]

    assert [] == _differing(cases)
    assert {True, False} == {case["accepted"] for case in cases}


REGISTERED = {
    "a.json": '{"definitions":{"A":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/A"},"me":{"$ref":"#"}}}',
    "old.json": '{"items":[{"type":"string"}],"additionalItems":false,"dependencies":{"a":["b"]},"contains":{}}',
    "new.json": '{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":[{"type":"string"}],"title":"t"}',
    "four.json": '{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true,"const":1}',
}


def _referring():
    for dialect in DIALECTS:
        for name in (None, "http://h.test/x/root.json", "urn:x:y"):
            for target in ("a.json", "a.json#", "./a.json", "a.json#/definitions/A", "a.json#/none", *REGISTERED):
                if "draft-04" in dialect and target == "new.json":
                    continue  # The older loader refuses a dialect that it does not know; we read it as draft 4.
                if (name is None or name.startswith("urn:")) and target == "./a.json":
                    continue
                keyword = "id" if "draft-04" in dialect else "$id"
                schema = {"$schema": dialect, keyword: name, "properties": {"p": {"$ref": target}}}
                text = json.dumps({key: value for key, value in schema.items() if value})
                yield {"schema": text, "references": REGISTERED}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_answers_of_the_loaders():
    """The live loaders agree on other schemas and patterns, and on references among documents."""
    questions = [{"schema": schema} for schema in islice(schemas(), 3, None, 11)]
    questions += [{"pattern": pattern} for pattern in patterns(10_000, seed=2)]
    questions += _referring()
    cases = [question | answer for question, answer in zip(questions, ask(questions), strict=True)]

    assert [] == _differing(cases)
