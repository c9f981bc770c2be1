"""A cache bounded by the size of its content instead of by the number of its entries.

Schemas and answers are as large as the largest request body allows: a thousand of them may take a megabyte or a
gigabyte.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Cache"]

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
            found = self._kept.get(key)
            if found is None:
                self.misses += 1
                return None
            self.hits += 1
            self._kept.move_to_end(key)
            return found[0]

    def peek(self, key: _KeyT) -> _T | None:
        """Return the value of a key in a fraction of the time of `get`; this does not count as a use of the value."""
        found = self._kept.get(key)
        return found and found[0]

    def put(self, key: _KeyT, value: _T, size: int) -> None:
        """Store a value of `size` bytes, unless it is larger than the whole cache."""
        if size > self._most:
            return
        with self._lock:
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
        found = self._kept.pop(key, None)
        if found is not None:
            self.size -= found[1]
