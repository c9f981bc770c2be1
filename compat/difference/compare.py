"""The difference of two schemas: the edits, what each means for readers and writers, and the verdict at each level.

The meaning comes from the findings of the checker in both directions. Each finding is attached to the edits at its
address, else to those below it, else to an added, removed or retyped part above it. A finding that fits none of them
becomes a change itself. So a schema pair with a finding always has a change that shows it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NamedTuple

from strata.compat.check import Previous, check, explain
from strata.compat.difference import avro, json_schema, protobuf
from strata.compat.difference.edits import DOC_LIKE, Edit, EditKind, Edits, cut
from strata.compat.levels import LEVELS, Direction, Level, Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.result import Incompatibility
from strata.compat.schema import ParsedSchema, SchemaFormat

__all__ = ["Change", "Difference", "Effect", "difference"]

_MOST_SENTENCES: Final = 3
_MOST_BELOW: Final = 20  # edits to which a finding above them is attached
_STEPS: Final = "./[{"  # the characters with which a step of an address begins
_MOST_JUMPS: Final = 200  # from a repeated type to its first place, for one finding


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change means in one direction."""

    breaks: (
        bool | None
    )  # None: the checker gave up before it judged this change, or no rule covers what it does to data
    words: str


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


class _Format(NamedTuple):
    edits: Any  # (previous, new, limits) -> Edits; the schemas are of the format's own class
    addresses: Any  # Incompatibility -> the addresses of its place, best first
    preferred: Mapping[str, frozenset[EditKind]]  # the edits that a kind of finding is about


_FORMATS: Final[Mapping[SchemaFormat, _Format]] = {
    SchemaFormat.AVRO: _Format(avro.edits, avro.addresses, avro.PREFERRED),
    SchemaFormat.PROTOBUF: _Format(protobuf.edits, protobuf.addresses, {}),
    SchemaFormat.JSON: _Format(json_schema.edits, json_schema.addresses, {}),
}


class _Side(NamedTuple):
    """One direction of reading, and the words for a change without findings."""

    direction: Direction
    level: Level
    fine: str
    by_kind: Mapping[EditKind, str]
    harmless: frozenset[EditKind]  # edits that cannot be the reason of a finding, if another edit can


_UNSEEN: Final = "No rule of compatibility looks at this."
_REREAD: Final = (
    "No rule of compatibility looks at this, but the same bytes are read as other values, without an error."
)
_VALUE_ATTRIBUTES: Final = frozenset({"logicalType", "precision", "scale"})  # of Avro: how bytes become values
_DOC_WORDS: Final = dict.fromkeys(DOC_LIKE | {EditKind.ALIASES_CHANGED}, _UNSEEN) | {
    EditKind.DOC_CHANGED: "No effect on data."
}
_READERS: Final = _Side(
    Direction.BACKWARD,
    Level.BACKWARD,
    "Consumers with the new schema can read old data.",
    {
        **_DOC_WORDS,
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
        EditKind.FIELD_ADDED: "Consumers with the old schema skip this field of new data.",
        EditKind.FIELD_REMOVED: "Consumers with the old schema can read new data, which lacks this field.",
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
        policy: How strictly the checker treats differences; only JSON Schema uses it.
        limits: Bounds on work, findings and time.
        version: The number of the previous schema, for the words; without it they say "the previous version".

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    edits = _edits(previous, new, limits)
    found = [_findings(previous, new, side, policy, limits, version) for side in (_READERS, _WRITERS)]
    attached: list[list[list[Incompatibility]]] = []
    for findings, is_new in zip(found, (True, False), strict=True):
        attached.append(_attach(edits, findings, limits, is_new=is_new))
    for one in attached:  # a finding that fits no edit has added one
        one.extend([] for _ in range(len(edits.found) - len(one)))
    open_ = [
        _unjudged(edits, one, side, limits, is_whole=_is_whole(findings, limits))
        for one, side, findings in zip(attached, (_READERS, _WRITERS), found, strict=True)
    ]
    changes = tuple(
        _change(edit, [one[number] for one in attached], [number in numbers for numbers in open_])
        for number, edit in enumerate(edits.found)
    )
    fits = {side.direction: not findings for side, findings in zip((_READERS, _WRITERS), found, strict=True)}
    verdicts = {level: all(fits[direction] for direction in rule.directions) for level, rule in LEVELS.items()}
    return Difference(changes, verdicts, edits.more)


def _edits(previous: ParsedSchema, new: ParsedSchema, limits: Limits) -> Edits:
    if previous.format is new.format:
        edits: Edits = _FORMATS[new.format].edits(previous, new, limits)
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
    """Return whether the checker has judged everything."""
    return len(findings) < limits.incompatibilities and not any(finding.kind in _GAVE_UP for finding in findings)


def _attach(
    edits: Edits, findings: Iterable[Incompatibility], limits: Limits, *, is_new: bool
) -> list[list[Incompatibility]]:
    """Return the findings of one direction by the number of the edit; add an edit for a finding that fits none."""
    index = _Index(edits, is_new=is_new)
    attached: list[list[Incompatibility]] = [[] for _ in edits.found]
    for finding in findings:
        limits.look_at_clock()
        numbers = index.about(finding)
        if not numbers:
            numbers = [len(edits.found)]
            edits.found.append(_edit_of(finding, is_new=is_new))
            attached.append([])
            index.add(numbers[0])
        for number in numbers:
            attached[number].append(finding)
    return attached


def _edit_of(finding: Incompatibility, *, is_new: bool) -> Edit:
    """Return a change that only its finding describes."""
    at = _FORMATS[finding.format].addresses(finding)[0]
    values = [None if value is None else cut(str(value)) for value in (finding.writer_value, finding.reader_value)]
    before, after = values if is_new else reversed(values)
    old_at, new_at = ((), (at,)) if is_new else ((at,), ())
    return Edit(EditKind.CHANGED, cut(at), "", before, after, old_at, new_at)


class _Index:
    """The edits by their addresses on one side."""

    def __init__(self, edits: Edits, *, is_new: bool):
        self._edits = edits.found
        self._is_new = is_new
        self._again = edits.again_new if is_new else edits.again_old
        self._exact: dict[str, list[int]] = {}
        self._sorted: list[str] = []
        for number in range(len(edits.found)):
            self.add(number)

    def add(self, number: int) -> None:
        """Add an edit, unless no finding can be about it."""
        edit = self._edits[number]
        if edit.kind in DOC_LIKE or edit.kind is EditKind.ALIASES_CHANGED:
            return
        for at in edit.new_at if self._is_new else edit.old_at:
            self._exact.setdefault(at, []).append(number)
            self._sorted = []

    def about(self, finding: Incompatibility) -> Sequence[int]:
        """Return the edits that a finding is about; none if it fits none."""
        if finding.kind in _GAVE_UP:
            return ()
        form = _FORMATS[finding.format]
        for at in form.addresses(finding):
            for place in self._places(at):
                if numbers := self._exact.get(place):
                    preferred = form.preferred.get(finding.kind)
                    best = [number for number in numbers if preferred and self._edits[number].kind in preferred]
                    return self._of_direction(best or numbers, finding)
        for at in form.addresses(finding):
            for place in self._places(at):
                if below := self._below(place):
                    return below
        return next((found for at in form.addresses(finding) if (found := self._covering(at))), ())

    def hidden_by(self, number: int) -> Iterator[int]:
        """Yield the edits at the place of one that has findings, and below it if the checker stops there."""
        edit = self._edits[number]
        for at in edit.new_at if self._is_new else edit.old_at:
            yield from self._exact.get(at, ())
            if edit.kind in _STOPPING:
                yield from self._all_below(at)

    def _of_direction(self, numbers: Sequence[int], finding: Incompatibility) -> Sequence[int]:
        """Leave out what cannot break this direction, if something else can: new data lacks what was removed."""
        harmless = (_READERS if finding.direction is Direction.BACKWARD else _WRITERS).harmless
        return [number for number in numbers if self._edits[number].kind not in harmless] or numbers

    def _places(self, at: str) -> Iterable[str]:
        """Yield an address, and the same place at the first use of each repeated type above it."""
        yield at
        for _ in range(_MOST_JUMPS):
            above = next((one for one in (at, *_above(at)) if one in self._again), None)
            if above is None:
                return
            at = (self._again[above] + at[len(above) :]).removeprefix(".")
            yield at

    def _below(self, at: str) -> Sequence[int]:
        """Return the first edits below an address."""
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
            numbers = [one for one in self._exact.get(above, ()) if self._edits[one].kind in _WHOLE]
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


def _unjudged(
    edits: Edits, attached: Sequence[Sequence[Incompatibility]], side: _Side, limits: Limits, *, is_whole: bool
) -> frozenset[int]:
    """Return the edits of which the checker has said nothing, because it stopped before or above them."""
    numbers = range(len(edits.found))
    if not is_whole:
        return frozenset(numbers)
    index = _Index(edits, is_new=side is _READERS)
    found: set[int] = set()
    for number in numbers:
        limits.look_at_clock()
        if attached[number]:
            found.update(index.hidden_by(number))
    return frozenset(number for number in found if edits.found[number].kind not in side.harmless)


def _change(edit: Edit, findings: Sequence[Sequence[Incompatibility]], unjudged: Sequence[bool]) -> Change:
    effects = [
        _effect(edit, one, side, is_unjudged=unknown)
        for one, side, unknown in zip(findings, (_READERS, _WRITERS), unjudged, strict=True)
    ]
    return Change(edit.kind, edit.path, edit.name, edit.before, edit.after, *effects)


def _effect(edit: Edit, findings: Sequence[Incompatibility], side: _Side, *, is_unjudged: bool) -> Effect:
    if findings:
        sentences = dict.fromkeys(explain(finding) for finding in findings[:_MOST_SENTENCES])
        more = len(findings) - _MOST_SENTENCES
        return Effect(breaks=True, words=" ".join(map(cut, sentences)) + f" And {more} more." * (more > 0))
    if edit.kind is EditKind.ATTRIBUTE_CHANGED and edit.name in _VALUE_ATTRIBUTES:
        return Effect(breaks=None, words=_REREAD)
    if edit.kind in _DOC_WORDS:
        return Effect(breaks=False, words=_DOC_WORDS[edit.kind])
    if is_unjudged:
        return Effect(breaks=None, words=_UNJUDGED)
    return Effect(breaks=False, words=side.by_kind.get(edit.kind, side.fine))
