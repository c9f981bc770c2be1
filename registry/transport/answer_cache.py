"""A cache of whole answers, which are valid as long as what they were made from is in force."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from strata.registry.cache import Cache
from strata.registry.transport.asgi import Answer

__all__ = ["AnswerCache"]

_BYTES_AROUND = 1000  # memory per answer in addition to its bytes
_SHARE = 16  # an answer larger than this part of the cache would displace too many others

_KeyT = TypeVar("_KeyT", bound=Hashable)


class AnswerCache(Generic[_KeyT]):
    """Answers by request, all made from the same basis.

    A new basis invalidates all answers at once, and costs nothing: newer answers displace the invalid ones over time.

    Args:
        basis: returns the object that answers are now made from; only the very same object counts as the same.
        most_bytes: the most bytes that all answers may have together.
    """

    def __init__(self, basis: Callable[[], object], most_bytes: int) -> None:
        self.basis = basis
        self._largest = most_bytes // _SHARE
        self._answers: Cache[_KeyT, tuple[Answer, int]] = Cache(most_bytes)
        self._made_from: object = None
        self._generation = 0  # an answer keeps this number, since a State in its place would stay in memory

    def get(self, key: _KeyT) -> Answer | None:
        """Return a valid answer; None on a cache miss."""
        found = self._answers.get(key)
        return found[0] if found and found[1] == self._current() else None

    def put(self, key: _KeyT, answer: Answer, basis: object, *, key_bytes: int) -> None:
        """Keep an answer, unless it was made from another basis than the one in force.

        Args:
            key: the request.
            answer: the answer.
            basis: what the answer was made from.
            key_bytes: the size of the key.
        """
        size = len(answer[2]) + key_bytes + _BYTES_AROUND
        if basis is self.basis() and size <= self._largest:
            self._answers.put(key, (answer, self._current()), size)

    def _current(self) -> int:
        basis = self.basis()
        if basis is not self._made_from:
            self._made_from, self._generation = basis, self._generation + 1
        return self._generation
