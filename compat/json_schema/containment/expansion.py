"""The expansion of a goal for one type of value: every way to fulfil it, as leaves.

Each step keeps every value that could fulfil the goal, so a goal without a way has no value of the type. Rules that are
not understood drop out: then a way may have too many values, never too few.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.goals import (
    Alternative,
    Focus,
    Goal,
    Leaf,
    Leaves,
    Literal,
    OutOfWorkError,
    Work,
)
from strata.compat.json_schema.containment.paths import focused
from strata.compat.json_schema.containment.schemas import Schemas
from strata.compat.json_schema.containment.values import Document, key_of, type_of

__all__ = ["ways"]

_MOST_BRANCHES: Final = 120  # of an exclusive choice, of which each pair is an alternative

Alternatives = list[Alternative]  # none: impossible; an empty one: fulfilled
_FULFILLED: Final[Alternatives] = [()]
_IMPOSSIBLE: Final[Alternatives] = []


def ways(goal: Goal, type_name: str, schemas: Schemas, work: Work) -> Iterator[Leaves]:
    """Yield the ways in which a value of a type can fulfil a goal.

    Raises:
        OutOfWorkError: The work is used up, or a choice has too many branches.
    """
    yield from _Expansion(type_name, schemas, work).run(tuple(goal), frozenset(), frozenset(), ())


class _Expansion:
    def __init__(self, type_name: str, schemas: Schemas, work: Work) -> None:
        self._type = type_name
        self._schemas = schemas
        self._work = work

    def run(
        self,
        items: Alternative,
        seen: frozenset[tuple[r.Schema, bool]],
        leaves: Leaves,
        choices: tuple[Alternatives, ...],
    ) -> Iterator[Leaves]:
        pending, waiting = list(items), list(choices)
        known, facts = set(seen), set(leaves)
        while pending:
            self._work.charge()
            item = pending.pop()
            if isinstance(item, Leaf):
                if Leaf(item.rule, not item.is_positive) in facts:
                    return
                facts.add(item)
                continue
            schema, is_positive, focus = item
            if (schema, not is_positive) in known:
                return
            if (schema, is_positive) in known and not focus:
                continue
            known.add((schema, is_positive))
            for alternatives in self._of(schema, is_positive, focus):
                if not alternatives:
                    return
                if () in alternatives:
                    continue
                if len(alternatives) == 1:
                    pending += alternatives[0]
                else:
                    waiting.append(alternatives)
        yield from self._choose(frozenset(known), frozenset(facts), waiting)

    def _choose(
        self, seen: frozenset[tuple[r.Schema, bool]], leaves: Leaves, waiting: list[Alternatives]
    ) -> Iterator[Leaves]:
        """Go on with the choice that has the fewest alternatives left."""
        left: list[Alternatives] = []
        for alternatives in waiting:
            self._work.charge(len(alternatives))
            possible = [choice for choice in alternatives if self._is_possible(choice, seen, leaves)]
            if not possible:
                return
            if not any(self._is_fulfilled(choice, seen, leaves) for choice in possible):
                left.append(possible)
        if not left:
            yield leaves
            return
        best = min(left, key=len)
        others = tuple(choice for choice in left if choice is not best)
        for alternative in best:
            yield from self.run(alternative, seen, leaves, others)

    def _is_possible(self, items: Alternative, seen: frozenset[tuple[r.Schema, bool]], leaves: Leaves) -> bool:
        for item in items:
            if isinstance(item, Leaf):
                if Leaf(item.rule, not item.is_positive) in leaves:
                    return False
            elif (
                (item.schema, not item.is_positive) in seen
                or item.schema.allows is (not item.is_positive)
                or (item.is_positive and not self._may_be(item.schema))
            ):
                return False
        return True

    @staticmethod
    def _is_fulfilled(items: Alternative, seen: frozenset[tuple[r.Schema, bool]], leaves: Leaves) -> bool:
        return all(
            item in leaves if isinstance(item, Leaf) else (item.schema, item.is_positive) in seen and not item.focus
            for item in items
        )

    def _may_be(self, schema: r.Schema) -> bool:
        """Return false if a schema clearly allows no value of the type."""
        for rule in schema.rules:
            if isinstance(rule, r.Types) and not _has_type(rule, self._type):
                return False
            if isinstance(rule, r.Values) and not any(type_of(value) == self._type for value in rule.values):
                return False
        return schema.allows is not False

    def _of(self, schema: r.Schema, is_positive: bool, focus: Focus) -> Iterator[Alternatives]:
        """Yield what must be fulfilled for a literal, each with its alternatives."""
        if schema.allows is not None:
            yield _FULFILLED if schema.allows is is_positive else _IMPOSSIBLE
        elif is_positive:
            for rule in schema.rules:
                yield self._alternatives(rule, True, ())
        else:
            yield [
                alternative
                for rule, rest in focused(schema, focus)
                for alternative in self._alternatives(rule, False, rest)
                if self._is_possible(alternative, frozenset(), frozenset())
            ]

    def _alternatives(self, rule: r.Rule, is_positive: bool, focus: Focus) -> Alternatives:
        if _BITES.get(type(rule), self._type) != self._type or (isinstance(rule, r.Size) and rule.type != self._type):
            return _FULFILLED if is_positive else _IMPOSSIBLE
        expand = _EXPANSIONS.get(type(rule))
        if expand is None:
            return [(Leaf(rule, is_positive, focus),)]
        return expand(self, rule, is_positive, focus)

    def types(self, rule: r.Types, is_positive: bool, focus: Focus) -> Alternatives:
        del focus
        if self._type == "number" and "integer" in rule.names and "number" not in rule.names:
            return [(Leaf(rule, is_positive),)]
        return _FULFILLED if _has_type(rule, self._type) is is_positive else _IMPOSSIBLE

    def values(self, rule: r.Values, is_positive: bool, focus: Focus) -> Alternatives:
        del focus
        values = [value for value in rule.values if type_of(value) == self._type]
        if not values:
            return _IMPOSSIBLE if is_positive else _FULFILLED
        if is_positive or self._type not in ("array", "object"):
            return [(Leaf(rule, is_positive),)]
        if len(values) > 1:
            return [tuple(Literal(self._only(value), False) for value in values)]
        return list(self._other_than(values[0]))

    def _only(self, value: Document) -> r.Schema:
        return self._schemas.schema((r.Values(frozenset({key_of(value)}), (value,)),))

    def _other_than(self, value: Document) -> Iterator[Alternative]:
        """Yield the ways in which an array or object can differ from another."""
        if isinstance(value, list):
            yield (Leaf(r.Size("array", low=len(value) + 1), True),)
            if value:
                yield (Leaf(r.Size("array", high=len(value) - 1), True),)
                yield (Leaf(r.Items(tuple(map(self._only, value)), None), False),)
        elif isinstance(value, dict):
            for name in value:
                yield (Leaf(r.Absent(name), True),)
            named = tuple((name, self._only(member)) for name, member in value.items())
            yield (Leaf(r.Properties(named, (), self._schemas.nothing), False),)

    def unevaluated(self, rule: r.Unevaluated, is_positive: bool, focus: Focus) -> Alternatives:
        if self._type != ("object" if isinstance(rule.certain, r.Properties) else "array"):
            return _FULFILLED if is_positive else _IMPOSSIBLE
        if is_positive:
            return _FULFILLED if rule.possible is None else [(Leaf(rule.possible, True),)]
        return [(Leaf(rule.certain, False, focus),)]

    def required(self, rule: r.Required, is_positive: bool, focus: Focus) -> Alternatives:
        if is_positive:
            return [(Leaf(rule, True),)]
        return [(Leaf(r.Absent(name), True),) for name in rule.names if not focus or name == focus[-1]]

    def absent(self, rule: r.Absent, is_positive: bool, focus: Focus) -> Alternatives:
        del focus
        return [(Leaf(rule, True),)] if is_positive else [(Leaf(r.Required((rule.name,)), True),)]

    def dependent(self, rule: r.Dependent, is_positive: bool, focus: Focus) -> Alternatives:
        present = Leaf(r.Required((rule.name,)), True)
        if is_positive:
            then: Literal | Leaf = Leaf(r.Required((rule.name, *rule.names)), True)
            return [
                (Leaf(r.Absent(rule.name), True),),
                (then,) if rule.schema is None else (then, Literal(rule.schema, True)),
            ]
        if rule.schema is not None:
            return [(present, Literal(rule.schema, False, focus))]
        return [(present, Leaf(r.Absent(name), True)) for name in rule.names if name != rule.name]

    def contains(self, rule: r.Contains, is_positive: bool, focus: Focus) -> Alternatives:
        del focus
        if is_positive:
            if rule.low <= 0 and rule.high is None:
                return _FULFILLED
            return [(Leaf(r.Count(rule.schema, rule.low, rule.high), True),)]
        made: Alternatives = []
        if rule.low > 0:
            made.append((Leaf(r.Count(rule.schema, 0, rule.low - 1), True),))
        if rule.high is not None:
            made.append((Leaf(r.Count(rule.schema, rule.high + 1, None), True),))
        return made

    def all(self, rule: r.All, is_positive: bool, focus: Focus) -> Alternatives:
        if is_positive:
            return [tuple(Literal(schema, True) for schema in rule.schemas)]
        return [(Literal(schema, False, rest),) for schema, rest in _branches_at(rule.schemas, focus, others=False)]

    def branches(self, rule: r.Branches, is_positive: bool, focus: Focus) -> Alternatives:
        schemas = [inner for inner in rule.schemas if self._may_be(inner)]
        if not rule.is_exclusive or _are_apart(schemas):
            if is_positive:
                return [(Literal(schema, True),) for schema in schemas]
            return [tuple(Literal(schema, False, rest) for schema, rest in _branches_at(rule.schemas, focus))]
        if len(schemas) > _MOST_BRANCHES:
            raise OutOfWorkError
        if is_positive:
            return [
                (Literal(schema, True), *(Literal(other, False) for at, other in enumerate(schemas) if at != place))
                for place, schema in enumerate(schemas)
            ]
        none: Alternative = tuple(Literal(schema, False, rest) for schema, rest in _branches_at(rule.schemas, focus))
        pairs: Alternatives = [
            (Literal(inner, True), Literal(other, True))
            for place, inner in enumerate(schemas)
            for other in schemas[place + 1 :]
        ]
        return [none, *pairs]

    def negation(self, rule: r.Not, is_positive: bool, focus: Focus) -> Alternatives:
        del focus
        return [(Literal(rule.schema, not is_positive),)]

    def condition(self, rule: r.If, is_positive: bool, focus: Focus) -> Alternatives:
        del focus
        return [
            (Literal(rule.condition, True), Literal(rule.then, is_positive)),
            (Literal(rule.condition, False), Literal(rule.otherwise, is_positive)),
        ]

    def reference(self, rule: r.Reference, is_positive: bool, focus: Focus) -> Alternatives:
        return [(Literal(rule.follow(), is_positive, focus),)]

    def opaque(self, rule: r.Opaque, is_positive: bool, focus: Focus) -> Alternatives:
        del focus
        return _FULFILLED if is_positive else [(Leaf(rule, False),)]


def _are_apart(schemas: Sequence[r.Schema]) -> bool:
    """Return whether each schema allows some values only, and no two of them the same: then no two can hold."""
    keys_of_each = [
        next((rule.keys for rule in schema.rules if isinstance(rule, r.Values)), None) for schema in schemas
    ]
    keys = [key for allowed in keys_of_each if allowed is not None for key in allowed]
    return None not in keys_of_each and len(keys) == len(set(keys))


def _branches_at(schemas: Sequence[r.Schema], focus: Focus, *, others: bool = True) -> Iterator[tuple[r.Schema, Focus]]:
    """Yield branches with the rest of a path that begins with the number of one of them."""
    number = int(focus[0]) if focus and focus[0].isdecimal() else None
    for place, schema in enumerate(schemas):
        if place == number:
            yield schema, focus[1:]
        elif others or number is None:
            yield schema, ()


def _has_type(rule: r.Types, type_name: str) -> bool:
    return type_name in rule.names or (type_name == "number" and "integer" in rule.names)


_BITES: Final[dict[type[object], str]] = {
    r.Limit: "number",
    r.MultipleOf: "number",
    r.Pattern: "string",
    r.Format: "string",
    r.Properties: "object",
    r.Required: "object",
    r.Absent: "object",
    r.Names: "object",
    r.Dependent: "object",
    r.Items: "array",
    r.Contains: "array",
    r.Count: "array",
    r.Unique: "array",
}
_EXPANSIONS: Final[dict[type[object], Callable[[_Expansion, Any, bool, Focus], Alternatives]]] = {
    r.Types: _Expansion.types,
    r.Values: _Expansion.values,
    r.Unevaluated: _Expansion.unevaluated,
    r.Required: _Expansion.required,
    r.Absent: _Expansion.absent,
    r.Dependent: _Expansion.dependent,
    r.Contains: _Expansion.contains,
    r.All: _Expansion.all,
    r.Branches: _Expansion.branches,
    r.Not: _Expansion.negation,
    r.If: _Expansion.condition,
    r.Reference: _Expansion.reference,
    r.Opaque: _Expansion.opaque,
}
