"""How writers on one Kafka topic are kept apart; here, and not in `kafka_log.py`, so that settings need no client."""

from enum import StrEnum

__all__ = ["Fencing"]


class Fencing(StrEnum):
    """What stops a second writer on a Kafka topic."""

    PEN = "pen"
    """A transactional producer: taking the pen fences whoever had it."""

    NONE = "none"
    """Nothing: for services without transactions, with one writing node. Two that write at once damage the log."""
