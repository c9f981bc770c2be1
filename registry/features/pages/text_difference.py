"""Two texts side by side, line by line: what differs, with a few lines around it. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

__all__ = ["LineRow", "line_rows"]

_MOST_LINES: Final = (
    1_000  # that differ in each text; `difflib` drops frequent lines of long texts, which bounds its work
)
_AROUND: Final = 3
_LONGEST: Final = 500


class LineRow(NamedTuple):
    """A row of two lines; None for a side without one. A gap stands for equal lines that are left out."""

    old_number: int | None = None
    old: str | None = None
    new_number: int | None = None
    new: str | None = None
    differs: bool = False
    gap: int = 0


def line_rows(old: str, new: str) -> list[LineRow] | None:
    """Return two texts side by side, or None if too many of their lines differ to be compared."""
    ours, theirs = old.splitlines(), new.splitlines()
    start = _shared(ours, theirs)
    end = _shared(ours[start:][::-1], theirs[start:][::-1])
    inner = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    if max(map(len, inner)) > _MOST_LINES:
        return None
    rows = [_same(ours, number, number) for number in range(start)]
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(None, *inner).get_opcodes():
        if tag == "equal":
            rows += (_same(ours, start + old_from + step, start + new_from + step) for step in range(old_to - old_from))
        else:
            rows += _differing(ours, theirs, (start + old_from, start + old_to), (start + new_from, start + new_to))
    rows += (_same(ours, len(ours) - left, len(theirs) - left) for left in range(end, 0, -1))
    return _folded(rows)


def _shared(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """Return how many lines at the beginning are equal."""
    pairs = zip(ours, theirs, strict=False)
    return next(
        (number for number, (our_character, their_character) in enumerate(pairs) if our_character != their_character),
        min(len(ours), len(theirs)),
    )


def _same(ours: Sequence[str], old: int, new: int) -> LineRow:
    text = ours[old][:_LONGEST]
    return LineRow(old + 1, text, new + 1, text)


def _differing(ours: Sequence[str], theirs: Sequence[str], old: tuple[int, int], new: tuple[int, int]) -> list[LineRow]:
    rows = []
    for step in range(max(old[1] - old[0], new[1] - new[0])):
        left, right = old[0] + step, new[0] + step
        ours_cell = (left + 1, ours[left][:_LONGEST]) if left < old[1] else (None, None)
        theirs_cell = (right + 1, theirs[right][:_LONGEST]) if right < new[1] else (None, None)
        rows.append(LineRow(ours_cell[0], ours_cell[1], theirs_cell[0], theirs_cell[1], differs=True))
    return rows


def _folded(rows: Sequence[LineRow]) -> list[LineRow]:
    """Replace equal lines far from any difference by gaps."""
    near: set[int] = set()
    for number, row in enumerate(rows):
        if row.differs:
            near.update(range(number - _AROUND, number + _AROUND + 1))
    kept: list[LineRow] = []
    for number, row in enumerate(rows):
        if number in near:
            kept.append(row)
        elif kept and kept[-1].gap:
            kept[-1] = LineRow(gap=kept[-1].gap + 1)
        else:
            kept.append(LineRow(gap=1))
    return kept
