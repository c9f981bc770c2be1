"""One exporter as one node knows it: what the destination holds, and whose turn it is.

Rules of this file: no I/O. Times are seconds on the monotonic clock.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from strata.registry.features.exporters.choice import Choice, Place
from strata.registry.features.exporters.plan import Held, held_after
from strata.registry.transfer.rest import Connection
from strata.storage.records import ExporterValue, ExportValue, SchemaValue
from strata.storage.state import State

__all__ = ["Job"]

_PATIENCE_S = 20.0
"""How long the owner of an exporter may be silent while something is left to copy; longer than one request takes."""
_WHILE_FAILING = 15
"""How many times as long the others wait for an owner whose destination fails."""
_SLOWEST_S = 30.0


@dataclass(slots=True)
class Job:
    """An exporter while it is not paused.

    Attributes:
        name: its name.
        exporter: what it is.
        choice: what it copies.
        held: what the destination holds; None if that is not known.
        seen: the State with which the destination was compared last.
        progress: its progress when last seen.
        progress_at: since when the progress is that.
        failures: how many attempts in a row have failed.
        due: when to look again.
        stop: ends a copy that is under way.
        connection: the connection to the destination, made for the first copy: it keeps an access token.
    """

    name: str
    exporter: ExporterValue
    choice: Choice
    held: dict[Place, Held] | None = None
    seen: State | None = None
    progress: ExportValue | None = None
    progress_at: float = 0.0
    failures: int = 0
    due: float = 0.0
    stop: threading.Event = field(default_factory=threading.Event)
    connection: Connection | None = None

    def note(self, progress: ExportValue, now: float) -> None:
        """Note the progress that the log shows; progress of another hand means that the destination has changed."""
        if progress != self.progress:
            self.progress, self.progress_at = progress, now
            self.forget()

    def written(self, progress: ExportValue, now: float) -> None:
        """Note the progress that this node has written."""
        self.progress, self.progress_at = progress, now

    def copied(self, state: State, wanted: Mapping[Place, SchemaValue]) -> None:
        """Note that the destination holds everything that is wanted in a State."""
        self.held, self.seen = held_after(wanted), state

    def forget(self) -> None:
        """Forget what the destination holds, because something else may have changed it."""
        self.held = self.seen = None

    def begin_again(self) -> None:
        """Forget a copy that was stopped; its thread may go on to its next request."""
        self.stop.set()
        self.stop = threading.Event()
        self.forget()

    def is_settled(self, state: State) -> bool:
        """Return whether nothing in a State has changed since the destination was compared with it."""
        seen = self.seen
        if seen is None:
            return False
        if seen.changed == state.changed:
            return True
        same = seen.subjects is state.subjects or seen.subjects == state.subjects
        if same:
            self.seen = state
        return same

    def is_mine(self, me: str, now: float) -> bool:
        """Return whether this node may copy: it owns the exporter, or no node does, or the owner has been silent."""
        progress = self.progress
        if progress is None or progress.owner in ("", me):
            return True
        patience_s = _PATIENCE_S * (_WHILE_FAILING if progress.trace else 1)
        return now - self.progress_at > patience_s

    def fail(self, now: float, every_s: float) -> None:
        """Note a failed attempt, after which the destination may hold anything."""
        self.failures += 1
        self.forget()
        self.due = now + min(_SLOWEST_S, every_s * 2 ** min(self.failures, 10))
