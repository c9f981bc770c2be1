"""The subjects in order, as a persistent index that pages of lists are read from.

The names are kept sorted, in chunks of a few hundred, with the number of versions of each. A chunk knows how many
entries it adds to each kind of list, so a page skips chunks as a whole and looks only at the names that it shows. A
change copies the chunks that it touches.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from strata.storage.records import Subject

__all__ = ["Listed", "Listing", "VersionCount", "beyond"]

_MOST = 256
_FEW = 8  # changes of a chunk, as of a group of writes, that cost less one by one than making the chunk again
_NOTHING = (0, 0, 0, 0, 0)


class Listed(IntEnum):
    """What a list is made of, which decides how many entries a subject adds to it."""

    LIVE_SUBJECTS = 0
    SUBJECTS = 1
    DELETED_SUBJECTS = 2
    LIVE_VERSIONS = 3
    VERSIONS = 4


class VersionCount(NamedTuple):
    """How many versions of a subject are not soft-deleted, and how many there are at all."""

    live: int
    every: int


class _Chunk(NamedTuple):
    """Names in order, their counts, and the number of entries in each kind of list."""

    names: tuple[Subject, ...]
    counts: tuple[VersionCount, ...]
    entries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Listing:
    """The subjects that have a version, soft-deleted or not, in order; immutable."""

    _chunks: tuple[_Chunk, ...] = ()

    def after(self, changes: Mapping[Subject, VersionCount]) -> "Listing":
        """Return the listing with the new counts of some subjects; without versions, a subject is not listed."""
        if not changes:
            return self
        touched: dict[int, list[Subject]] = {}
        for name in changes:
            touched.setdefault(self._place(name), []).append(name)
        chunks = list(self._chunks)
        for index in sorted(touched, reverse=True):
            before, changed = chunks[index : index + 1], {name: changes[name] for name in touched[index]}
            if before and len(changed) <= _FEW and len(before[0].names) + len(changed) <= _MOST:
                chunks[index : index + 1] = _with(before[0], changed)
            else:
                chunks[index : index + 1] = _merged(before, changed)
        return Listing(tuple(chunks))

    def entries(
        self,
        listed: Listed,
        bounds: Iterable[tuple[str, str | None]],
        skip: int = 0,
        keep: Callable[[Subject], bool] | None = None,
    ) -> Iterator[tuple[Subject, int]]:
        """Yield the subjects that add to a list, in order, after some of its entries.

        Args:
            listed: The kind of list.
            bounds: The lowest name of each range and the name before which it ends, or None; the ranges are in order.
            skip: How many entries of the list to skip.
            keep: Returns whether a subject is in the list at all; it is asked about each one, those skipped included.

        Yields:
            A subject and how many of its entries to skip, which is 0 from the second one on.
        """
        for low, high in bounds:
            for chunk, start, stop in self._within(low, high):
                if keep is None and stop - start == len(chunk.names) and chunk.entries[listed] <= skip:
                    skip -= chunk.entries[listed]
                    continue
                for name, count in zip(chunk.names[start:stop], chunk.counts[start:stop], strict=True):
                    added = _added(count)[listed] if keep is None or keep(name) else 0
                    if skip < added:
                        yield name, skip
                        skip = 0
                    else:
                        skip -= added

    def chunks(self) -> Iterator[tuple[Subject, ...]]:
        """Yield the names in tuples that this listing shares with those made from it, as far as they do not differ."""
        return (chunk.names for chunk in self._chunks)

    def count(self, listed: Listed, bounds: Iterable[tuple[str, str | None]] = (("", None),)) -> int:
        """Return the number of entries of a list.

        Args:
            listed: The kind of list.
            bounds: As in `entries`; by default all names.
        """
        total = 0
        for low, high in bounds:
            for chunk, start, stop in self._within(low, high):
                is_whole = stop - start == len(chunk.names)
                counts = chunk.counts[start:stop]
                total += chunk.entries[listed] if is_whole else sum(_added(count)[listed] for count in counts)
        return total

    def _place(self, name: str) -> int:
        """Return the index of the chunk in which a name is, or belongs."""
        return max(bisect_right(self._chunks, name, key=_first) - 1, 0)

    def _within(self, low: str, high: str | None) -> Iterator[tuple[_Chunk, int, int]]:
        for chunk in self._chunks[self._place(low) :]:
            if high is not None and chunk.names[0] >= high:
                return
            start = bisect_left(chunk.names, low)
            stop = len(chunk.names) if high is None else bisect_left(chunk.names, high)
            yield chunk, start, stop


def beyond(prefix: str) -> str | None:
    """Return the lowest text above all texts with a prefix, or None if there is none."""
    stem = prefix.rstrip("\U0010ffff")
    return stem[:-1] + chr(ord(stem[-1]) + 1) if stem else None


def _first(chunk: _Chunk) -> str:
    return chunk.names[0]


def _added(count: VersionCount) -> tuple[int, ...]:
    """Return how many entries a subject adds to each kind of list, in the order of `Listed`."""
    live, every = count
    return (1, 1, 0, live, every) if live else (0, 1, 1, 0, every)


def _with(chunk: _Chunk, changes: Mapping[Subject, VersionCount]) -> list[_Chunk]:
    """Return the chunks that take the place of a chunk in which a few subjects have other counts."""
    names, counts, entries = [*chunk.names], [*chunk.counts], chunk.entries
    for name, count in changes.items():
        at = bisect_left(names, name)
        known = at < len(names) and names[at] == name
        before = _added(counts[at]) if known else _NOTHING
        added = _added(count) if count.every else _NOTHING
        names[at : at + known] = [name] if count.every else []
        counts[at : at + known] = [count] if count.every else []
        entries = tuple([old - lost + new for old, lost, new in zip(entries, before, added, strict=True)])
    return [_Chunk(tuple(names), tuple(counts), entries)] if names else []


def _merged(before: Sequence[_Chunk], changes: Mapping[Subject, VersionCount]) -> list[_Chunk]:
    """Return the chunks that take the place of one chunk, or of none."""
    counts: dict[Subject, VersionCount] = {}
    for chunk in before:
        counts |= zip(chunk.names, chunk.counts, strict=True)
    counts |= changes
    names = sorted(name for name, count in counts.items() if count.every)
    size = _MOST if len(names) <= _MOST else _MOST // 2
    return [_chunk(names[start : start + size], counts) for start in range(0, len(names), size)]


def _chunk(names: Sequence[Subject], counts: Mapping[Subject, VersionCount]) -> _Chunk:
    held = tuple([counts[name] for name in names])
    live, every = ([*each] for each in zip(*held, strict=True))
    deleted = live.count(0)
    return _Chunk(tuple(names), held, (len(names) - deleted, len(names), deleted, sum(live), sum(every)))
