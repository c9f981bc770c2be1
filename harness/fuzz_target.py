"""What a fuzz target is: a function that is called with bytes, and inputs to begin with."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Defect", "Run", "Target", "check", "not_empty"]

Run = Callable[[bytes], None]


class Defect(AssertionError):
    """A result that no input may cause."""


class Target(NamedTuple):
    """A function that creates the target, and its initial inputs."""

    make: Callable[[], Run]
    seeds: Callable[[], list[bytes]]


def check(holds: bool, what: str) -> None:
    """Raise a defect unless something holds."""
    if not holds:
        raise Defect(what)


def not_empty(run: Run) -> Run:
    """Return a target that ignores the input without bytes."""
    return lambda data: run(data) if data else None
