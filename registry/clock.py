"""The computing time of one request: one clock for all threads and attempts that work on it.

A write is decided once in a work thread, before its turn, for what that leaves in the caches (`schemas.py`). The turn,
in which all other writes wait, goes on with the time that is left, and so does every attempt after a lost race. So no
request holds up the others for longer than one request may compute.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Generic, TypeVar

from compat.limits import Limits
from registry import errors
from registry.writer import Decision
from storage.state import State

__all__ = ["Clock", "TimedDecide"]

_T = TypeVar("_T")
TimedDecide = Callable[[State, Limits], Decision[_T]]
"""A decision that keeps to limits whose time is running."""


class Clock(Generic[_T]):
    """Runs one request's decision, as often as needed, within the seconds that the limits allow altogether."""

    def __init__(self, decide: TimedDecide[_T], limits: Limits) -> None:
        self._decide, self._limits = decide, limits
        self._left = limits.seconds

    def decide(self, state: State) -> Decision[_T]:
        """Decide with the time that is left.

        Raises:
            RegistryError: what the decision raises; `TooExpensive` when the time is over.
        """
        # The clock of a thread: what is left moves with the request from one thread to the next.
        limits = replace(self._limits, ends=time.thread_time() + max(self._left, 0.0))
        try:
            return self._decide(state, limits)
        finally:
            self._left = limits.ends - time.thread_time()

    def try_out(self, state: State) -> None:
        """Decide for nothing but what it leaves in the caches; a refusal may have changed by the request's turn.

        Raises:
            TooExpensive: the time is over: the request must not have a turn.
        """
        try:
            self.decide(state)
        except errors.TooExpensive:
            raise
        except errors.RegistryError:
            return
