"""The kinds of fencing between writers on one Kafka topic; not in `log.py`, so that settings need no client."""

from enum import StrEnum

__all__ = ["Fencing"]


class Fencing(StrEnum):
    """The fencing of a second writer on a Kafka topic."""

    PEN = "pen"
    """A transactional producer: taking the pen fences the previous holder."""

    NONE = "none"
    """No fencing, for services without transactions. Run one writing node only: two at once damage the log."""
