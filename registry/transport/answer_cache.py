"""The cache of whole answers: hot reads whose answer changes only when something is deleted.

A schema by id, or by subject and explicit version, stays the same until a deletion. The route of such an answer
declares itself `cacheable` and calls `keep_answer` for each answer that may be kept; any deletion empties the cache.
Large answers are kept compressed as well.
"""

from collections.abc import Callable

from fastapi import Request

from strata.registry.cache import Cache
from strata.registry.transport.asgi import Scope

__all__ = ["AnswerCache", "Key", "is_marked", "keep_answer"]

Key = tuple[bytes, bytes]
"""The raw path and the query string of a GET request."""

_KEEP = "strata.keep"
_MOST_BYTES = 64 << 20
_BYTES_AROUND = 600  # memory per answer in addition to its bytes


def keep_answer(request: Request) -> None:
    """Mark the answer of a request for the cache, which keeps it until something is deleted."""
    request.scope[_KEEP] = True


def is_marked(scope: Scope) -> bool:
    """Return whether `keep_answer` was called for a request."""
    return _KEEP in scope


class AnswerCache:
    """Answers by request, each as plain bytes and, if it is large, compressed.

    Args:
        removals: returns a number that changes when the cached answers become invalid.
        processes: the number of processes that share the memory for answers.
    """

    def __init__(self, removals: Callable[[], int], *, processes: int = 1) -> None:
        self.removals = removals
        self._answers: Cache[Key, tuple[bytes, bytes | None]] = Cache(_MOST_BYTES // processes)
        self._valid_at = 0

    def get(self, key: Key) -> tuple[bytes, bytes | None] | None:
        """Return an answer as plain and as compressed bytes; None on a cache miss."""
        removals = self.removals()
        if removals != self._valid_at:
            self._answers.clear()
            self._valid_at = removals
        return self._answers.get(key)

    def put(self, key: Key, body: bytes, compressed: bytes | None, *, removals: int) -> None:
        """Keep an answer, unless it may already be invalid.

        Args:
            key: the request.
            body: the answer.
            compressed: the answer as gzip; None if it is too small.
            removals: the number of removals before the request was handled.
        """
        if removals == self.removals():
            self.get(key)  # empties the cache if its answers are older
            size = sum(len(part or b"") for part in (*key, body, compressed)) + _BYTES_AROUND
            self._answers.put(key, (body, compressed), size)
