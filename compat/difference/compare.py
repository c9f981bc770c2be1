"""The difference of two schemas: the edits, what each means for readers and writers, and the verdict at each level.

The meaning comes from two sources, in both directions: the findings of the checker, which say what a registry refuses,
and the outcomes of reading (`outcomes.py`), which say what becomes of the values. Each is attached to the edits at its
address, else to those below it, else to an added, removed or retyped part above it. One that fits none of them becomes
a change itself. So a schema pair with a finding or an outcome always has a change that shows it.

In Avro a finding means that a reader refuses some record. In Protobuf it does not: a reader skips what it cannot place.
There the outcomes alone decide the verdict, and a finding says that the check refuses the change. In JSON Schema a
finding is an opinion: it counts unless the outcomes prove that no document breaks.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache
from itertools import islice
from typing import Any, Final, NamedTuple

from strata.compat.check import Previous, check, explain
from strata.compat.difference.edits import DOC_LIKE, Edit, EditKind, Edits, cut
from strata.compat.difference.outcomes import Cause, Outcome, Verdict, worst
from strata.compat.levels import LEVELS, Direction, Level, Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.logical.policy import check_tables
from strata.compat.result import Incompatibility
from strata.compat.schema import ParsedSchema, SchemaFormat

__all__ = ["Change", "Difference", "Effect", "addresses", "difference", "outcomes"]

_MOST_SENTENCES: Final = 3
_MOST_OUTCOMES: Final = 10_000  # of one direction
_MOST_BELOW: Final = 20  # edits to which a finding above them is attached
_STEPS: Final = "./[{"  # the characters with which a step of an address begins
_MOST_JUMPS: Final = 200  # from a repeated type to its first place, for one finding


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change means in one direction."""

    verdict: Verdict
    refused: bool  # whether a rule of compatibility refuses the change
    words: str
    outcomes: tuple[Outcome, ...] = ()  # what readers make of the change, beside what its rules refuse


@dataclass(frozen=True, slots=True)
class Change:
    """One change, and what it means.

    Values are texts of at most 1,000 characters.
    """

    kind: EditKind
    path: str  # in the new schema; in the previous one for a part that is gone
    name: str  # the attribute, keyword, symbol or branch, if the change is about a part of the place
    before: str | None
    after: str | None
    readers: Effect  # consumers with the new schema that read data of the previous one
    writers: Effect  # consumers with the previous schema that read data of the new one


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes from one schema to another, and whether the new one may follow the previous one, by level."""

    changes: tuple[Change, ...]
    verdicts: Mapping[Level, bool]
    more: int = 0  # changes beyond the first 50,000, which are not listed

    @property
    def readers(self) -> Verdict:
        """What consumers with the new schema make of data of the previous one: the most severe of all changes."""
        return worst([change.readers.verdict for change in self.changes])

    @property
    def writers(self) -> Verdict:
        """What consumers with the previous schema make of data of the new one."""
        return worst([change.writers.verdict for change in self.changes])


class _Findings(Enum):
    """What a finding of a format's checker says about records."""

    BREAK = auto()  # a reader refuses some record
    OPINION = auto()  # the same, unless the outcomes prove that it refuses none
    RULES = auto()  # nothing


class _Format(NamedTuple):
    edits: Any  # (previous, new, limits) -> Edits; the schemas are of the format's own class
    addresses: Any  # Incompatibility -> the addresses of its place, best first
    preferred: Mapping[str, frozenset[EditKind]]  # the edits that a kind of finding is about
    outcomes: Any  # (reader, writer, limits, is_new) -> the Outcomes
    findings: _Findings


@cache
def _of(schema_format: SchemaFormat) -> _Format:
    """Return the row of a format, whose modules are imported at its first use."""
    match schema_format:
        case SchemaFormat.AVRO:
            from strata.compat.difference import avro, avro_reading

            return _Format(avro.edits, avro.addresses, avro.PREFERRED, avro_reading.outcomes, _Findings.BREAK)
        case SchemaFormat.PROTOBUF:
            from strata.compat.difference import protobuf, protobuf_reading

            return _Format(protobuf.edits, protobuf.addresses, {}, protobuf_reading.outcomes, _Findings.RULES)
        case SchemaFormat.JSON:
            from strata.compat.difference import json_reading, json_schema

            return _Format(json_schema.edits, json_schema.addresses, {}, json_reading.outcomes, _Findings.OPINION)


class _Side(NamedTuple):
    """One direction of reading, and the words for a change without findings."""

    direction: Direction
    level: Level
    fine: str
    by_kind: Mapping[EditKind, str]
    harmless: frozenset[EditKind]  # edits that cannot be the reason of a finding, if another edit can


_UNSEEN: Final = "No compatibility rule looks at this."
_HARMLESS: Final = "The check refuses this, but it changes no value."
_OPINION: Final = "This is what the rule says: no document was found that shows it."
_DOC_WORDS: Final = dict.fromkeys(DOC_LIKE, _UNSEEN) | {EditKind.DOC_CHANGED: "No effect on data."}
_READERS: Final = _Side(
    Direction.BACKWARD,
    Level.BACKWARD,
    "Consumers with the new schema can read old data.",
    {
        **_DOC_WORDS,
        EditKind.ALIASES_CHANGED: "Consumers with the new schema find old data under its name and these aliases.",
        EditKind.FIELD_ADDED: "Consumers with the new schema can read old data, which lacks this field.",
        EditKind.FIELD_REMOVED: "Consumers with the new schema skip this field of old data.",
        EditKind.FIELD_RENAMED: "Consumers with the new schema read the old field under its new name.",
    },
    frozenset({EditKind.SYMBOL_ADDED, EditKind.BRANCH_ADDED}),
)
_WRITERS: Final = _Side(
    Direction.FORWARD,
    Level.FORWARD,
    "Consumers with the old schema can read new data.",
    {
        **_DOC_WORDS,
        EditKind.ALIASES_CHANGED: "Consumers with the old schema use its own aliases, not these.",
        EditKind.FIELD_ADDED: "Consumers with the old schema skip this field of new data.",
        EditKind.FIELD_REMOVED: "Consumers with the old schema find this field missing in new data.",
        EditKind.FIELD_RENAMED: "Consumers with the old schema read the new field under its old name.",
    },
    frozenset({EditKind.SYMBOL_REMOVED, EditKind.BRANCH_REMOVED}),
)
_UNJUDGED: Final = "Not judged: the check stopped at another finding, here or above."
_GAVE_UP: Final = frozenset({"TOO_COMPLEX", "AMBIGUOUS_FIELD"})
_WHOLE: Final = frozenset(  # edits that cover all that is below them
    {
        EditKind.FIELD_ADDED,
        EditKind.FIELD_REMOVED,
        EditKind.TYPE_ADDED,
        EditKind.TYPE_REMOVED,
        EditKind.TYPE_CHANGED,
        EditKind.BRANCH_ADDED,
        EditKind.BRANCH_REMOVED,
    }
)
_STOPPING: Final = frozenset({EditKind.FIELD_RENAMED, EditKind.TYPE_CHANGED})  # below which nothing is compared


def difference(
    previous: ParsedSchema,
    new: ParsedSchema,
    *,
    policy: Policy = Policy.STRICT,
    limits: Limits = DEFAULT_LIMITS,
    version: int | None = None,
) -> Difference:
    """Return what changed from one schema to another, and what each change means.

    Args:
        previous: The previous schema, with its references.
        new: The new schema, with its references.
        policy: How strictly the checker treats differences; under LOGICAL, the verdicts of the levels count tables too.
        limits: Bounds on work, findings and time.
        version: The number of the previous schema, for the words; without it they say "the previous version".

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    edits = _edits(previous, new, limits)
    judged = [_judged(edits, previous, new, side, policy, limits, version) for side in (_READERS, _WRITERS)]
    changes = tuple(
        Change(
            edit.kind, edit.path, edit.name, edit.before, edit.after, *(judgment.effect(number) for judgment in judged)
        )
        for number, edit in enumerate(edits.kept)
    )
    fits = {judgment.side.direction: not judgment.findings for judgment in judged}
    verdicts = {level: all(fits[direction] for direction in rule.directions) for level, rule in LEVELS.items()}
    if policy is Policy.LOGICAL:
        verdicts = {
            level: fits and not check_tables(new, [(version or 0, previous, "")], level, limits)
            for level, fits in verdicts.items()
        }
    return Difference(changes, verdicts, edits.more)


def _edits(previous: ParsedSchema, new: ParsedSchema, limits: Limits) -> Edits:
    if previous.format is new.format:
        edits: Edits = _of(new.format).edits(previous, new, limits)
        return edits
    edits = Edits()
    edits.add(EditKind.FORMAT_CHANGED, "", "", before=str(previous.format), after=str(new.format))
    return edits


def _findings(
    previous: ParsedSchema, new: ParsedSchema, side: _Side, policy: Policy, limits: Limits, version: int | None
) -> Sequence[Incompatibility]:
    result = check(new, [Previous(version or 0, previous)], side.level, policy, limits)
    return [replace(finding, version=version) for finding in result.incompatibilities]


def _is_whole(findings: Sequence[Incompatibility], limits: Limits) -> bool:
    return len(findings) < limits.incompatibilities and not any(finding.kind in _GAVE_UP for finding in findings)


def _judged(
    edits: Edits,
    previous: ParsedSchema,
    new: ParsedSchema,
    side: _Side,
    policy: Policy,
    limits: Limits,
    version: int | None,
) -> "_Judged":
    """Judge the edits in one direction; add an edit for each finding or outcome that fits none."""
    findings = _findings(previous, new, side, policy, limits, version)
    is_new = side is _READERS
    made = _Judged(edits, side, findings, _meaning(previous, new))
    index = _Index(edits, is_new=is_new)
    for finding in findings:
        limits.look_at_clock()
        numbers = index.about(finding)
        if not numbers:
            numbers = [index.added(_edit_of(finding, is_new=is_new))]
        for number in numbers:
            made.refused.setdefault(number, []).append(finding)
    reader, writer = (new, previous) if is_new else (previous, new)
    for outcome in outcomes(reader, writer, limits, is_new=is_new):
        for number in index.of(outcome.at, outcome.kinds, frozenset()) or [index.added(_change_of(outcome, is_new))]:
            made.outcomes.setdefault(number, []).append(outcome)
        made.is_clear = made.is_clear and outcome.verdict not in (Verdict.BREAKS, Verdict.UNKNOWN)
    made.is_whole, made.unjudged = _is_whole(findings, limits), _unjudged(index, made, limits)
    return made


def _meaning(previous: ParsedSchema, new: ParsedSchema) -> _Findings:
    return _of(new.format).findings if previous.format is new.format else _Findings.BREAK


def outcomes(reader: ParsedSchema, writer: ParsedSchema, limits: Limits, *, is_new: bool) -> Iterable[Outcome]:
    """Return what a reader does not read as it was written, without what it refuses by a rule; at most 10,000 parts.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        limits: Bounds on work and time.
        is_new: Whether the reader's schema is the new one.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    if reader.format is not writer.format:
        return ()
    outcomes: Iterable[Outcome] = _of(reader.format).outcomes(reader, writer, limits, is_new=is_new)
    return islice(outcomes, _MOST_OUTCOMES)


def addresses(finding: Incompatibility) -> Sequence[str]:
    """Return where a finding is, in the form of the addresses of outcomes."""
    places: Sequence[str] = _of(finding.format).addresses(finding)
    return places


def _change_of(outcome: Outcome, is_new: bool) -> Edit:
    """Return a change that only its outcome describes."""
    at = outcome.at[0]
    values = [cut(value) or None for value in (outcome.before, outcome.after)]
    before, after = values if is_new else reversed(values)
    old_at, new_at = ((), (at,)) if is_new else ((at,), ())
    return Edit(EditKind.CHANGED, cut(at), "", before, after, old_at, new_at)


def _edit_of(finding: Incompatibility, *, is_new: bool) -> Edit:
    """Return a change that only its finding describes."""
    at = _of(finding.format).addresses(finding)[0]
    values = [None if value is None else cut(str(value)) for value in (finding.writer_value, finding.reader_value)]
    before, after = values if is_new else reversed(values)
    old_at, new_at = ((), (at,)) if is_new else ((at,), ())
    return Edit(EditKind.CHANGED, cut(at), "", before, after, old_at, new_at)


class _Index:
    """The edits by their addresses on one side."""

    def __init__(self, edits: Edits, *, is_new: bool):
        self._edits = edits.kept
        self._is_new = is_new
        self._again = edits.again_new if is_new else edits.again_old
        self._exact: dict[str, list[int]] = {}
        self._sorted: list[str] = []
        for number in range(len(edits.kept)):
            self.add(number)

    def add(self, number: int) -> None:
        """Add an edit, unless no finding can be about it."""
        edit = self._edits[number]
        if edit.kind in DOC_LIKE or edit.kind is EditKind.ALIASES_CHANGED:
            return
        for at in edit.new_at if self._is_new else edit.old_at:
            self._exact.setdefault(at, []).append(number)
            self._sorted = []

    def added(self, edit: Edit) -> int:
        """Add an edit to all of them; return its number."""
        self._edits.append(edit)
        self.add(len(self._edits) - 1)
        return len(self._edits) - 1

    def about(self, finding: Incompatibility) -> Sequence[int]:
        """Return the edits that a finding is about; none if it fits none."""
        if finding.kind in _GAVE_UP:
            return ()
        form = _of(finding.format)
        # Leave out what cannot break this direction, if something else can: new data lacks what was removed.
        harmless = (_READERS if finding.direction is Direction.BACKWARD else _WRITERS).harmless
        return self.of(form.addresses(finding), form.preferred.get(finding.kind, frozenset()), harmless)

    def of(
        self, addresses: Sequence[str], preferred: frozenset[EditKind], harmless: frozenset[EditKind]
    ) -> Sequence[int]:
        """Return the edits at the first address that has some, else below it, else those that cover it."""
        for at in addresses:
            for place in self._places(at):
                if numbers := self._exact.get(place):
                    best = [number for number in numbers if self._edits[number].kind in preferred] or numbers
                    return [number for number in best if self._edits[number].kind not in harmless] or best
        for at in addresses:
            for place in self._places(at):
                if below := self._below(place):
                    return below
        return next((covering for at in addresses if (covering := self._covering(at))), ())

    def hidden_by(self, number: int) -> Iterator[int]:
        """Yield the edits at the place of one that has findings, and below it if the checker stops there."""
        edit = self._edits[number]
        for at in edit.new_at if self._is_new else edit.old_at:
            yield from self._exact.get(at, ())
            if edit.kind in _STOPPING:
                yield from self._all_below(at)

    def _places(self, at: str) -> Iterable[str]:
        """Yield an address, and the same place at the first use of each repeated type above it."""
        yield at
        for _ in range(_MOST_JUMPS):
            above = next((address for address in (at, *_above(at)) if address in self._again), None)
            if above is None:
                return
            at = (self._again[above] + at[len(above) :]).removeprefix(".")
            yield at

    def _below(self, at: str) -> Sequence[int]:
        return list(islice(self._all_below(at), _MOST_BELOW))

    def _all_below(self, at: str) -> Iterator[int]:
        if not self._sorted:
            self._sorted = sorted(self._exact)
        for number in range(bisect_right(self._sorted, at), len(self._sorted)):
            address = self._sorted[number]
            if not address.startswith(at):
                return
            if not at or address[len(at)] in _STEPS:
                yield from self._exact[address]

    def _covering(self, at: str) -> Sequence[int]:
        for above in _above(at):
            numbers = [number for number in self._exact.get(above, ()) if self._edits[number].kind in _WHOLE]
            if numbers:
                return numbers
        return ()


def _above(at: str) -> Iterable[str]:
    """Yield the addresses above an address, nearest first."""
    for end in range(len(at) - 1, 0, -1):
        if at[end] in _STEPS:
            yield at[:end]
    if at:
        yield ""


class _Judged:
    """The findings and outcomes of one direction, by the number of the edit."""

    def __init__(self, edits: Edits, side: _Side, findings: Sequence[Incompatibility], meaning: _Findings) -> None:
        self.edits, self.side, self.findings, self.meaning = edits, side, findings, meaning
        self.refused: dict[int, list[Incompatibility]] = {}
        self.outcomes: dict[int, list[Outcome]] = {}
        self.is_clear = True  # whether no outcome breaks or is not judged
        self.is_whole = True
        self.unjudged: frozenset[int] = frozenset()

    def effect(self, number: int) -> Effect:
        """Return what an edit means in this direction."""
        edit = self.edits.kept[number]
        findings, outcomes = self.refused.get(number, ()), self.outcomes.get(number, ())
        verdict = self._verdict(edit, number, outcomes, is_refused=bool(findings))
        sentences = dict.fromkeys(explain(finding) for finding in findings[:_MOST_SENTENCES])
        silent_causes = {Cause.HARMLESS, Cause.UNDECIDED} if findings else {Cause.HARMLESS}
        outcomes = [outcome for outcome in outcomes if outcome.cause not in silent_causes]
        sentences |= dict.fromkeys(
            outcome.words(is_new=self.side is _READERS) for outcome in outcomes[: _MOST_SENTENCES - len(sentences)]
        )
        more = len(findings) + len(outcomes) - _MOST_SENTENCES
        words = " ".join(map(cut, sentences)) + f" And {more} more." * (more > 0)
        if findings and verdict is Verdict.SAFE:
            words = f"{words} {_HARMLESS}"
        if findings and self.meaning is _Findings.OPINION and verdict is Verdict.BREAKS:
            is_shown = any(outcome.verdict is Verdict.BREAKS for outcome in outcomes)
            words = words if is_shown else f"{words} {_OPINION}"
        return Effect(verdict, bool(findings), words or self._plain(edit, verdict), tuple(outcomes[:_MOST_SENTENCES]))

    def _verdict(self, edit: Edit, number: int, outcomes: Sequence[Outcome], *, is_refused: bool) -> Verdict:
        if is_refused and self.meaning is _Findings.BREAK:
            return Verdict.BREAKS
        judged = worst([outcome.verdict for outcome in outcomes])
        if self.meaning is _Findings.OPINION:
            is_decided = self.is_clear or (outcomes and judged is not Verdict.UNKNOWN)
            return Verdict.BREAKS if is_refused and not is_decided else judged
        if outcomes:
            return judged
        is_unknown = (number in self.unjudged or not self.is_whole) and edit.kind not in _DOC_WORDS
        return Verdict.UNKNOWN if is_unknown else Verdict.SAFE

    def _plain(self, edit: Edit, verdict: Verdict) -> str:
        if verdict is Verdict.UNKNOWN:
            return _UNJUDGED
        return _DOC_WORDS.get(edit.kind) or self.side.by_kind.get(edit.kind, self.side.fine)


def _unjudged(index: _Index, judged: _Judged, limits: Limits) -> frozenset[int]:
    """Return the edits of which the checker has said nothing, because it stopped before or above them."""
    edits = judged.edits.kept
    hidden: set[int] = set()
    for number in judged.refused if judged.meaning is _Findings.BREAK else ():
        limits.look_at_clock()
        hidden.update(index.hidden_by(number))
    return frozenset(number for number in hidden if edits[number].kind not in judged.side.harmless)
