"""Where a schema has to fail: the rules to which the path of a finding leads.

Paths are those of the checker. The steps of its synthetic combinations (several kinds of keywords are an `allOf`,
several types an `anyOf`) are not keywords of the schema, and are skipped. A path that leads nowhere restricts nothing.
"""

from collections.abc import Iterator
from typing import Final

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.goals import Focus
from strata.compat.json_schema.containment.schemas import Schemas

__all__ = ["NAME", "PATTERN", "REST", "focused", "others", "value_path"]

NAME: Final = "name"
"""First step of a focus on a property: its name follows."""
PATTERN: Final = "pattern"
"""First step of a focus on a pattern of names, or on the place of an item: it follows."""
REST: Final = "rest"
"""First step of a focus on all other properties or items."""

_COMBINED: Final = {"allOf": r.All, "anyOf": r.Branches, "oneOf": r.Branches}
_RESTS: Final = {
    "additionalProperties": r.Properties,
    "unevaluatedProperties": r.Unevaluated,
    "additionalItems": r.Items,
    "unevaluatedItems": r.Unevaluated,
}
_WORDS: Final[dict[str, type[object]]] = {
    "minContains": r.Contains,
    "maxContains": r.Contains,
    "contains": r.Contains,
    "multipleOf": r.MultipleOf,
    "pattern": r.Pattern,
    "format": r.Format,
    "contentEncoding": r.Format,
    "contentMediaType": r.Format,
    "uniqueItems": r.Unique,
    "not": r.Not,
    "if": r.If,
    "then": r.If,
    "else": r.If,
    "propertyNames": r.Names,
    "type": r.Types,
    "enum": r.Values,
    "const": r.Values,
}


def value_path(focus: Focus) -> tuple[str, ...]:
    """Return the steps into a document that are certain from a path into a schema."""
    steps = iter(focus)
    made: list[str] = []
    for step in steps:
        following = next(steps, "") if step in ("properties", "items", *_COMBINED) else ""
        if step == "properties" or (step == "items" and following.isdecimal()):
            made.append(following)
        elif step not in _COMBINED:
            break
    return tuple(made)


def focused(schema: r.Schema, focus: Focus) -> list[tuple[r.Rule, Focus]]:
    """Return the rules of a schema of which one has to fail, each with the rest of the path."""
    if focus:
        schemas = list(_matching(schema, focus))
        if schemas:
            return schemas
        if focus[0] in _COMBINED and len(focus) > 1:
            return focused(schema, focus[2:])
        references: list[tuple[r.Rule, Focus]] = [
            (rule, focus) for rule in schema.rules if isinstance(rule, r.Reference)
        ]
        if references:
            return references
    known = [(rule, ()) for rule in schema.rules if not isinstance(rule, r.Opaque)]
    return known + [(rule, ()) for rule in schema.rules if isinstance(rule, r.Opaque)]


def others(schema: r.Schema, focus: Focus, schemas: Schemas) -> r.Schema:
    """Return what a schema says beside the place of a path: what a document may keep to that fails only there."""
    kept: list[r.Rule] = []
    matched = {id(rule): rest for rule, rest in focused(schema, focus)}
    for rule in schema.rules:
        if id(rule) not in matched:
            kept.append(rule)
        elif matched[id(rule)]:
            kept += _beside(rule, matched[id(rule)], schemas)
    return schemas.schema(kept)


def _beside(rule: r.Rule, focus: Focus, schemas: Schemas) -> list[r.Rule]:
    """Return what a rule says beside a place inside it."""
    word, following = focus[0], focus[1:]
    match rule:
        case r.Properties(named, patterns, rest) if word == NAME and following[0] in dict(named):
            name = following[0]
            inner = {**dict(named), name: others(dict(named)[name], following[1:], schemas)}
            return [r.Properties(tuple(inner.items()), patterns, rest)]
        case r.Items(first, rest) if word == PATTERN and int(following[0]) < len(first):
            place = int(following[0])
            inner_item = others(first[place], following[1:], schemas)
            return [r.Items((*first[:place], inner_item, *first[place + 1 :]), rest)]
        case r.Items(first, r.Schema() as rest) if word == REST and following:
            return [r.Items(first, others(rest, following, schemas))]
        case r.All(inner_schemas) if word.isdecimal() and int(word) < len(inner_schemas):
            place = int(word)
            kept = (
                *inner_schemas[:place],
                others(inner_schemas[place], following, schemas),
                *inner_schemas[place + 1 :],
            )
            return [r.All(kept)]
        case r.Reference() if len(focus) > 1:
            return [r.All((others(rule.follow(), focus, schemas),))]
    return []


def _matching(schema: r.Schema, focus: Focus) -> Iterator[tuple[r.Rule, Focus]]:
    for rule in schema.rules:
        rest = _rest(rule, focus)
        if rest is not None:
            yield rule, rest


def _rest(rule: r.Rule, focus: Focus) -> Focus | None:
    """Return the path inside a rule, or None if it does not lead there."""
    word, following = focus[0], focus[1:]
    if word in _COMBINED:
        is_there = isinstance(rule, _COMBINED[word]) and (
            not isinstance(rule, r.Branches) or rule.is_exclusive == (word == "oneOf")
        )
        return following if is_there else None
    if word in _RESTS:
        return (REST, *following) if isinstance(rule, _RESTS[word]) else None
    if word in _WORDS:
        return () if isinstance(rule, _WORDS[word]) else None
    if word == "items":
        return _of_items(rule, following)
    if following and word in ("properties", "patternProperties", "required", "dependencies"):
        return _of_objects(rule, word, following)
    return () if isinstance(rule, r.Limit | r.Size) and rule.word == word else None


def _of_objects(rule: r.Rule, word: str, following: Focus) -> Focus | None:
    name = following[0]
    if isinstance(rule, r.Required):
        is_there = name in rule.names and (word == "required" or (word == "properties" and len(following) == 1))
        return (name,) if is_there else None
    if isinstance(rule, r.Dependent):
        return following[1:] if word == "dependencies" and rule.name == name else None
    if isinstance(rule, r.Properties):
        if word == "properties":
            return (NAME, *following)
        return (PATTERN, *following) if word == "patternProperties" else None
    if isinstance(rule, r.Unevaluated) and isinstance(rule.certain, r.Properties):
        return (NAME, *following) if word == "properties" else None
    return None


def _of_items(rule: r.Rule, following: Focus) -> Focus | None:
    is_items = isinstance(rule, r.Items) or (isinstance(rule, r.Unevaluated) and isinstance(rule.certain, r.Items))
    if not is_items:
        return None
    return (PATTERN, *following) if following and following[0].isdecimal() else (REST, *following)
