"""Findings as values.

A format's check compares a reader schema with a writer schema and returns these; it does not know which of the two
is the new one. `compat.check` knows, and puts that into `direction` and `version`.
"""

from dataclasses import dataclass

from compat.levels import Direction
from compat.schema import SchemaFormat

__all__ = ["Incompatibility"]


@dataclass(frozen=True)
class Incompatibility:
    """One reason why the reader schema cannot read all that the writer schema writes."""

    format: SchemaFormat
    kind: str  # the format's own name of the rule, as on the wire
    path: str  # where in the reader schema, as on the wire
    message: str  # the finding in terms of "reader schema" and "writer schema"
    detail: str = ""  # what the wire calls additionalInfo
    where: str = ""  # the same place as `path`, told by field names
    reader: str = ""  # the type on the reader's side
    writer: str = ""  # the type on the writer's side
    direction: Direction | None = None  # who is the reader; None until a level check has said so
    version: int | None = None  # the previous version that was compared
