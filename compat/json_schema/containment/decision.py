"""The decision about containment: a document, a proof, or neither."""

import json
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Final, TypeAlias
from typing import Literal as Choice

from strata.compat.json_schema.containment.evaluation import allows, fails
from strata.compat.json_schema.containment.goals import Focus, Found, Goal, Literal, OutOfWorkError, Work
from strata.compat.json_schema.containment.judge import Judge, NotJudgedError
from strata.compat.json_schema.containment.languages import TooManyStatesError
from strata.compat.json_schema.containment.reader import Reader
from strata.compat.json_schema.containment.schemas import Schemas
from strata.compat.json_schema.containment.shrinking import shrunk
from strata.compat.json_schema.containment.solver import Solver
from strata.compat.json_schema.containment.values import Document
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import DEFAULT_LIMITS, Limits

__all__ = ["Contained", "Containment", "Counterexample", "Decision", "Undecided"]

_LARGEST: Final = 4096
_SECONDS: Final = 0.8
_MOST_CANDIDATES: Final = 200
_ROUNDS: Final = 6  # searches in another order, after the first


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
        OutOfTime: The time of `limits` ran out.
    """

    def __init__(self, writer: JsonSchema, reader: JsonSchema, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._schemas = Schemas()
        self._judges = Judge(writer), Judge(reader)
        self._roots = [
            Reader(number, one.documents, self._schemas, limits).root() for number, one in enumerate((writer, reader))
        ]

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

    def _decided(self, focus: Focus, work: Work, size: int) -> Decision:
        writer, reader = self._roots
        goal: Goal = frozenset({Literal(writer, True), Literal(reader, False, focus)})
        is_proved, is_large = True, False
        for number in range(_ROUNDS):
            solver = Solver(self._schemas, work, size, Random(number) if number else None)  # noqa: S311 - no secret
            for answer in islice(solver.solutions(goal), _MOST_CANDIDATES):
                is_proved = False
                if not isinstance(answer, Found) or not self._is_witness(answer.value, focus):
                    continue
                document = self._smaller(answer.value, focus, work)
                if len(json.dumps(document, ensure_ascii=False).encode(errors="replace")) <= size:
                    return Counterexample(document, self._judges[1].error(document))
                is_large = True
            is_large = is_large or solver.is_too_large
            if is_proved:
                self._judges[0].allows(None)  # a proof about a schema that no validator takes would help nobody
                self._judges[1].allows(None)
                return Contained()
        return Undecided("size" if is_large else "undecided")

    def _is_witness(self, document: Document, focus: Focus) -> bool:
        """Ask the validator and our own rules: where the two differ, a third validator may differ too."""
        if not self._judges[0].allows(document) or not self._judges[1].refuses(document):
            return False
        writer, reader = self._roots
        return allows(writer, document) is not False and fails(reader, document, focus) is not False

    def _smaller(self, document: Document, focus: Focus, work: Work) -> Document:
        smaller = document
        with suppress(OutOfWorkError, NotJudgedError):
            smaller = shrunk(document, lambda one: self._is_witness(one, focus), work)
        return smaller
