"""Early ends of a run: by the user, or by the time limit."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final, NoReturn

__all__ = ["Interrupts", "limit"]

_LIMIT_S: Final = 900
"""Far above the duration of any good run: beyond it, something hangs that no other limit catches."""


class Interrupts:
    """A handler that turns Ctrl-C and SIGTERM into KeyboardInterrupt, and repeats it if a library has swallowed it."""

    def __init__(self) -> None:
        self._seen = False

    def listen(self) -> None:
        """Handle the signals, also after a library has replaced the handlers."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._interrupt)

    def check(self) -> None:
        """Stop if there was a signal.

        Raises:
            KeyboardInterrupt: there was one.
        """
        if self._seen:
            raise KeyboardInterrupt

    def _interrupt(self, *_: object) -> NoReturn:
        self._seen = True
        raise KeyboardInterrupt


def limit(say: Callable[[str], None]) -> None:
    """End the process, with its child processes, when it takes far too long."""

    def end() -> None:
        say(f"the demo did not finish within {_LIMIT_S} s")
        os._exit(1)

    timer = threading.Timer(_LIMIT_S, end)
    timer.daemon = True
    timer.start()
