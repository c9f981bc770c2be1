"""Search for one order of operations that explains every answer that the clients of a subject received.

This is Wing and Gong's search with Lowe's memoization. Take any operation that may come first (no other operation ended
before it began), let the model compute what follows, and continue. A pair of (operations taken, subject) that failed
once is not tried again. Two shortcuts keep the search small without missing an order:

- A read, or a rejected request, that fits the current subject can be taken at once: wherever it was in a valid order,
  it changed nothing there, so it may also come here. This is not true for a write that happens to change nothing here:
  a registration that finds its schema would add it again after a deletion.
- An operation whose answer was lost need never be taken; one that would change nothing is not taken.

A search that exceeds its budget is *undecided*, which counts as failed.
"""

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from faults.model import NEW, WRITES_TO_SUBJECTS, Operation, Subject, follow
from faults.objects import KINDS, OBJECTS, object_of

__all__ = ["WRITES", "Finding", "Verdict", "explain"]

WRITES = WRITES_TO_SUBJECTS | {name for name, kind in KINDS.items() if kind.writes}
_BUDGET = 400_000


class Verdict(StrEnum):
    """The result of a search."""

    EXPLAINED = "explained"
    CONTRADICTED = "contradicted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict, its number of steps, and for a failure the point at which the longest order ended."""

    verdict: Verdict
    steps: int
    stuck_at: object = NEW
    stuck_before: tuple[Operation, ...] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """A point of the search: the operations that may come next, the index of the first later one, and the subject."""

    open: tuple[int, ...]
    entered: int
    subject: Hashable


def explain(operations: Sequence[Operation], *, budget: int = _BUDGET) -> Finding:
    """Search for an order of the operations on one subject or object that agrees with every answer and with real time.

    Args:
        operations: the operations on one subject or object.
        budget: the largest number of steps; beyond it the verdict is UNDECIDED.
    """
    ordered = sorted(operations, key=lambda operation: operation.start)
    about = object_of(ordered[0].request) if ordered else None
    place = _settled(ordered, _Place((), 0, OBJECTS[about] if about else NEW))
    deepest, seen, steps = place, {place}, 0
    path = [(place, _next_places(ordered, place))]
    while path:
        place, choices = path[-1]
        if _complete(ordered, place):
            return Finding(Verdict.EXPLAINED, steps)
        following = next((choice for choice in choices if choice not in seen), None)
        if following is None:
            path.pop()
            continue
        steps += 1
        if steps > budget:
            return Finding(Verdict.UNDECIDED, steps, deepest.subject, _open(ordered, deepest))
        seen.add(following)
        if following.entered - len(following.open) > deepest.entered - len(deepest.open):
            deepest = following
        path.append((following, _next_places(ordered, following)))
    return Finding(Verdict.CONTRADICTED, steps, deepest.subject, _open(ordered, deepest))


def _end(operation: Operation) -> float:
    return math.inf if operation.answer is None else operation.end


def _after(held: Hashable, operation: Operation) -> Hashable | None:
    """Return the subject or object after an operation, None if the answer contradicts it."""
    kind = KINDS.get(operation.request.kind)
    if kind is None:
        assert isinstance(held, Subject)
        return follow(held, operation)
    after, expected = kind.perform(held, operation.request)
    return after if operation.answer in (None, expected) else None


def _is_idle(operation: Operation) -> bool:
    """Return whether an operation never changes anything."""
    return operation.answer is not None and (operation.answer[0] != 200 or operation.request.kind not in WRITES)


def _open(ordered: Sequence[Operation], place: _Place) -> tuple[Operation, ...]:
    return tuple(ordered[i] for i in place.open)


def _complete(ordered: Sequence[Operation], place: _Place) -> bool:
    return place.entered == len(ordered) and all(ordered[i].answer is None for i in place.open)


def _settled(ordered: Sequence[Operation], place: _Place) -> _Place:
    """Admit all operations that may come next, and take those that change nothing at once."""
    waiting, entered, subject = list(place.open), place.entered, place.subject
    while True:
        bound = min((_end(ordered[i]) for i in waiting), default=math.inf)
        while entered < len(ordered) and ordered[entered].start <= bound:
            waiting.append(entered)
            bound = min(bound, _end(ordered[entered]))
            entered += 1
        left = [i for i in waiting if not (_is_idle(ordered[i]) and _after(subject, ordered[i]) == subject)]
        if len(left) == len(waiting):
            return _Place(tuple(waiting), entered, subject)
        waiting = left


def _next_places(ordered: Sequence[Operation], place: _Place) -> Iterator[_Place]:
    """Yield the points after one more operation: first those that change nothing here, then those that ended first."""
    choices = [(i, after) for i in place.open if (after := _after(place.subject, ordered[i])) is not None]
    choices.sort(key=lambda choice: (choice[1] != place.subject, _end(ordered[choice[0]])))
    for i, after in choices:
        if after != place.subject or ordered[i].answer is not None:
            rest = tuple(j for j in place.open if j != i)
            yield _settled(ordered, _Place(rest, place.entered, after))
