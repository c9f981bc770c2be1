"""Waiting for something that other processes or threads do."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["until"]

_T = TypeVar("_T")
_WAIT_S = 90.0  # on a machine that is busy with other tests
_POLL_S = 0.02


def until(condition: Callable[[], _T], *not_yet: type[BaseException]) -> _T:
    """Call a function until it returns something true.

    Args:
        condition: the function.
        not_yet: exceptions of the function that mean that it should be called again.

    Returns:
        What it returned last.

    Raises:
        AssertionError: it did not return something true within 90 s.
    """
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            if found := condition():
                return found
            last: object = found
        except not_yet as error:
            last = error
        assert time.monotonic() < deadline, f"still {last!r} after {_WAIT_S:.0f} s"
        time.sleep(_POLL_S)
