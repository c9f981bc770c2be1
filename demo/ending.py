"""How a run ends before its end: by a person, or by the clock."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final, NoReturn

__all__ = ["Interrupts", "limit"]

_LIMIT_S: Final = 900
"""Far above any run that goes well: beyond it something hangs where no other bound holds."""


class Interrupts:
    """Ctrl-C and SIGTERM as KeyboardInterrupt, once more where a library has swallowed it."""

    def __init__(self) -> None:
        self._seen = False

    def listen(self) -> None:
        """Take the signals, also back from a library that took them."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._interrupt)

    def check(self) -> None:
        """Stop here when there was one.

        Raises:
            KeyboardInterrupt: there was.
        """
        if self._seen:
            raise KeyboardInterrupt

    def _interrupt(self, *_: object) -> NoReturn:
        self._seen = True
        raise KeyboardInterrupt


def limit(say: Callable[[str], None]) -> None:
    """End the process when it takes far too long; what it started ends with it."""

    def end() -> None:
        say(f"The run did not end within {_LIMIT_S} s")
        os._exit(1)

    timer = threading.Timer(_LIMIT_S, end)
    timer.daemon = True
    timer.start()
