"""Numbers that the writer's schema has as integers, and that a reader by its schema reads as doubles.

A validator changes no value. But people bind `integer` to integers and `number` to doubles, and a double has no room
for all integers beyond 2^53. So a place where the reader's schema says `number`, and the writer's does not, rounds.

What a schema says of a value depends on its branches. Two readers count: one that takes the branch that fits the value,
and the integer if several fit, and one that has one type for the place, which holds the values of all branches.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from fractions import Fraction
from typing import Final, NamedTuple, TypeAlias

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.evaluation import allows
from strata.compat.json_schema.containment.goals import OutOfWorkError, Work
from strata.compat.json_schema.containment.schemas import Schemas
from strata.compat.json_schema.containment.values import Document
from strata.compat.json_schema.patterns import found_in

__all__ = ["Place", "Rounding", "has_large_number", "large_numbers", "places", "probes", "rounded", "rounded_numbers"]

_MOST_PLACES: Final = 2_000
_MOST_INSIDE: Final = 1_000  # schemas that apply to one value
_FACTORS: Final = (1, 8, 512)  # beyond as many times 2^53, all but the multiples of twice as much are rounded


class Rounding(NamedTuple):
    """An integer that is read as a double, and a document with it."""

    address: str  # as in the paths of findings
    document: Document
    number: int


class Place(NamedTuple):
    """A place where an integer may be read as a double."""

    address: str
    steps: "tuple[_Step, ...]"
    owners: "tuple[_Schemas, ...]"  # what leads on, for the value before each step, and what types the last one


class _Member(NamedTuple):
    """The step to a property."""

    name: str


class _Matched(NamedTuple):
    """The step to a property whose name matches a pattern."""

    pattern: str


class _OtherMember(NamedTuple):
    """The step to a property that no schema names."""

    names: frozenset[str]
    patterns: frozenset[str]


class _Item(NamedTuple):
    """The step to an item of a tuple."""

    place: int


class _OtherItem(NamedTuple):
    """The step to an item after those of a tuple."""

    first: int


_Step: TypeAlias = _Member | _Matched | _OtherMember | _Item | _OtherItem
_Schemas: TypeAlias = tuple[r.Schema, ...]  # that apply to one value
_Pair: TypeAlias = tuple[frozenset[r.Schema], frozenset[r.Schema]]
_Members: TypeAlias = r.Properties | r.Items


class _Numbers(Enum):
    """How a schema has numbers read."""

    INTEGERS = auto()
    DOUBLES = auto()
    UNTYPED = auto()  # as they were written


# Places


def places(writer: r.Schema, reader: r.Schema, work: Work) -> Iterator[Place]:
    """Yield the places where the writer's schema has an integer and the reader's a number, the nearest first.

    Raises:
        OutOfWorkError: The work is used up.
    """
    first = Place("#", (), ())
    waiting: deque[tuple[_Schemas, _Schemas, Place, frozenset[_Pair]]] = deque(
        [((writer,), (reader,), first, frozenset())]
    )
    seen = 0
    while waiting:
        seen += 1
        if seen > _MOST_PLACES:
            raise OutOfWorkError
        written, read, place, above = waiting.popleft()
        ours, theirs = _applying(written, work), _applying(read, work)
        pair = frozenset(ours), frozenset(theirs)
        if not all(pair) or pair in above or pair[0] == pair[1]:  # a recursive type has below what it has here
            continue
        if _has_integers(ours) and any("number" in rule.names for rule in _types(theirs)):
            typed = tuple(schema for schema in (*ours, *theirs) if any(_types([schema])))
            yield place._replace(owners=(*place.owners, typed))
        for step, word in _steps([*ours, *theirs]):
            leading = tuple(schema for schema in (*ours, *theirs) if _below([schema], step))
            inner = Place(f"{place.address}/{word}", (*place.steps, step), (*place.owners, leading))
            waiting.append((_below(ours, step), _below(theirs, step), inner, above | {pair}))


def _has_integers(schemas: Sequence[r.Schema]) -> bool:
    """Return whether a type, or a value, is an integer and not any number."""
    values = [
        value for schema in schemas for rule in schema.rules if isinstance(rule, r.Values) for value in rule.values
    ]
    return any(_reading(rule) is _Numbers.INTEGERS for rule in _types(schemas)) or any(
        isinstance(value, int) and not isinstance(value, bool) for value in values
    )


def _applying(schemas: Sequence[r.Schema], work: Work) -> _Schemas:
    """Return some schemas with all that may apply to the same value: branches, references, conditions."""
    applying: dict[r.Schema, None] = {}
    pending = [*reversed(schemas)]
    while pending and len(applying) < _MOST_INSIDE:
        work.charge()
        schema = pending.pop()
        if schema not in applying:
            applying[schema] = None
            pending += [inner for rule in schema.rules for inner in _inside(rule)]
    return tuple(applying)


def _inside(rule: r.Rule) -> Sequence[r.Schema]:
    match rule:
        case r.All(schemas) | r.Branches(schemas):
            return schemas
        case r.Reference():
            return (rule.follow(),)
        case r.If(_, then, otherwise):
            return (then, otherwise)
        case r.Dependent(schema=r.Schema() as schema):
            return (schema,)
    return ()


def _types(schemas: Iterable[r.Schema]) -> Iterator[r.Types]:
    return (rule for schema in schemas for rule in schema.rules if isinstance(rule, r.Types))


def _members(schemas: Iterable[r.Schema]) -> Iterator[_Members]:
    """Yield the rules about members and items."""
    for schema in schemas:
        for rule in schema.rules:
            inner = rule.certain if isinstance(rule, r.Unevaluated) else rule
            if isinstance(inner, r.Properties | r.Items):
                yield inner


def _steps(schemas: Sequence[r.Schema]) -> Iterator[tuple[_Step, str]]:
    """Yield the steps to what is inside a value, each with the words of its address."""
    objects = [rule for rule in _members(schemas) if isinstance(rule, r.Properties)]
    arrays = [rule for rule in _members(schemas) if isinstance(rule, r.Items)]
    names = dict.fromkeys(name for rule in objects for name, _ in rule.named)
    patterns = dict.fromkeys(text for rule in objects for text, _ in rule.patterns)
    for name in names:
        yield _Member(name), f"properties/{name}"
    for text in patterns:
        yield _Matched(text), f"patternProperties/{text}"
    if any(rule.rest is not None for rule in objects):
        yield _OtherMember(frozenset(names), frozenset(patterns)), "additionalProperties"
    first = max((len(rule.first) for rule in arrays), default=0)
    for index in range(first):
        yield _Item(index), f"items/{index}"
    if any(rule.rest is not None for rule in arrays):
        yield _OtherItem(first), "additionalItems" if first else "items"


def _below(schemas: Sequence[r.Schema], step: _Step) -> _Schemas:
    """Return the schemas that may apply to what a step leads to."""
    return tuple(dict.fromkeys(inner for rule in _members(schemas) for inner in _at(rule, step)))


def _at(rule: _Members, step: _Step) -> Iterator[r.Schema]:
    match rule, step:
        case r.Properties(), _Member(name):
            yield from _of_name(rule, name)
        case r.Properties(_, patterns, rest), _Matched() | _OtherMember():
            yield from (schema for _, schema in patterns)
            if rest is not None:
                yield rest
        case r.Items(), _Item(index):
            yield from _of_index(rule, index)
        case r.Items(first), _OtherItem(index):
            yield from _of_index(rule, max(index, len(first)))


def _of_name(rule: r.Properties, name: str) -> Iterator[r.Schema]:
    schemas = [schema for other, schema in rule.named if other == name]
    schemas += [schema for text, schema in rule.patterns if found_in(text, name)]
    if not schemas and rule.rest is not None:
        schemas = [rule.rest]
    yield from schemas


def _of_index(rule: r.Items, index: int) -> Iterator[r.Schema]:
    if index < len(rule.first):
        yield rule.first[index]
    elif rule.rest is not None:
        yield rule.rest


# The search


def large_numbers(schemas: Schemas) -> Iterator[r.Schema]:
    """Yield schemas of integers that a double rounds: odd ones beyond 2^53, then larger ones, which may be even."""
    integer = r.Types(frozenset({"integer"}))
    for factor in _FACTORS:
        bound = Fraction(factor * (2**53 + 1))
        uneven = r.Not(schemas.schema((r.MultipleOf(Fraction(2 * factor)),)))
        for limit in (r.Limit(bound, True, False), r.Limit(-bound, False, False)):
            yield schemas.schema((integer, limit, uneven))


def probes(place: Place, target: r.Schema, schemas: Schemas) -> Iterator[r.Schema]:
    """Yield schemas of the documents that have a value of a schema at a place.

    The second one asks for all schemas on the way too: a branch that every value passes would leave them out.
    """
    for is_strict in (False, True):
        owners = place.owners if is_strict else ((),) * len(place.owners)
        made = schemas.schema((*target.rules, *(r.All((owner,)) for owner in owners[-1])))
        for step, leading in zip(reversed(place.steps), reversed(owners[:-1]), strict=True):
            made = schemas.schema((*_holding(step, made, schemas), *(r.All((leader,)) for leader in leading)))
        yield made


def _holding(step: _Step, inner: r.Schema, schemas: Schemas) -> tuple[r.Rule, ...]:
    everything, other = schemas.everything, schemas.schema((r.Not(inner),))
    rule: r.Rule
    match step:
        case _Member(name):
            return (
                r.Types(frozenset({"object"})),
                r.Required((name,)),
                r.Properties(((name, inner),), (), None),
            )
        case _Item(index):
            return (
                r.Types(frozenset({"array"})),
                r.Size("array", low=index + 1),
                r.Items(((everything,) * index) + (inner,), None),
            )
        case _Matched(pattern):
            rule = r.Properties((), ((pattern, other),), None)
        case _OtherMember(names, patterns):
            named, matched = (tuple((name, everything) for name in sorted(texts)) for texts in (names, patterns))
            rule = r.Properties(named, matched, other)
        case _OtherItem(first):
            rule = r.Items((everything,) * first, other)
    return (r.Not(schemas.schema((rule,))),)


# Documents


def rounded(writer: r.Schema, reader: r.Schema, document: Document, steps: Sequence[_Step]) -> int | None:
    """Return the first integer of a document that is at a place and that only the reader's schema rounds."""
    pending: list[tuple[_Schemas, _Schemas, Document, tuple[_Step, ...]]] = [
        ((writer,), (reader,), document, tuple(steps))
    ]
    while pending:
        written, read, value, left = pending.pop()
        if not left:
            if isinstance(value, int) and _is_changed(written, read, value):
                return value
            continue
        ours, theirs = _holds(written, value), _holds(read, value)
        for step, inner in _children(value, left[0]):
            pending.append((_below(ours, step), _below(theirs, step), inner, left[1:]))
    return None


def rounded_numbers(writer: r.Schema, reader: r.Schema, document: Document) -> Iterator[tuple[str, int]]:
    """Yield each integer of a document that only the reader's schema rounds, with its path, such as `a.b[].c`."""
    pending: list[tuple[_Schemas, _Schemas, Document, str]] = [((writer,), (reader,), document, "")]
    while pending:
        written, read, value, path = pending.pop()
        if isinstance(value, int) and _is_changed(written, read, value):
            yield path, value
        elif has_large_number(value):
            ours, theirs = _holds(written, value), _holds(read, value)
            for name, inner in value.items() if isinstance(value, dict) else ():
                pending.append(
                    (_below(ours, _Member(name)), _below(theirs, _Member(name)), inner, f"{path}.{name}".lstrip("."))
                )
            for place, inner in enumerate(value) if isinstance(value, list) else ():
                pending.append((_below(ours, _Item(place)), _below(theirs, _Item(place)), inner, f"{path}[]"))


def has_large_number(document: Document) -> bool:
    """Return whether a document has an integer that a double rounds."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            pending += value.values() if isinstance(value, dict) else value
        elif _is_rounded(value):
            return True
    return False


def _is_changed(written: Sequence[r.Schema], read: Sequence[r.Schema], value: int) -> bool:
    """Return whether a number is read as a double by the reader's schemas and not by the writer's, and differs."""
    doubles = _Numbers.DOUBLES
    return _is_rounded(value) and (
        (_of_value(read, value) is doubles and _of_value(written, value) is not doubles)
        or (_of_column(read) is doubles and _of_column(written) is not doubles)
    )


def _is_rounded(value: Document) -> bool:
    return (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 1000 and int(float(value)) != value
    )


def _children(value: Document, step: _Step) -> Iterator[tuple[_Step, Document]]:
    """Yield what a step leads to in a value, each with the exact step."""
    if isinstance(value, dict):
        for name, inner in value.items():
            match step:
                case _Member(other) if other == name:
                    yield _Member(name), inner
                case _Matched(pattern) if found_in(pattern, name):
                    yield _Member(name), inner
                case _OtherMember(names, patterns) if name not in names:
                    if not any(found_in(text, name) for text in patterns):
                        yield _Member(name), inner
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if step == _Item(index) or (isinstance(step, _OtherItem) and index >= step.first):
                yield _Item(index), inner


def _holds(schemas: Sequence[r.Schema], value: Document) -> _Schemas:
    """Return some schemas with those of their branches that hold for a value."""
    holding: dict[r.Schema, None] = {}
    pending = [*reversed(schemas)]
    while pending and len(holding) < _MOST_INSIDE:
        schema = pending.pop()
        if schema in holding:
            continue
        holding[schema] = None
        for rule in schema.rules:
            match rule:
                case r.Branches(branches):
                    pending += [branch for branch in branches if allows(branch, value) is not False]
                case r.If(condition, then, otherwise):
                    pending.append(otherwise if allows(condition, value) is False else then)
                case r.Dependent(name, schema=r.Schema() as inner):
                    pending += [inner] if isinstance(value, dict) and name in value else []
                case _:
                    pending += _inside(rule)
    return tuple(holding)


def _reading(rule: r.Types) -> _Numbers:
    if "number" in rule.names:
        return _Numbers.DOUBLES
    return _Numbers.INTEGERS if "integer" in rule.names else _Numbers.UNTYPED


def _of_value(schemas: Sequence[r.Schema], value: Document) -> _Numbers:
    """Return how a number is read by the types that hold for it; an integer by one of them stays one."""
    readings = {_reading(rule) for rule in _types(_holds(schemas, value))}
    return next((numbers for numbers in (_Numbers.INTEGERS, _Numbers.DOUBLES) if numbers in readings), _Numbers.UNTYPED)


_BOTH: Final = (_Numbers.INTEGERS, _Numbers.DOUBLES, _Numbers.UNTYPED)  # the narrowest of types that all hold
_EITHER: Final = (_Numbers.DOUBLES, _Numbers.INTEGERS, _Numbers.UNTYPED)  # the widest of types of which one holds


def _of_column(schemas: Sequence[r.Schema]) -> _Numbers:
    """Return how a number is read if the place has one type, as a column has."""
    known: dict[r.Schema, _Numbers] = {}
    return _best((_column(schema, known) for schema in schemas), _BOTH)


def _column(schema: r.Schema, known: dict[r.Schema, _Numbers]) -> _Numbers:
    if schema not in known:
        known[schema] = _Numbers.UNTYPED  # for a schema inside itself
        known[schema] = _best((_column_of_rule(rule, known) for rule in schema.rules), _BOTH)
    return known[schema]


def _column_of_rule(rule: r.Rule, known: dict[r.Schema, _Numbers]) -> _Numbers:
    if isinstance(rule, r.Types):
        return _reading(rule)
    if isinstance(rule, r.Values):
        integers = [isinstance(value, int) for value in rule.values if type(value) in (int, float)]
        return _Numbers.UNTYPED if not integers else _Numbers.INTEGERS if all(integers) else _Numbers.DOUBLES
    inner = (_column(schema, known) for schema in (() if isinstance(rule, r.If) else _inside(rule)))
    return _best(inner, _EITHER if isinstance(rule, r.Branches) else _BOTH)


def _best(readings: Iterable[_Numbers], order: Sequence[_Numbers]) -> _Numbers:
    kinds = set(readings)
    return next((numbers for numbers in order if numbers in kinds), _Numbers.UNTYPED)
