"""Schemas that a JSON Schema loader may accept or reject, made from tables: every keyword with every kind of value."""

import json
import random
from collections.abc import Iterator
from typing import Final

__all__ = ["DIALECTS", "patterns", "schemas"]

DIALECTS: Final = (
    "",
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2020-12/schema",
)
_NEWER: Final = "/draft/20"
_KEYWORDS: Final = """
    $id id $anchor $ref $recursiveRef $dynamicRef $dynamicAnchor $defs definitions $vocabulary $comment type enum const
    multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern items prefixItems
    additionalItems unevaluatedItems maxItems minItems uniqueItems contains maxContains minContains maxProperties
    minProperties required properties patternProperties additionalProperties unevaluatedProperties dependencies
    dependentRequired dependentSchemas propertyNames if then else allOf anyOf oneOf not format title description default
    deprecated readOnly writeOnly examples nullable connect.type extends"""
_VALUES: Final = """
    null|true|false|0|1|-1|1.0|1.5|1e2|2147483647|2147483648|-2147483649|99999999999999999999|1e400|1e-400|0.0
    ""|"x"|"string"|"("|"[a"|"(?<n>a)\\\\k<n>"|"email"|"#"|"#frag"|"#/definitions/a"|"a.json"|"http://x.test/a"
    "a b"|"#a b"|"%zz"|"urn:x:y"|"http://[::1"|"/a/b"|"::"|"#a/b"|"#/a b"|"a\\u007cb"|"##"|"#/"
    []|{}|[1]|["a"]|["a","a"]|["string","null"]|["string",1]|[null]|[{}]|[true]|[false]|[[]]|[{"type":"string"},{}]
    {"a":1}|{"a":{}}|{"a":true}|{"a":null}|{"a":[]}|{"a":["b"]}|{"a":["b",1]}|{"a":"b"}|{"(":{}}|{"a":{"type":"foo"}}
    {"type":"string"}|{"type":"foo"}|{"$id":5}|{"$id":true}|{"id":5}|{"$id":{}}|{"id":{"type":"string"}}"""
_BESIDE: Final = ("", '"type":"object"', '"type":"array"', '"type":["string","array"]', '"contains":{}', '"if":{}')
_TOKENS: Final = r"""
    a b z 0 1 9 ( ) [ ] { } ^ $ . | * + ? - & \ , : = ! < > # (? (?< (?<= (?<! (?: (?i (?x) (?> (?<a> \k<a> \p \P{L}
    \p{Alpha} \p{Foo} \d \w \b \v \N \c \0 \1 \Q \E \u0041 \x41 \x{ \] -\d a-z && [^ {2} {1,2} {2,} é (a) *? ++"""
# In these cases the newer loader alone differs from the reference: it does not read definitions, and this cycle never
# ends.
_LEFT_OUT: Final = {"definitions": None, "$dynamicRef": '"#"'}


def schemas() -> Iterator[str]:
    """Yield every keyword with every value, alone and next to others, in every dialect."""
    values = [value for line in _VALUES.split("\n") for value in line.strip().split("|") if value]
    for beside in _BESIDE:
        for dialect in DIALECTS:
            for keyword in _KEYWORDS.split():
                if not beside.startswith(f'"{keyword}"'):
                    yield from (
                        _schema(dialect, beside, f'"{keyword}":{value}')
                        for value in values
                        if _NEWER not in dialect or _LEFT_OUT.get(keyword, "") not in (None, value)
                    )


def _schema(dialect: str, *members: str) -> str:
    named = f'"$schema":{json.dumps(dialect)}' if dialect else ""
    return f"{{{','.join(member for member in (named, *members) if member)}}}"


def patterns(number: int, seed: int = 1) -> list[str]:
    """Return random regular expressions, most of them invalid."""
    chance = random.Random(seed)  # noqa: S311 - the same patterns each time
    tokens = [*_TOKENS.split(), " "]
    made = ("".join(chance.choices(tokens, k=chance.randint(1, 8))) for _ in range(number))
    return list(dict.fromkeys(made))
