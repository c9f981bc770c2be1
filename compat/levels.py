"""The compatibility levels as data: the directions that each one checks, and whether it checks all versions."""

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
    """How strictly to treat differences, spelled as `compatibilityPolicy` on the wire."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"  # in JSON Schema, some differences do not count
    LOGICAL = "LOGICAL"  # as STRICT, and tables of Flink and Iceberg must be able to follow


class Direction(StrEnum):
    """Which schema is the reader and which the writer."""

    BACKWARD = "BACKWARD"  # the new schema reads data of a previous version
    FORWARD = "FORWARD"  # a previous version reads data of the new schema


@dataclass(frozen=True)
class Rule:
    """The definition of a level: its directions in the order of checking, and whether it covers all versions."""

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
