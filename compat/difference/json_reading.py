"""What a JSON Schema's reader makes of a document: what it refuses, and the numbers that it rounds.

The rules of compatibility are not what a validator does: they do not compare all keywords, and refuse some changes that
break no document. So each change is decided by a search for a document that the writer's schema allows and the reader's
schema refuses because of the change (`strata.compat.json_schema.containment`), or a proof that there is none.

A validator changes no value. But people read `integer` into integers and `number` into doubles, and a double has no
room for all integers.
"""

import json
from collections.abc import Iterable, Iterator
from time import thread_time
from typing import Final

from strata.compat.difference import json_schema
from strata.compat.difference.edits import DOC_LIKE, Edit, EditKind
from strata.compat.difference.outcomes import Cause, Outcome, Verdict
from strata.compat.json_schema.containment.decision import (
    Contained,
    Containment,
    Counterexample,
    Decision,
)
from strata.compat.json_schema.containment.formats import EXAMPLES
from strata.compat.json_schema.json_text import write_json
from strata.compat.json_schema.model import JsonSchema
from strata.compat.limits import Limits

__all__ = ["outcomes"]

_SECONDS: Final = 1.0  # CPU time for the changes of one direction
_SECONDS_OF_WHOLE: Final = 0.3  # for the question whether the reader refuses any document
_SECONDS_OF_CHANGE: Final = 0.2
_SECONDS_OF_NUMBERS: Final = 0.3
_ROOT: Final = "#"
_DEFINITIONS: Final = ("#/definitions/", "#/$defs/")
_UNREAD: Final = frozenset(  # changes that no validator looks at
    {
        *DOC_LIKE,
        *(EditKind.ATTRIBUTE_CHANGED, EditKind.DEFAULT_ADDED, EditKind.DEFAULT_CHANGED, EditKind.DEFAULT_REMOVED),
        *(EditKind.TYPE_ADDED, EditKind.TYPE_REMOVED),  # of definitions: what uses them changes too
    }
)
_OF_TYPES: Final = frozenset({EditKind.TYPE_CHANGED, EditKind.BRANCH_ADDED, EditKind.BRANCH_REMOVED})
_FORMATS: Final = frozenset(map(write_json, EXAMPLES))


def outcomes(reader: JsonSchema, writer: JsonSchema, limits: Limits, *, is_new: bool) -> Iterator[Outcome]:
    """Yield what becomes of documents, for each change that a validator looks at.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        limits: Bounds on time.
        is_new: Whether the reader's schema is the new one; the outcomes are the same.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    del is_new
    reading = _Reading(reader, writer, limits)
    verdicts: list[Verdict] = []
    edits = json_schema.edits(writer, reader, limits).kept
    for edit in edits:
        limits.look_at_clock()
        if edit.kind not in _UNREAD:
            outcome = reading.outcome(edit)
            verdicts.append(outcome.verdict)
            yield outcome
    whole = reading.whole
    if isinstance(whole, Counterexample) and Verdict.BREAKS not in verdicts:
        yield _refused(whole, (_ROOT,), frozenset())
    elif not isinstance(whole, Contained | Counterexample) and not {Verdict.BREAKS, Verdict.UNKNOWN} & set(verdicts):
        yield Outcome(Cause.UNDECIDED, (_ROOT,))
    yield from reading.roundings(edits)


class _Reading:
    def __init__(self, reader: JsonSchema, writer: JsonSchema, limits: Limits) -> None:
        self._containment = Containment(writer, reader, limits)
        self._ends = thread_time() + _SECONDS
        self.whole = self._containment.decide(seconds=_SECONDS_OF_WHOLE)

    def outcome(self, edit: Edit) -> Outcome:
        """Return what becomes of documents because of a change."""
        at, kinds = edit.new_at or edit.old_at, frozenset({edit.kind})
        if isinstance(self.whole, Contained) or _only_widens(edit) or at[0].startswith(_DEFINITIONS):
            return Outcome(Cause.HARMLESS, at, kinds=kinds)
        decision = self._decision(edit, at[0])
        if isinstance(decision, Counterexample):
            return _refused(decision, at, kinds)
        if isinstance(decision, Contained):
            return Outcome(Cause.HARMLESS, at, kinds=kinds)
        if edit.name == "format" and edit.after in _FORMATS:
            return Outcome(Cause.FORMAT_UNCHECKED, at, after=edit.after or "", kinds=kinds)
        return Outcome(Cause.UNDECIDED, at, kinds=kinds)

    def _decision(self, edit: Edit, at: str) -> Decision | None:
        seconds = min(_SECONDS_OF_CHANGE, self._ends - thread_time())
        if seconds <= 0:
            return None
        return self._containment.decide((*_steps(at), *_keyword(edit)), seconds=seconds)

    def roundings(self, edits: Iterable[Edit]) -> Iterator[Outcome]:
        """Yield where a double rounds what was an integer: the changes of types at that place, if there are any.

        If the search ended before it had seen all places, the last outcome says so.
        """
        by_place: dict[str, list[str]] = {}
        for edit in edits:
            at = edit.new_at or edit.old_at
            if edit.kind in _OF_TYPES and at:
                by_place.setdefault(json_schema.without_branches(at[0]), []).append(at[0])
        roundings, is_whole = self._containment.roundings(seconds=_SECONDS_OF_NUMBERS)
        for rounding in roundings:
            at = tuple(dict.fromkeys((*by_place.get(rounding.address, ()), rounding.address)))
            yield Outcome(Cause.NUMBER_ROUNDED, at, "integer", "number", "2^53", _OF_TYPES)
        if not is_whole:
            yield Outcome(Cause.NUMBERS_UNDECIDED, (_ROOT,))


def _steps(at: str) -> tuple[str, ...]:
    return tuple(at.split("/")[1:])


def _keyword(edit: Edit) -> tuple[str, ...]:
    """Return the keyword of a change that its address does not end with."""
    if edit.kind in (EditKind.BRANCH_ADDED, EditKind.BRANCH_REMOVED):
        return (edit.name,)
    return ("type",) if edit.kind is EditKind.TYPE_CHANGED and edit.name == "type" else ()


def _only_widens(edit: Edit) -> bool:
    """Return whether a change lets the reader's schema allow more, whatever else it says."""
    if edit.kind is EditKind.CONSTRAINT_CHANGED:
        return edit.after is None and edit.name != "patternProperties"  # whose names a closed object lets pass
    if edit.kind is EditKind.REQUIRED_CHANGED:
        return edit.after == "optional"
    return edit.kind is EditKind.SYMBOL_ADDED


def _refused(example: Counterexample, at: tuple[str, ...], kinds: frozenset[EditKind]) -> Outcome:
    document = json.dumps(example.document, ensure_ascii=False)
    return Outcome(Cause.DOCUMENT_REFUSED, at, document, name=example.error, kinds=kinds)
