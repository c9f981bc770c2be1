"""A bounded cache in which however many threads miss a key at once, one of them loads it.

Rules of this file: failures are handed to all who waited and are never kept; what was loaded longest ago goes first,
so that a hit takes no lock.
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
    """At most `capacity` values by key, each loaded by one caller for all who ask meanwhile."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._lock = Lock()
        self._process = os.getpid()
        self._values: dict[K, V] = {}
        self._loading: dict[K, Future[V]] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K, load: Callable[[], V], *, is_fresh: Callable[[V], bool] | None = None) -> V:
        """The value of a key, loaded by this call or by one already under way; a stale one is loaded again."""
        try:
            value = self._values[key]
        except KeyError:
            return self._shared_load(key, load, is_fresh)
        if is_fresh is None or is_fresh(value):
            return value
        return self._shared_load(key, load, is_fresh)

    def peek(self, key: K) -> V | None:
        """The value of a key if it is there, without loading."""
        return self._values.get(key)

    def _shared_load(self, key: K, load: Callable[[], V], is_fresh: Callable[[V], bool] | None) -> V:
        if self._process != os.getpid():  # whoever held the lock or was loading when this process forked is not in it
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
        """Forget every key that matches, and keep nothing of the loads under way."""
        with self._lock:
            for key in [key for key in self._values if matches(key)]:
                del self._values[key]
            for key in [key for key in self._loading if matches(key)]:
                del self._loading[key]

    def _load(self, key: K, load: Callable[[], V], future: Future[V]) -> None:
        try:
            value = load()
        except BaseException as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
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
