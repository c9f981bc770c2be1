"""One call after the other, for as long as the log is open."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strata.storage.log import LogError

__all__ = ["CallLock"]


class CallLock:
    """A lock that a call holds in its turn, until the log is closed.

    Args:
        topic: The topic's name, for messages.
    """

    def __init__(self, topic: str) -> None:
        self._topic, self._closed = topic, False
        self._lock = threading.Lock()

    def check_open(self) -> None:
        """Check that the log is open.

        Raises:
            LogError: It is closed.
        """
        if self._closed:
            raise LogError(f"topic {self._topic}: the log is closed")

    @contextmanager
    def taken(self, timeout_s: float) -> Iterator[None]:
        """Wait for the turn of a call, and keep it until the call has ended.

        Args:
            timeout_s: Time limit for the wait, in seconds.

        Raises:
            LogError: Other calls took longer, or the log is closed.
        """
        if not self._lock.acquire(timeout=timeout_s):
            raise LogError(
                f"topic {self._topic}: other calls kept this one waiting for {timeout_s:g} s; it did nothing"
            )
        try:
            self.check_open()
            yield
        finally:
            self._lock.release()

    def close(self, last: Callable[[], None]) -> None:
        """Wait for the call under way, and run the last one; a second call does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                last()
