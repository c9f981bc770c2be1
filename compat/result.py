"""Findings as values.

A format's check compares a reader schema with a writer schema and returns these; it does not know which of the two
is the new one. `compat.check` knows, and puts that into `direction` and `version`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from compat.levels import Direction
from compat.schema import SchemaFormat

__all__ = ["Finding", "Incompatibility", "Value"]

# What a schema has at a place, as JSON has it; None where it has nothing there.
Value: TypeAlias = bool | int | float | Decimal | str | Sequence["Value"] | Mapping[str, "Value"] | None


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
    reader_value: Value = None  # what the reader schema has at the place
    writer_value: Value = None  # what the writer schema has there
    direction: Direction | None = None  # who is the reader; None until a level check has said so
    version: int | None = None  # the previous version that was compared


@dataclass(frozen=True)
class Finding:
    """A reason for a verdict, as CI can read it: what was, what is, and what would be accepted."""

    rule: str  # the name that the messages give as errorType, or one of ours
    advice: str
    path: str = ""  # as in the messages
    field: str = ""  # the same place, told by field names
    direction: Direction | None = None
    version: int | None = None  # the previous version that was compared
    previous: Value = None  # what that version has at the place; None: nothing
    new: Value = None  # what the new schema has there
