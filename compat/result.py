"""Findings as values.

A format's check compares a reader schema with a writer schema and returns these values; it does not know which of the
two is the new one. `strata.compat.check` knows, and sets `direction` and `version`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from strata.compat.levels import Direction
from strata.compat.proofs import Proof
from strata.compat.schema import SchemaFormat

__all__ = ["Finding", "Incompatibility", "Refusal", "Value"]

# What a schema has at a path, as a JSON value; None if it has nothing there.
Value: TypeAlias = bool | int | float | Decimal | str | Sequence["Value"] | Mapping[str, "Value"] | None


@dataclass(frozen=True)
class Incompatibility:
    """One reason why the reader schema cannot read all data of the writer schema."""

    format: SchemaFormat
    kind: str  # the format's name of the rule, as on the wire
    path: str  # the path in the reader schema, as on the wire
    message: str  # the finding in terms of "reader schema" and "writer schema"
    detail: str = ""  # `additionalInfo` on the wire
    where: str = ""  # the same place as `path`, by field names
    reader: str = ""  # the type on the reader's side
    writer: str = ""  # the type on the writer's side
    reader_value: Value = None  # what the reader schema has at the path
    writer_value: Value = None  # what the writer schema has there
    direction: Direction | None = None  # which schema is the reader; None until a level check sets it
    version: int | None = None  # the previous version that was compared

    @property
    def previous(self) -> str:
        """The previous version, as a sentence names it."""
        return "the previous version" if self.version is None else f"version {self.version}"


@dataclass(frozen=True)
class Finding:
    """A machine-readable reason for a verdict: the old value, the new value, and advice."""

    rule: str  # the `errorType` of the messages, or a rule of ours
    advice: str
    path: str = ""  # as in the messages
    field: str = ""  # the same place, by field names
    direction: Direction | None = None
    version: int | None = None  # the previous version that was compared
    previous: Value = None  # what that version has at the path; None: nothing
    new: Value = None  # what the new schema has there
    table: str = ""  # whose tables cannot follow; empty if readers or writers of records cannot
    proof: Proof | None = None  # the record that shows it, if the caller asked for one


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the tools of a format refuse a schema that the registry stores."""

    rule: str
    message: str
    line: int = 0  # from 1; 0 if the schema did not come as text
    column: int = 0

    def __str__(self) -> str:
        """Return the message with place and rule."""
        place = f"line {self.line}, column {self.column}, " if self.line else ""
        return f"{self.message} ({place}{self.rule})"
