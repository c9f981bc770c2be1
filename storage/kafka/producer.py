"""What the pen needs of a producer with a transactional id.

There are two: `transactions.py` speaks the protocol itself, and `client_producer.py` uses the Kafka client where
the settings ask for more than the first one offers, or where no transactions are wanted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from strata.storage.log import Record

__all__ = ["Producer", "Staged"]


@dataclass(frozen=True, slots=True)
class Staged:
    """The offset and timestamp of a staged record; the timestamp in milliseconds since the epoch."""

    offset: int
    timestamp: int


class Producer(Protocol):
    """A producer with a transactional id. Not thread-safe.

    Deadlines are times on the clock of `time.monotonic`, in seconds. Every method but `close` raises KafkaException.
    """

    def take(self, deadline: float) -> None:
        """Fence the producer that has the id: the broker aborts or completes what that one left."""
        ...

    def stage(
        self, records: Sequence[Record], headers: Sequence[Mapping[str, bytes]], deadline: float, patience_s: float
    ) -> list[Staged]:
        """Write the records in a transaction, each with its headers, and return where they are.

        `patience_s` is how long to wait for a first answer, in seconds, if that is before the deadline.
        """
        ...

    def commit(self, deadline: float) -> None:
        """Commit the transaction."""
        ...

    def abort(self, deadline: float) -> None:
        """Abort the transaction."""
        ...

    def close(self) -> None:
        """Close the connections without waiting for requests that are still running."""
        ...
