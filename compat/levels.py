"""The compatibility levels, as data: which directions each one checks, and over how much of the history."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["LEVELS", "Direction", "Level", "Policy", "Rule"]


class Level(StrEnum):
    """The seven compatibility levels, spelled as on the wire."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


class Policy(StrEnum):
    """How strictly differences count, spelled as `compatibilityPolicy` on the wire; matters to JSON Schema alone."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"


class Direction(StrEnum):
    """Who has to be able to read whom."""

    BACKWARD = "BACKWARD"  # the new schema reads what a previous version wrote
    FORWARD = "FORWARD"  # a previous version reads what the new schema writes


@dataclass(frozen=True)
class Rule:
    """What a level asks for: the directions in the order they are checked, and every version or only the latest."""

    directions: tuple[Direction, ...]
    transitive: bool


_BACKWARD = (Direction.BACKWARD,)
_FORWARD = (Direction.FORWARD,)
_FULL = (Direction.FORWARD, Direction.BACKWARD)

LEVELS: Mapping[Level, Rule] = {
    Level.NONE: Rule((), transitive=False),
    Level.BACKWARD: Rule(_BACKWARD, transitive=False),
    Level.BACKWARD_TRANSITIVE: Rule(_BACKWARD, transitive=True),
    Level.FORWARD: Rule(_FORWARD, transitive=False),
    Level.FORWARD_TRANSITIVE: Rule(_FORWARD, transitive=True),
    Level.FULL: Rule(_FULL, transitive=False),
    Level.FULL_TRANSITIVE: Rule(_FULL, transitive=True),
}
