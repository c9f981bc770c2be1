"""A cache bounded by the size of what it holds, not only by how many things that are.

Schemas and answers come in any size up to the largest request body: a thousand of them are a megabyte, or a gigabyte.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Cache"]

_KeyT = TypeVar("_KeyT", bound=Hashable)
_T = TypeVar("_T")


class Cache(Generic[_KeyT, _T]):
    """Keeps what was used last; whoever puts something in says how many bytes it takes. For several threads."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[_KeyT, tuple[_T, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.size = 0

    def get(self, key: _KeyT) -> _T | None:
        """Return what is kept under a key."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: _KeyT, value: _T, size: int) -> None:
        """Keep a value; what is larger than the whole cache is not kept."""
        if size > self._most:
            return
        with self._lock:
            self._drop(key)
            self._kept[key] = value, size
            self.size += size
            while self.size > self._most:
                self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()
            self.size = 0

    def _drop(self, key: _KeyT) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self.size -= found[1]
