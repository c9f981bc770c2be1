"""Whether a schema allows a document, as far as the rules say so."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final, TypeAlias

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.formats import has_format
from strata.compat.json_schema.containment.goals import Focus
from strata.compat.json_schema.containment.paths import NAME, PATTERN, REST, focused
from strata.compat.json_schema.containment.values import Document, exact, key_of, type_of
from strata.compat.json_schema.patterns import found_in

__all__ = ["allows", "allows_rule", "fails"]

Verdict: TypeAlias = bool | None  # None: the rules do not say


class _Open(Enum):
    """A question without an answer yet."""

    OPEN = auto()


_OPEN: Final = _Open.OPEN
Known: TypeAlias = dict[tuple[r.Schema, int], Verdict | _Open]  # by schema and identity of the value


def allows(schema: r.Schema, value: Document, known: Known | None = None) -> Verdict:
    """Return whether a schema allows a document; None if a rule is not understood.

    Args:
        schema: The schema.
        value: The document.
        known: The verdicts about parts of the document; with them, branches that nest take no more time than others.

    Raises:
        RecursionError: A reference leads back to the same question.
    """
    if schema.allows is not None:
        return schema.allows
    known = {} if known is None else known
    key = schema, id(value)
    if key not in known:
        known[key] = _OPEN
        known[key] = _all(_verdict(rule, value, known) for rule in schema.rules)
    verdict = known[key]
    if verdict is _OPEN:
        raise RecursionError
    return verdict


def allows_rule(rule: r.Rule, value: Document) -> Verdict:
    """Return whether a document fulfils a rule; None if the rule is not understood."""
    return _verdict(rule, value, {})


def _verdict(rule: r.Rule, value: Document, known: Known) -> Verdict:
    if (plain := _PLAIN.get(type(rule))) is not None:
        return plain(rule, value)
    return _NESTED[type(rule)](rule, value, known)


def fails(schema: r.Schema, value: Document, focus: Focus = ()) -> Verdict:
    """Return whether a schema refuses a document at the place of a path."""
    if schema.allows is not None:
        return not schema.allows
    return _any(_fails(rule, value, rest) for rule, rest in focused(schema, focus))


def _fails(rule: r.Rule, value: Document, focus: Focus) -> Verdict:
    if not focus:
        return _not(allows_rule(rule, value))
    match rule:
        case r.Properties() if isinstance(value, dict):
            return _any(fails(schema, member, rest) for schema, member, rest in _members(rule, value, focus))
        case r.Unevaluated(certain):
            return None if _fails(certain, value, focus) is not False else False
        case r.Required() if isinstance(value, dict):
            return focus[-1] in rule.names and focus[-1] not in value
        case r.Dependent(name, _, r.Schema() as schema) if isinstance(value, dict):
            return fails(schema, value, focus) if name in value else False
        case r.Items() if isinstance(value, list):
            return _any(fails(schema, member, rest) for schema, member, rest in _elements(rule, value, focus))
        case r.All(schemas):
            place = int(focus[0]) if focus[0].isdecimal() else None
            return _any(
                fails(schema, value, focus[1:] if place == number else ())
                for number, schema in enumerate(schemas)
                if place in (None, number)
            )
        case r.Branches():
            return _not(allows_rule(rule, value))
        case r.Reference():
            return fails(rule.follow(), value, focus)
    return _not(allows_rule(rule, value))


def _members(
    rule: r.Properties, value: dict[str, Document], focus: Focus
) -> Iterator[tuple[r.Schema, Document, Focus]]:
    """Yield the properties at a place, each with a schema and the rest of the path."""
    named = dict(rule.named)
    word, following = focus[0], focus[1:]
    for name, member in value.items():
        matching = [(text, schema) for text, schema in rule.patterns if found_in(text, name)]
        if word == NAME and name == following[0]:
            if name in named:
                yield named[name], member, following[1:]
            yield from ((schema, member, following[1:]) for _, schema in matching)
        if word == PATTERN:
            yield from ((schema, member, following[1:]) for text, schema in matching if text == following[0])
        if rule.rest is not None and name not in named and not matching:
            if word == REST:
                yield rule.rest, member, following
            elif word == NAME and name == following[0]:
                yield rule.rest, member, following[1:]


def _elements(rule: r.Items, value: list[Document], focus: Focus) -> Iterator[tuple[r.Schema, Document, Focus]]:
    """Yield the items at a place, each with a schema and the rest of the path."""
    word, following = focus[0], focus[1:]
    for place, member in enumerate(value):
        if word == PATTERN and str(place) != following[0]:
            continue
        rest = following[1:] if word == PATTERN else following
        if place < len(rule.first):
            if word == PATTERN:
                yield rule.first[place], member, rest
        elif rule.rest is not None:
            yield rule.rest, member, rest


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    made: Verdict = True
    for verdict in verdicts:
        if verdict is False:
            return False
        made = None if verdict is None else made
    return made


def _not(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def _any(verdicts: Iterable[Verdict]) -> Verdict:
    return _not(_all(_not(verdict) for verdict in verdicts))


def is_of(rule: r.Types, value: Document) -> bool:
    """Return whether a value is of one of some types."""
    name = type_of(value)
    if name in rule.names:
        return True
    if name != "number" or "integer" not in rule.names:
        return False
    return isinstance(value, int) or (not rule.written and isinstance(value, float) and value.is_integer())


def _limit(rule: r.Limit, value: Document) -> Verdict:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    number = exact(value)
    if number == rule.value:
        return not rule.is_open
    return number > rule.value if rule.is_low else number < rule.value


def _multiple(rule: r.MultipleOf, value: Document) -> Verdict:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    return (exact(value) / rule.divisor).denominator == 1


def _size(rule: r.Size, value: Document) -> Verdict:
    if type_of(value) != rule.type or not isinstance(value, str | list | dict):
        return True
    return rule.low <= len(value) and (rule.high is None or len(value) <= rule.high)


def _properties(rule: r.Properties, value: Document, known: Known) -> Verdict:
    if not isinstance(value, dict):
        return True
    named = dict(rule.named)
    verdicts: list[Verdict] = []
    for name, member in value.items():
        schemas = [named[name]] if name in named else []
        schemas += [schema for pattern, schema in rule.patterns if found_in(pattern, name)]
        if not schemas and rule.rest is not None:
            schemas = [rule.rest]
        verdicts += [allows(schema, member, known) for schema in schemas]
    return _all(verdicts)


def _dependent(rule: r.Dependent, value: Document, known: Known) -> Verdict:
    if not isinstance(value, dict) or rule.name not in value:
        return True
    if rule.schema is not None:
        return allows(rule.schema, value, known)
    return all(name in value for name in rule.names)


def _items(rule: r.Items, value: Document, known: Known) -> Verdict:
    if not isinstance(value, list):
        return True
    first = len(rule.first)
    verdicts = [allows(schema, member, known) for schema, member in zip(rule.first, value, strict=False)]
    if rule.rest is not None:
        verdicts += [allows(rule.rest, member, known) for member in value[first:]]
    return _all(verdicts)


def _names(rule: r.Names, value: Document, known: Known) -> Verdict:
    return not isinstance(value, dict) or _all(allows(rule.schema, name, known) for name in value)


def _count(rule: r.Contains | r.Count, value: Document, known: Known) -> Verdict:
    if not isinstance(value, list):
        return True
    verdicts = [allows(rule.schema, member, known) for member in value]
    low, high = rule.low, rule.high
    least, most = verdicts.count(True), len(verdicts) - verdicts.count(False)
    if most < low or (high is not None and least > high):
        return False
    return True if least >= low and (high is None or most <= high) else None


def _branches(rule: r.Branches, value: Document, known: Known) -> Verdict:
    verdicts = [allows(schema, value, known) for schema in rule.schemas]
    if not rule.is_exclusive:
        return _any(verdicts)
    if verdicts.count(True) > 1 or verdicts.count(False) == len(verdicts):
        return False
    return None if None in verdicts else True


def _if(rule: r.If, value: Document, known: Known) -> Verdict:
    condition = allows(rule.condition, value, known)
    outcomes = allows(rule.then, value, known), allows(rule.otherwise, value, known)
    if condition is None:
        return outcomes[0] if outcomes[0] is outcomes[1] else None
    return outcomes[0] if condition else outcomes[1]


def _format(rule: r.Format, value: Document) -> Verdict:
    if not isinstance(value, str) or has_format(rule.name, value):
        return True
    return False if rule.is_asserted else None


def _unevaluated(rule: r.Unevaluated, value: Document, known: Known) -> Verdict:
    if isinstance(value, dict if isinstance(rule.certain, r.Properties) else list):
        at_least = _verdict(rule.certain, value, known)
        if at_least is True:
            return True
        at_most = None if rule.possible is None else _verdict(rule.possible, value, known)
        return False if at_most is False else None
    return True


_PLAIN: Final[Mapping[type[object], Callable[[Any, Document], Verdict]]] = {  # rules without schemas inside
    r.Types: is_of,
    r.Values: lambda rule, value: key_of(value) in rule.keys,
    r.Limit: _limit,
    r.MultipleOf: _multiple,
    r.Size: _size,
    r.Pattern: lambda rule, value: not isinstance(value, str) or found_in(rule.text, value),
    r.Format: _format,
    r.Required: lambda rule, value: not isinstance(value, dict) or all(name in value for name in rule.names),
    r.Absent: lambda rule, value: not isinstance(value, dict) or rule.name not in value,
    r.Unique: lambda _rule, value: not isinstance(value, list) or len(set(map(key_of, value))) == len(value),
    r.Opaque: lambda _rule, _value: None,
}
_NESTED: Final[Mapping[type[object], Callable[[Any, Document, Known], Verdict]]] = {
    r.Properties: _properties,
    r.Unevaluated: _unevaluated,
    r.Names: _names,
    r.Dependent: _dependent,
    r.Items: _items,
    r.Contains: _count,
    r.Count: _count,
    r.All: lambda rule, value, known: _all(allows(schema, value, known) for schema in rule.schemas),
    r.Branches: _branches,
    r.Not: lambda rule, value, known: _not(allows(rule.schema, value, known)),
    r.If: _if,
    r.Reference: lambda rule, value, known: allows(rule.follow(), value, known),
}
