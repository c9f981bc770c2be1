"""A bounded cache in which one thread loads a key for all threads that miss it at the same time.

It is our own, for reasons that `docs/decisions/0013-own-regex-check-memory-bound-and-cache.md` gives.

Rules of this file: a failed load raises in all threads that waited for it and is not cached; the oldest entry is
evicted first, so that a hit takes no lock.
"""

import os
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["SharedCache"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedCache(Generic[K, V]):
    """A cache of at most `capacity` values, in which concurrent misses of a key share one load."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._process = os.getpid()
        self._values: dict[K, V] = {}
        self.peek: Callable[[K], V | None] = self._values.get
        """Returns the cached value of a key, stale or not, without loading; None on a miss."""
        self._loading: dict[K, Future[V]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, load: Callable[[], V], *, is_fresh: Callable[[V], bool] | None = None) -> V:
        """Return the value of a key; load it on a miss, or wait for a load under way.

        Args:
            key: the key.
            load: loads the value.
            is_fresh: whether a cached value may still be used; without it every cached value may.

        Raises:
            BaseException: If `load` raises; all waiting callers get the same exception.
        """
        try:
            value = self._values[key]
        except KeyError:
            return self._shared_load(key, load, is_fresh)
        if is_fresh is None or is_fresh(value):
            return value
        return self._shared_load(key, load, is_fresh)

    def _shared_load(self, key: K, load: Callable[[], V], is_fresh: Callable[[V], bool] | None) -> V:
        if self._process != os.getpid():  # threads that held the lock or were loading did not survive the fork
            self._lock, self._loading, self._process = Lock(), {}, os.getpid()
        with self._lock:
            if key in self._values:
                value = self._values[key]
                if is_fresh is None or is_fresh(value):
                    return value
                del self._values[key]
            future = self._loading.get(key)
            leads = future is None
            if future is None:
                future = self._loading[key] = Future()
        if leads:
            self._load(key, load, future)
        return future.result()

    def discard(self, matches: Callable[[K], bool]) -> None:
        """Remove all keys that match, and do not cache loads of them that are under way."""
        with self._lock:
            for key in [key for key in self._values if matches(key)]:
                del self._values[key]
            for key in [key for key in self._loading if matches(key)]:
                del self._loading[key]

    def _load(self, key: K, load: Callable[[], V], future: Future[V]) -> None:
        try:
            value = load()
        except BaseException as error:  # noqa: BLE001 - waiting threads must get every exception
            self._finish(key, future)
            future.set_exception(error)
        else:
            self._finish(key, future, value)
            future.set_result(value)

    def _finish(self, key: K, future: Future[V], *value: V) -> None:
        with self._lock:
            if self._loading.get(key) is not future:
                return
            del self._loading[key]
            for one in value:
                self._values[key] = one
            while len(self._values) > self._capacity:
                del self._values[next(iter(self._values))]
