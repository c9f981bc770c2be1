"""The board: numbers in memory that all workers of a node share, because each inherits it from the parent.

Every cell has one writer at a time, and a cell is an aligned 8-byte number, so no reader sees half of one. A process
that dies cannot leave the board locked: there is no lock.
"""

import mmap
import secrets
import time

from strata.registry.node.buckets import Buckets
from strata.storage.lease import lease_cells

__all__ = ["Board", "Seat"]

_CELL = 8
_CONNECTIONS, _BEAT, _READY, _WRITES = range(4)
_ROW = 4
_FRESH_S = 1.0  # a worker that has not beaten for so long takes no connections now
_SILENT_S = 15.0
_STAYING = 0.5  # of the time before a shutdown: how long other nodes may still forward writes
_NUMBERS = 1 << 16  # of each worker; memory that is never touched costs nothing


class Board:
    """What the workers of a node know of each other.

    Args:
        workers: the number of workers.
    """

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self.secret = secrets.token_bytes(32)
        """A secret of the workers of this node."""
        self.buckets = Buckets()
        """What clients have sent lately."""
        self.lease = lease_cells()
        """The read lease of the node, which worker 0 writes."""
        self._cells = memoryview(mmap.mmap(-1, _CELL * (1 + _ROW * workers))).cast("d")
        self._numbers = memoryview(mmap.mmap(-1, _CELL * _NUMBERS * workers)).cast("d")

    @property
    def is_draining(self) -> bool:
        """Whether the node is about to shut down."""
        return self._cells[0] != 0

    @property
    def is_leaving(self) -> bool:
        """Whether the node will shut down so soon that other nodes should no longer forward writes to it."""
        return self.is_draining and time.monotonic() >= self._cells[0]

    def drain(self, seconds: float = 0.0) -> None:
        """Record that the node is about to shut down, in so many seconds."""
        self._cells[0] = time.monotonic() + seconds * _STAYING

    def vacate(self, worker: int) -> None:
        """Record that a worker has ended."""
        for cell in range(_ROW):
            self._set(worker, cell, 0)

    def numbers(self, worker: int) -> "memoryview[float]":
        """Return the cells in which a worker counts; they outlive it, so that its successor counts on."""
        return self._numbers[_NUMBERS * worker : _NUMBERS * (worker + 1)]

    def connections(self, worker: int) -> int:
        """Return how many connections a worker has; 0 if it does not run."""
        return int(self._get(worker, _CONNECTIONS))

    def all_connections(self) -> int:
        """Return how many connections all workers have."""
        return sum(map(self.connections, range(self.workers)))

    def runs(self, worker: int) -> bool:
        """Return whether a worker runs."""
        return self._get(worker, _BEAT) != 0

    def is_ready(self, worker: int) -> bool:
        """Return whether a worker serves, by its own account, and has said so lately."""
        return self._get(worker, _READY) != 0 and time.monotonic() - self._get(worker, _BEAT) < _SILENT_S

    def can_write(self, worker: int) -> bool:
        """Return whether a worker reaches a log that takes writes, by its own account."""
        return self._get(worker, _WRITES) != 0

    def all_ready(self) -> bool:
        """Return whether every worker is ready."""
        return all(map(self.is_ready, range(self.workers)))

    def fewest_connections(self) -> int:
        """Return the number of connections of the worker that has the fewest, of those that run."""
        recent = time.monotonic() - _FRESH_S
        running = (worker for worker in range(self.workers) if self._get(worker, _BEAT) > recent)
        return min(map(self.connections, running), default=0)

    def _get(self, worker: int, cell: int) -> float:
        return self._cells[1 + _ROW * worker + cell]

    def _set(self, worker: int, cell: int, value: float) -> None:
        self._cells[1 + _ROW * worker + cell] = value


class Seat:
    """The place of one worker at the board.

    Args:
        board: the board; by default that of a node with one worker.
        number: the number of the worker; worker 0 is the one that writes.
    """

    def __init__(self, board: Board | None = None, number: int = 0) -> None:
        self.board = board or Board()
        self.number = number

    @property
    def writes(self) -> bool:
        """Whether this worker writes to the log."""
        return self.number == 0

    def is_draining(self) -> bool:
        """Return whether the node is about to shut down."""
        return self.board.is_draining

    def beat(self, connections: int) -> None:
        """Record that this worker runs, and its number of connections."""
        self._set(_CONNECTIONS, connections)
        self._set(_BEAT, time.monotonic())

    def report(self, *, ready: bool, can_write: bool) -> None:
        """Record whether this worker is ready, and whether it reaches a log that takes writes."""
        self._set(_READY, ready)
        self._set(_WRITES, can_write)

    def has_most(self, connections: int) -> bool:
        """Record this worker's number of connections, and return whether another one has fewer."""
        self._set(_CONNECTIONS, connections)
        return self.board.workers > 1 and connections > self.board.fewest_connections()

    def missing(self) -> list[int]:
        """Return the numbers of the other workers that are not ready."""
        return [worker for worker in self._others() if not self.board.is_ready(worker)]

    def without_log(self) -> list[int]:
        """Return the numbers of the other workers that reach no log that takes writes."""
        return [worker for worker in self._others() if not self.board.can_write(worker)]

    def _others(self) -> list[int]:
        return [worker for worker in range(self.board.workers) if worker != self.number]

    def _set(self, cell: int, value: float) -> None:
        self.board._set(self.number, cell, value)
