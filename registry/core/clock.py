"""The computing time of one request, shared by all threads and attempts that work on it.

A small write is decided once, in its turn, if that takes no more than a moment.

Any other write is first decided in a work thread, before its turn, which fills the caches (`parsing.py`). If the State
is still the same when the turn comes, that decision stands. Else the turn, during which all other writes wait, has only
the remaining time, and so has every attempt after a lost race. So no request delays the others longer than one request
may compute.
"""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from strata.compat.limits import Limits
from strata.registry.core.decide.decision import Decision
from strata.registry.core.errors import RegistryError, TooExpensive
from strata.storage.state import State

__all__ = ["Clock", "TimedDecide"]

_T = TypeVar("_T")
TimedDecide = Callable[[State, Limits], Decision[_T]]
"""A decision within limits whose clock is running."""


class Clock(Generic[_T]):
    """A runner of one request's decision, as often as needed within the limits' total seconds.

    Args:
        decide: the decision.
        limits: the limits of the request, with its seconds of thread time.
    """

    def __init__(self, decide: TimedDecide[_T], limits: Limits) -> None:
        self._decide, self._limits = decide, limits
        self._left = limits.seconds
        self._tried: tuple[State, Decision[_T] | RegistryError] | None = None

    def decide(self, state: State) -> Decision[_T]:
        """Decide within the remaining time, or return the outcome of the dry run on the same State.

        Raises:
            RegistryError: any error of the decision; `TooExpensive` if the time is used up.
        """
        if self._tried is None or self._tried[0] is not state:
            return self._timed(state)
        outcome = self._tried[1]
        if isinstance(outcome, RegistryError):
            raise outcome
        return outcome

    def decide_briefly(self, state: State) -> Decision[_T]:
        """Decide within a moment, so that a turn without a dry run delays no other write.

        Raises:
            RegistryError: any error of the decision.
            NotAtOnce: if this takes longer.
        """
        return self._decide(state, self._limits.briefly())

    def try_out(self, state: State) -> None:
        """Fill the caches by a dry run; a rejection does not count yet, since the State may change before the turn.

        Raises:
            TooExpensive: if the time is used up, so that the request must not get a turn.
        """
        try:
            self._tried = state, self._timed(state)
        except TooExpensive:
            raise
        except RegistryError as error:
            self._tried = state, error

    def _timed(self, state: State) -> Decision[_T]:
        # Thread time, so the remaining time follows the request from one thread to the next.
        limits = self._limits.ending_in(max(self._left, 0.0))
        try:
            return self._decide(state, limits)
        finally:
            self._left = limits.ends - time.thread_time()
