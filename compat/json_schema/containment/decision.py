"""The decision about containment: a document, a proof, or neither."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random
from typing import Final, TypeAlias
from typing import Literal as Choice

from strata.compat.json_schema.containment.evaluation import allows, fails
from strata.compat.json_schema.containment.goals import Answer, Focus, Found, Literal, OutOfWorkError, Work
from strata.compat.json_schema.containment.judge import Judge, NotJudgedError
from strata.compat.json_schema.containment.languages import TooManyStatesError
from strata.compat.json_schema.containment.paths import others, value_path
from strata.compat.json_schema.containment.reader import Reader
from strata.compat.json_schema.containment.rounding import (
    Place,
    Rounding,
    has_large_number,
    large_numbers,
    places,
    probes,
    rounded,
    rounded_numbers,
)
from strata.compat.json_schema.containment.rules import Schema
from strata.compat.json_schema.containment.schemas import Schemas
from strata.compat.json_schema.containment.solver import Solver
from strata.compat.json_schema.containment.values import Document
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import DEFAULT_LIMITS, Limits

__all__ = ["Contained", "Containment", "Counterexample", "Decision", "Undecided"]

_LARGEST: Final = 4096
_SECONDS: Final = 0.8
_MOST_CANDIDATES: Final = 200
_MOST_CANDIDATES_FOR_ONE_PLACE: Final = 10
_ROUNDS: Final = 6  # searches in another order, after the first
_SIMPLEST: tuple[Document, ...] = (0, "", None, False, [], {})


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A document that the writer schema allows and the reader schema refuses, by the validator's word."""

    document: Document
    error: str


@dataclass(frozen=True, slots=True)
class Contained:
    """The reader schema allows every document that the writer schema allows: the search is complete, and finds none."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """The search has neither."""

    why: Choice["time", "size", "undecided"]


Decision: TypeAlias = Counterexample | Contained | Undecided


class Containment:
    """The question for one writer schema and one reader schema, as a whole or for places in the reader schema.

    Args:
        writer: The writer schema.
        reader: The reader schema.
        limits: Bounds on time.

    Raises:
        NotAtOnce: The schemas are too long for a computation by an event loop.
    """

    def __init__(self, writer: JsonSchema, reader: JsonSchema, limits: Limits = DEFAULT_LIMITS) -> None:
        limits.look_at_text(len(writer.canonical) + len(reader.canonical))
        self._limits = limits
        self._judges = Judge(writer), Judge(reader)
        self._schemas = Schemas()
        self._solver = Solver(self._schemas, Work(limits, 0), _LARGEST)
        self._readers = tuple(
            Reader(number, schema.documents, self._schemas, limits) for number, schema in enumerate((writer, reader))
        )

    @cached_property
    def _roots(self) -> tuple[Schema, Schema]:
        writer, reader = (side.root() for side in self._readers)
        return writer, reader

    def decide(self, focus: Focus = (), *, seconds: float = _SECONDS, size: int = _LARGEST) -> Decision:
        """Return a document that the writer schema allows and the reader schema refuses, or why there is none.

        Args:
            focus: Where the reader schema has to refuse it: the steps of a finding's path; empty: anywhere.
            seconds: The CPU time of the search.
            size: The most bytes of the document as JSON.

        Raises:
            OutOfTime: The time of the limits ran out.
        """
        work = Work(self._limits, seconds)
        try:
            return self._decided(focus, work, size)
        except OutOfWorkError:
            return Undecided("time")
        except (NotJudgedError, RecursionError, TooManyStatesError):
            return Undecided("undecided")

    def roundings(self, *, seconds: float = _SECONDS, size: int = _LARGEST) -> tuple[list[Rounding], bool]:
        """Return integers that both schemas allow and that only the reader's reads as doubles, one for each place.

        Args:
            seconds: The CPU time of the search.
            size: The most bytes of a document as JSON.

        Returns:
            What was found, and whether all places were searched.

        Raises:
            OutOfTime: The time of the limits ran out.
        """
        work, roundings = Work(self._limits, seconds), dict[str, Rounding]()
        try:
            for place in places(*self._roots, work):
                if place.address not in roundings:
                    roundings |= {rounding.address: rounding for rounding in self._rounding(place, work, size)}
        except (OutOfWorkError, NotJudgedError, RecursionError, TooManyStatesError):
            return [*roundings.values()], False
        return [*roundings.values()], True

    @cached_property
    def may_round(self) -> bool:
        """Whether the writer's schema has integers where the reader's has numbers, or has too many."""
        try:
            return next(places(*self._roots, Work(self._limits, _SECONDS)), None) is not None
        except OutOfWorkError:
            return True

    def rounded_numbers(self, document: Document) -> Iterator[tuple[str, int]]:
        """Yield each integer of a document that only the reader's schema reads as a double, with its path.

        Args:
            document: A document that both schemas allow.
        """
        if self.may_round and has_large_number(document):
            yield from rounded_numbers(*self._roots, document)

    def _rounding(self, place: Place, work: Work, size: int) -> Iterator[Rounding]:
        """Yield the integer at a place that is rounded, if there is one."""

        def rounds(document: Document) -> bool:
            return (
                rounded(*self._roots, document, place.steps) is not None
                and self._judges[0].allows(document)
                and self._judges[1].allows(document)
            )

        for probe in (probe for large in large_numbers(self._schemas) for probe in probes(place, large, self._schemas)):
            wanted = (*self._roots, probe)
            goal = frozenset(Literal(schema, True) for schema in wanted)
            for answer in islice(self._first(work).solutions(goal), _MOST_CANDIDATES_FOR_ONE_PLACE):
                if isinstance(answer, Found) and rounds(answer.value):
                    document = self._smaller(answer.value, rounds, work)
                    number = rounded(*self._roots, document, place.steps)
                    if number is not None and _bytes(document) <= size:
                        yield Rounding(place.address, document, number)
                        return

    def _first(self, work: Work) -> Solver:
        """Return the search in the order of the schemas, which remembers what other places had inside."""
        self._solver.start(work)
        return self._solver

    def _answers(self, solver: Solver, focus: Focus, *more: Literal) -> Iterator[Answer]:
        writer, reader = self._roots
        return solver.solutions(frozenset({Literal(writer, True), Literal(reader, False, focus), *more}))

    def _only_there(self, focus: Focus, work: Work, size: int) -> Counterexample | None:
        """Return a document that the reader schema refuses for what it has at a place, and for nothing else."""
        beside = Literal(others(self._roots[1], focus, self._schemas), True)
        for answer in islice(self._answers(self._first(work), focus, beside), _MOST_CANDIDATES_FOR_ONE_PLACE):
            if isinstance(answer, Found) and self._is_witness(answer.value, focus):
                return self._example(answer.value, focus, work, size)
        return None

    def _example(self, document: Document, focus: Focus, work: Work, size: int) -> Counterexample | None:
        """Return a counterexample out of a document, if it is small enough."""
        document = self._smaller(document, self._like(document, focus), work)
        if _bytes(document) > size:
            return None
        return Counterexample(document, self._judges[1].error(document, value_path(focus)))

    def _decided(self, focus: Focus, work: Work, size: int) -> Decision:
        example = self._only_there(focus, work, size) if focus else None
        if example is not None:
            return example
        is_proved, is_large = True, False
        for number in range(_ROUNDS):
            solver = self._first(work)
            if number:
                solver = Solver(self._schemas, work, size, Random(number))  # noqa: S311 - no secret
            for answer in islice(self._answers(solver, focus), _MOST_CANDIDATES):
                is_proved = False
                if not isinstance(answer, Found) or not self._is_witness(answer.value, focus):
                    continue
                example = self._example(answer.value, focus, work, size)
                if example is not None:
                    return example
                is_large = True
            is_large = is_large or solver.is_too_large
            if is_proved:
                for judge in self._judges:
                    judge.check_proof()
                return Contained()
        return Undecided("size" if is_large else "undecided")

    def _is_witness(self, document: Document, focus: Focus) -> bool:
        """Ask the validator and our own rules: where the two differ, a third validator may differ too."""
        if not self._judges[0].allows(document) or not self._judges[1].refuses(document):
            return False
        writer, reader = self._roots
        return allows(writer, document) is not False and fails(reader, document, focus) is not False

    def _like(self, document: Document, focus: Focus) -> Callable[[Document], bool]:
        """Return whether a smaller document is a witness, and is refused for no more reasons than a document."""
        most = self._judges[1].errors(document)
        return lambda smaller: self._is_witness(smaller, focus) and self._judges[1].errors(smaller) <= most

    @staticmethod
    def _smaller(document: Document, is_witness: Callable[[Document], bool], work: Work) -> Document:
        with suppress(OutOfWorkError, NotJudgedError):
            return shrunk(document, is_witness, work)
        return document


def _bytes(document: Document) -> int:
    return len(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace"))


def shrunk(document: Document, is_witness: Callable[[Document], bool], work: Work) -> Document:
    """Return a document that is still a witness and from which nothing more can be left out.

    Raises:
        OutOfWorkError: The work is used up.
    """
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(document):
            work.charge(10)
            if is_witness(smaller):
                document, is_smaller = smaller, True
                break
    return document


def _smaller(document: Document) -> Iterator[Document]:
    """Yield documents that are smaller by one step, those that leave out most first."""
    if isinstance(document, dict):
        for name in document:
            yield {other: item for other, item in document.items() if other != name}
        for name, inner in document.items():
            for smaller in _smaller(inner):
                yield {**document, name: smaller}
    elif isinstance(document, list):
        for place in range(len(document)):
            yield document[:place] + document[place + 1 :]
        for place, inner in enumerate(document):
            for smaller in _smaller(inner):
                yield [*document[:place], smaller, *document[place + 1 :]]
    if isinstance(document, dict | list) and document:
        yield from _SIMPLEST[:2]
    if isinstance(document, str) and len(document) > 1:
        yield from ("", document[: len(document) // 2], document[:-1])
    if isinstance(document, float) and document:
        yield from (0, 1, int(document))
