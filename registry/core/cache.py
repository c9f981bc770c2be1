"""Caches bounded by the size of their content instead of by the number of their entries.

Schemas and answers are as large as the largest request body allows: a thousand of them may take a megabyte or a
gigabyte.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["BasisCache", "Cache", "Repeats"]

_SHARE = 16  # a value larger than this part of a cache would displace too many others

_KeyT = TypeVar("_KeyT", bound=Hashable)
_T = TypeVar("_T")


class Cache(Generic[_KeyT, _T]):
    """A thread-safe LRU cache; the caller states the size of each value.

    Args:
        most_bytes: the most bytes that all values may have together.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[_KeyT, tuple[_T, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0
        self.hits = self.misses = self.evictions = 0

    @property
    def entries(self) -> int:
        """The number of entries."""
        return len(self._kept)

    def get(self, key: _KeyT) -> _T | None:
        """Return the value of a key; None on a cache miss."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                self.misses += 1
                return None
            self.hits += 1
            self._kept.move_to_end(key)
            return kept[0]

    def peek(self, key: _KeyT) -> _T | None:
        """Return the value of a key in a fraction of the time of `get`; this does not count as a use of the value."""
        kept = self._kept.get(key)
        return kept and kept[0]

    def put(self, key: _KeyT, value: _T, size: int) -> None:
        """Store a value of `size` bytes, unless it is larger than the whole cache."""
        if size > self._most:
            return
        with self._lock:
            if key in self._kept:
                self._drop(key)
            self._kept[key] = value, size
            self.size += size
            while self.size > self._most:
                self.evictions += 1
                self._drop(next(iter(self._kept)))

    def share(self, processes: int) -> None:
        """Bound this cache to its share, because several processes have one each; call it once, before use."""
        self._most //= processes

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self._kept.clear()
            self.size = 0

    def _drop(self, key: _KeyT) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.size -= kept[1]


class BasisCache(Generic[_KeyT, _T]):
    """Values that are all made from the same basis, and valid as long as it is in force.

    A new basis invalidates all values at once, and costs nothing: newer values displace the invalid ones over time.

    Args:
        basis: returns the object that values are now made from; only the very same object counts as the same.
        most_bytes: the most bytes that all values may have together.
    """

    def __init__(self, basis: Callable[[], object], most_bytes: int) -> None:
        self.basis = basis
        self.hits = self.misses = 0
        self._largest = most_bytes // _SHARE
        self._values: Cache[_KeyT, tuple[_T, int]] = Cache(most_bytes)
        self._made_from: object = None
        self._generation = 0  # a value keeps this number, since a State in its place would stay in memory

    @property
    def size(self) -> int:
        """The bytes of all values, invalid ones included."""
        return self._values.size

    @property
    def entries(self) -> int:
        """The number of values, invalid ones included."""
        return self._values.entries

    @property
    def evictions(self) -> int:
        """How many values gave way to others."""
        return self._values.evictions

    def peek(self, key: _KeyT) -> _T | None:
        """Return a valid value, or None; this counts as neither a hit nor a miss, nor as a use of the value."""
        kept = self._values.peek(key)
        return kept[0] if kept is not None and kept[1] == self._current() else None

    def holds(self, key: _KeyT) -> bool:
        """Return whether there is a valid value; if not, this is a cache miss."""
        kept = self._values.get(key)
        is_valid = kept is not None and kept[1] == self._current()
        self.misses += not is_valid
        return is_valid

    def find(self, key: _KeyT) -> _T | None:
        """Return a valid value; None on a cache miss."""
        kept = self._values.get(key)
        # `_current` without the call, since hot reads come this way.
        if kept is None or kept[1] != (self._generation if self.basis() is self._made_from else self._current()):
            self.misses += 1
            return None
        self.hits += 1
        return kept[0]

    def put(self, key: _KeyT, value: _T, basis: object, size: int) -> None:
        """Keep a value of `size` bytes, unless it was made from another basis than the one in force."""
        if basis is self.basis() and size <= self._largest:
            self._values.put(key, (value, self._current()), size)

    def _current(self) -> int:
        basis = self.basis()
        if basis is not self._made_from:
            self._made_from, self._generation = basis, self._generation + 1
        return self._generation


class Repeats:
    """Remembers the newest numbers that it was asked about, such as the hashes of requests. Not thread-safe.

    Args:
        most: how many numbers it remembers at least; twice as many at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._newest: set[int] = set()
        self._older: set[int] = set()

    def repeat(self, number: int) -> bool:
        """Return whether a number was asked about before, and remember it."""
        if number in self._newest:
            return True
        if len(self._newest) >= self._most:
            self._newest, self._older = set(), self._newest
        self._newest.add(number)
        return number in self._older
