"""An object that fulfils some leaves, or the proof that there is none.

Each leaf that a schema must not fulfil needs a property that fails: a named one, one whose name matches a pattern, or
another one. Names that no schema mentions differ only in the patterns that they match, so one name of each kind, and
more of it to reach `minProperties`, stands for all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, NamedTuple

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.goals import Answer, Focus, Found, Goal, Leaves, Literal, Nothing, Search
from strata.compat.json_schema.containment.paths import NAME, PATTERN, REST
from strata.compat.json_schema.containment.values import Document
from strata.compat.json_schema.patterns import found_in

__all__ = ["object_"]

_MOST_PATTERNS: Final = 5  # whose combinations are all tried; 32 kinds of names
_Literals = frozenset[Literal]


class _Need(NamedTuple):
    """One way in which a property fails: a name, or a condition on names, and what the value must be."""

    literals: _Literals
    name: str | None = None
    pattern: str | None = None  # that the name matches
    outside: r.Properties | None = None  # of whose names and patterns the name is none
    names: _Literals = frozenset()  # that the name as a string fulfils


@dataclass(slots=True)
class _Demands:
    rules: list[r.Properties] = field(default_factory=list)
    needs: list[list[_Need]] = field(default_factory=list)  # each with its alternatives
    required: dict[str, None] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    names: set[Literal] = field(default_factory=set)
    low: int = 0
    high: int | None = None

    def size(self, rule: r.Size, is_positive: bool) -> None:
        low, high = rule.low, rule.high
        if not is_positive:
            low, high = (0, low - 1) if high is None else (high + 1, None)
        self.low = max(self.low, low)
        self.high = high if self.high is None else self.high if high is None else min(high, self.high)


def object_(leaves: Leaves, solver: Search) -> Answer:
    """Return an object that fulfils the leaves.

    Raises:
        OutOfWorkError: The work is used up.
    """
    return _Builder(_demands(leaves), solver).run()


def _demands(leaves: Leaves) -> _Demands:
    made = _Demands()
    for rule, is_positive, focus in leaves:
        match rule:
            case r.Size():
                made.size(rule, is_positive)
            case r.Required(names):
                made.required |= dict.fromkeys(names)
            case r.Absent(name):
                made.absent.add(name)
            case r.Properties():
                if is_positive:
                    made.rules.append(rule)
                else:
                    made.needs.append(list(_needs(rule, focus)))
            case r.Names(schema):
                if is_positive:
                    made.names.add(Literal(schema, True))
                else:
                    made.needs.append([_Need(frozenset(), names=frozenset({Literal(schema, False)}))])
    return made


def _needs(rule: r.Properties, focus: Focus) -> Iterator[_Need]:
    """Yield the ways in which an object can fail a rule, at the place of a path."""
    word, following = (focus[0], focus[1:]) if focus else ("", ())
    named = dict(rule.named)
    if word == NAME:
        name, rest = following[0], following[1:]
        schemas = [named[name]] if name in named else []
        schemas += [schema for text, schema in rule.patterns if found_in(text, name)]
        if not schemas and rule.rest is not None:
            schemas = [rule.rest]
        for schema in schemas:
            yield _Need(frozenset({Literal(schema, False, rest)}), name=name)
        return
    for name, schema in rule.named if not word else ():
        yield _Need(frozenset({Literal(schema, False)}), name=name)
    for text, schema in rule.patterns:
        if not word or (word == PATTERN and text == following[0]):
            yield _Need(frozenset({Literal(schema, False, following[1:])}), pattern=text)
    if rule.rest is not None and (not word or word == REST):
        yield _Need(frozenset({Literal(rule.rest, False, following)}), outside=rule)


class _Builder:
    def __init__(self, demands: _Demands, solver: Search) -> None:
        self._demands = demands
        self._solver = solver
        self._is_unsure: Nothing | None = None
        self._patterns = sorted(self._all_patterns())
        self._mentioned = frozenset(name for rule in demands.rules for name, _ in rule.named)
        self._fixed: dict[str, _Literals] = {}

    def _all_patterns(self) -> set[str]:
        patterns = {text for rule in self._demands.rules for text, _ in rule.patterns}
        for alternatives in self._demands.needs:
            for need in alternatives:
                if need.pattern is not None:
                    patterns.add(need.pattern)
                if need.outside is not None:
                    patterns |= {text for text, _ in need.outside.patterns}
        return patterns

    def run(self) -> Answer:
        demands = self._demands
        if demands.high is not None and demands.high < demands.low:
            return Nothing.PROVED
        if not demands.absent.isdisjoint(demands.required):
            return Nothing.PROVED
        if demands.low * 5 > self._solver.longest:
            return Nothing.TOO_LARGE
        if demands.high is not None and len(demands.required) > demands.high:
            return Nothing.PROVED
        for name in demands.required:
            if not self._may_be_named(name):
                return Nothing.PROVED
        # The needs first: what fails them is often impossible, and then nothing else has to be found.
        needs = sorted(demands.needs, key=len)
        return self._meet(needs, dict.fromkeys(demands.required, frozenset()))

    def _unsure(self, answer: Answer) -> None:
        if isinstance(answer, Nothing) and answer is not Nothing.PROVED:
            self._is_unsure = answer

    def _nothing(self) -> Answer:
        return Nothing.PROVED if self._is_unsure is None else self._is_unsure

    def _may_be_named(self, name: str) -> bool:
        if not self._demands.names:
            return True
        answer = self._named(name, self._demands.names)
        self._unsure(answer)
        return isinstance(answer, Found)

    def _named(self, name: str, literals: set[Literal] | _Literals) -> Answer:
        """Return the name itself if it fulfils some literals."""
        schema = self._solver.schema(r.Values(frozenset({name}), (name,)))
        return self._solver.solve(frozenset({Literal(schema, True), *literals}))

    def _goal(self, name: str, extra: _Literals) -> Goal:
        """Return what the value of a property has to fulfil."""
        literals = set(extra)
        fixed = self._fixed.get(name)
        if fixed is None:
            fixed = self._fixed[name] = frozenset(
                Literal(schema, True) for rule in self._demands.rules for schema in _schemas(rule, name)
            )
        return frozenset(literals | fixed)

    def _meet(self, needs: list[list[_Need]], chosen: dict[str, _Literals]) -> Answer:
        """Fulfil the needs that are left in every way, until a whole object is found."""
        self._solver.work.charge()
        if not needs:
            return self._complete(chosen)
        for need in needs[0]:
            for name in self._names(need, chosen):
                literals = chosen.get(name, frozenset()) | need.literals
                answer = self._solver.solve(self._goal(name, literals))
                self._unsure(answer)
                if not isinstance(answer, Found):
                    continue
                made = self._meet(needs[1:], {**chosen, name: literals})
                if isinstance(made, Found):
                    return made
        return self._nothing()

    def _names(self, need: _Need, chosen: dict[str, _Literals]) -> Iterator[str]:
        """Yield names for a need: those that are there, those that a schema mentions, and new ones."""
        demands = self._demands
        if need.name is not None:
            if need.name not in demands.absent and self._may_be_named(need.name):
                yield need.name
            return
        known = dict.fromkeys((*chosen, *sorted(self._mentioned)))
        for name in known:
            if name not in demands.absent and self._is_for(name, need) and (name in chosen or self._may_be_named(name)):
                yield name
        excluded = frozenset(known) | demands.absent
        if need.outside is not None:
            excluded |= {name for name, _ in need.outside.named}
        for matched in self._kinds():
            if need.pattern is not None and need.pattern not in matched:
                continue
            if need.outside is not None and any(text in matched for text, _ in need.outside.patterns):
                continue
            answer = self._new(matched, excluded, need.names)
            if isinstance(answer, Found):
                yield str(answer.value)

    def _is_for(self, name: str, need: _Need) -> bool:
        if need.pattern is not None and not found_in(need.pattern, name):
            return False
        if need.outside is not None and _is_inside(need.outside, name):
            return False
        return not need.names or isinstance(self._named(name, need.names), Found)

    def _kinds(self) -> Iterator[frozenset[str]]:
        """Yield the sets of patterns that a name may match, the smallest first."""
        patterns = self._patterns
        if len(patterns) > _MOST_PATTERNS:
            self._is_unsure = Nothing.UNSURE
        most = len(patterns) if len(patterns) <= _MOST_PATTERNS else 1
        for size in range(most + 1):
            yield from map(frozenset, combinations(patterns, size))

    def _new(self, matched: frozenset[str], excluded: frozenset[str], literals: _Literals = frozenset()) -> Answer:
        """Return a name that matches some of the patterns and no others."""
        wanted = [Literal(self._solver.schema(r.Pattern(text)), text in matched) for text in self._patterns]
        answer = self._solver.name([*wanted, *self._demands.names, *literals], excluded)
        self._unsure(answer)
        return answer

    def _complete(self, chosen: dict[str, _Literals]) -> Answer:
        """Return an object with the chosen properties, and more if it needs more."""
        demands = self._demands
        if demands.high is not None and len(chosen) > demands.high:
            return Nothing.PROVED
        made: dict[str, Document] = {}
        for name, literals in chosen.items():
            answer = self._solver.solve(self._goal(name, literals))
            self._unsure(answer)
            if not isinstance(answer, Found):
                return self._nothing()
            made[name] = answer.value
        if len(made) < demands.low:
            for name in sorted(self._mentioned):
                self._add(made, name)
                if len(made) >= demands.low:
                    break
        for matched in self._kinds() if len(made) < demands.low else ():
            while len(made) < demands.low:
                answer = self._new(matched, frozenset(made) | self._mentioned | demands.absent)
                if not isinstance(answer, Found) or not self._add(made, str(answer.value)):
                    break
        return Found(made) if len(made) >= demands.low else self._nothing()

    def _add(self, made: dict[str, Document], name: str) -> bool:
        """Add a property if it may be there; return whether it was added."""
        if name in made or name in self._demands.absent or not self._may_be_named(name):
            return False
        answer = self._solver.solve(self._goal(name, frozenset()))
        self._unsure(answer)
        if isinstance(answer, Found):
            made[name] = answer.value
        return isinstance(answer, Found)


def _schemas(rule: r.Properties, name: str) -> Iterator[r.Schema]:
    """Yield the schemas of a rule that apply to a property."""
    is_inside = False
    for known, schema in rule.named:
        if known == name:
            is_inside = True
            yield schema
    for text, schema in rule.patterns:
        if found_in(text, name):
            is_inside = True
            yield schema
    if not is_inside and rule.rest is not None:
        yield rule.rest


def _is_inside(rule: r.Properties, name: str) -> bool:
    return any(known == name for known, _ in rule.named) or any(found_in(text, name) for text, _ in rule.patterns)
