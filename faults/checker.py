"""Checks whether a run kept the registry's guarantees. Pure: takes a history and a ledger, returns the violations.

The guarantees:

- For each subject, one order of operations explains every answer (`linear.py`).
- An id names one schema in every answer, and it is the schema in the log.
- Every acknowledged write is in the log with the acknowledged content.
- The log itself obeys the laws (`ledger.py`): ids are dense, versions increase, every version was compatible when it
  was added, and its user had the right to add it.

A node answers reads by explicit version and by id from memory (docs/decisions/0004), so for a while it may return what
another node has deleted. Such an answer may come from any earlier moment, but must have been right then. A "not found"
must be true at some moment between the start and the end of its read.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from faults import hot
from faults.ledger import Ledger
from faults.linear import WRITES, Finding, Verdict, explain
from faults.model import NOT_WRITTEN, Operation, Request, context_of
from faults.objects import OBJECTS, object_of
from faults.rights import misplaced

__all__ = ["Judgement", "by_subject", "judge"]

_GIVES_PLACE = frozenset({"register", "import"})
_NAMES_CONTENT = frozenset({"latest", "version"})
_LONG_AGO = -1.0


@dataclass(frozen=True, slots=True)
class Judgement:
    """The violated guarantees, and the number of steps of the longest search."""

    broken: tuple[str, ...]
    longest_search: int


def judge(operations: Sequence[Operation], ledger: Ledger, imported_contexts: Sequence[str] = ()) -> Judgement:
    """Check a run's history against the guarantees, and against the log that it left.

    Args:
        operations: the history.
        ledger: the fold of the log at the end of the run.
        imported_contexts: contexts in mode IMPORT, in which callers choose ids and versions.
    """
    findings = {subject: explain(history) for subject, history in sorted(by_subject(operations).items())}
    broken = [
        *(_sentence(subject, found) for subject, found in findings.items() if found.verdict is not Verdict.EXPLAINED),
        *_two_schemas_of_an_id(operations, imported_contexts),
        *_not_in_the_log(operations, ledger),
        *misplaced(operations, ledger.registered),
        *ledger.broken,
    ]
    return Judgement(tuple(broken), max((found.steps for found in findings.values()), default=0))


def by_subject(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    """Split a history by subject and object, into the operations whose order matters there.

    Operations answered with "nothing was written" are left out: if one had been written anyway, no order would explain
    the other answers.
    """
    subjects: dict[str, list[Operation]] = defaultdict(list)
    missing_ids = []
    for operation in operations:
        request, answer = operation.request, operation.answer
        if answer is not None and answer[0] == NOT_WRITTEN:
            continue
        if request.kind == "by_id":
            if answer is not None and answer[0] != 200:
                missing_ids.append(operation)
        elif answer is not None or request.kind in WRITES:
            subjects[object_of(request) or request.subject].append(_from_memory(operation))
    for operation in missing_ids:
        context = context_of(operation.request.subject)
        for subject in [name for name in subjects if name not in OBJECTS and context_of(name) == context]:
            absent = Request("absent", subject, schema_id=operation.request.schema_id)
            subjects[subject].append(replace(operation, request=absent))
    return {name: hot.without_unseen(held) if name in hot.OBJECTS else held for name, held in subjects.items()}


def _from_memory(operation: Operation) -> Operation:
    found = operation.answer is not None and operation.answer[0] == 200
    return replace(operation, start=_LONG_AGO) if operation.request.kind == "version" and found else operation


def _sentence(subject: str, found: Finding) -> str:
    waiting = "\n".join(f"    {operation}" for operation in sorted(found.stuck_before, key=lambda o: o.end)[:12])
    return (
        f"subject {subject}: {found.verdict} after {found.steps} steps; the longest order ends with "
        f"{found.stuck_at}, where none of these can follow:\n{waiting}"
    )


def _named_content(operation: Operation) -> tuple[int, str] | None:
    """Return the id and the content that an answer connects, None if it connects none."""
    request = operation.request
    if operation.answer is None or operation.answer[0] != 200:
        return None
    payload = operation.answer[1]
    if request.kind == "by_id":
        return request.schema_id, str(payload)
    if request.kind in _NAMES_CONTENT:
        return int(payload[0]), str(payload[2])
    if request.kind in _GIVES_PLACE or request.kind == "look_up":
        return int(payload[0]), request.content
    return None


def _two_schemas_of_an_id(operations: Iterable[Operation], imported_contexts: Sequence[str]) -> Iterable[str]:
    names: dict[tuple[str, int], str] = {}
    for operation in operations:
        context = context_of(operation.request.subject)
        named = _named_content(operation)
        if named is None or context in imported_contexts:
            continue
        schema_id, content = named
        if names.setdefault((context, schema_id), content) != content:
            before = names[context, schema_id]
            yield f"id {schema_id} of context {context} named {before!r}, then {content!r}: {operation}"


def _not_in_the_log(operations: Iterable[Operation], ledger: Ledger) -> Iterable[str]:
    known = {(context_of(subject), schema_id, content) for subject, _, schema_id, content in ledger.registered}
    for operation in operations:
        named, request = _named_content(operation), operation.request
        if named is None or operation.answer is None:
            continue
        if (context_of(request.subject), *named) not in known:
            yield f"returned by a node, but not in the log: {operation}"
        elif request.kind in _GIVES_PLACE:
            schema_id, version = operation.answer[1]
            if (request.subject, version, schema_id, request.content) not in ledger.registered:
                yield f"acknowledged, but not in the log: {operation}"
