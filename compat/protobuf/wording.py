"""The messages for a difference: for clients in the reference's words, and for people with advice."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from strata.compat.levels import Direction
from strata.compat.result import Incompatibility

__all__ = ["Difference", "describe", "explain", "wire_message"]


class Difference(StrEnum):
    """The kinds of difference, named as on the wire."""

    PACKAGE_CHANGED = "PACKAGE_CHANGED"
    MESSAGE_ADDED = "MESSAGE_ADDED"
    MESSAGE_REMOVED = "MESSAGE_REMOVED"
    MESSAGE_MOVED = "MESSAGE_MOVED"
    ENUM_ADDED = "ENUM_ADDED"
    ENUM_REMOVED = "ENUM_REMOVED"
    ENUM_CONST_ADDED = "ENUM_CONST_ADDED"
    ENUM_CONST_CHANGED = "ENUM_CONST_CHANGED"
    ENUM_CONST_REMOVED = "ENUM_CONST_REMOVED"
    FIELD_ADDED = "FIELD_ADDED"
    FIELD_REMOVED = "FIELD_REMOVED"
    FIELD_NAME_CHANGED = "FIELD_NAME_CHANGED"
    FIELD_KIND_CHANGED = "FIELD_KIND_CHANGED"
    FIELD_SCALAR_KIND_CHANGED = "FIELD_SCALAR_KIND_CHANGED"
    FIELD_NAMED_TYPE_CHANGED = "FIELD_NAMED_TYPE_CHANGED"
    FIELD_NUMERIC_LABEL_CHANGED = "FIELD_NUMERIC_LABEL_CHANGED"
    FIELD_STRING_OR_BYTES_LABEL_CHANGED = "FIELD_STRING_OR_BYTES_LABEL_CHANGED"
    REQUIRED_FIELD_ADDED = "REQUIRED_FIELD_ADDED"
    REQUIRED_FIELD_REMOVED = "REQUIRED_FIELD_REMOVED"
    ONEOF_ADDED = "ONEOF_ADDED"
    ONEOF_REMOVED = "ONEOF_REMOVED"
    ONEOF_FIELD_ADDED = "ONEOF_FIELD_ADDED"
    ONEOF_FIELD_REMOVED = "ONEOF_FIELD_REMOVED"
    ONEOF_FIELD_MOVED_TO_TOP_LEVEL = "ONEOF_FIELD_MOVED_TO_TOP_LEVEL"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
    FIELD_MOVED_TO_EXISTING_ONEOF = "FIELD_MOVED_TO_EXISTING_ONEOF"
    TOO_COMPLEX = "TOO_COMPLEX"  # ours: the comparison took too much work

    @property
    def compatible(self) -> bool:
        """Whether the rules allow this difference."""
        return self not in _WORDS


@dataclass(frozen=True)
class _Words:
    wire: str  # with {path}, {reader} and {writer}
    broken: str  # the sentence for people, with {where}, {reader} and {writer}
    mend: str  # the advice if the new schema is the reader
    mend_forward: str = ""  # the advice if the previous version is the reader, where it differs


_WORDS: Final[Mapping[Difference, _Words]] = {
    Difference.PACKAGE_CHANGED: _Words(
        "The package at '{path}' in the {reader} schema does not match the package in the {writer} schema",
        "The package differs between {reader} and {writer}, so the full name of every type changes",
        "Keep the package",
    ),
    Difference.MESSAGE_REMOVED: _Words(
        "The {reader} schema is missing a MESSAGE type at path '{path}' in the {writer} schema",
        "Message {where} is in {writer} but not in {reader}",
        "Keep the message, even if nothing uses it any more",
        "Remove the message: the check treats a new message as one that {reader} cannot read",
    ),
    Difference.FIELD_KIND_CHANGED: _Words(
        "The type of a field at path '{path}' in the {reader} schema does not match the {writer} schema",
        "Field {where} changes between scalar, message and map from {writer} to {reader}",
        "Give the new field a tag of its own, and reserve the old one",
    ),
    Difference.FIELD_SCALAR_KIND_CHANGED: _Words(
        "The kind of a SCALAR field at path '{path}' in the {reader} schema does not match its kind in the {writer} "
        "schema",
        "The types of field {where} in {reader} and {writer} differ on the wire",
        "Stay within int32, int64, uint32, uint64, bool and enums, or within string and bytes, or within sint32 and "
        "sint64, or within the fixed types of one size; or use a new tag",
    ),
    Difference.FIELD_NAMED_TYPE_CHANGED: _Words(
        "The type of a MESSAGE field at path '{path}' in the {reader} schema does not match its type in the {writer} "
        "schema",
        "Field {where} has different or incompatible message types in {reader} and {writer}",
        "Keep the message type, or use a new tag",
    ),
    Difference.FIELD_NUMERIC_LABEL_CHANGED: _Words(
        "The label for a NUMERIC field at path '{path}' in the {reader} schema does not match its label in the "
        "{writer} schema",
        "Numeric field {where} has different labels in {reader} and {writer}",
        "Keep the label, or use a new tag",
    ),
    Difference.REQUIRED_FIELD_ADDED: _Words(
        "A required field  at path '{path}' in the {reader} schema is missing in the {writer} schema",
        "Field {where} is required in {reader} but unknown to {writer}",
        "Make it optional",
        "Keep the field",
    ),
    Difference.REQUIRED_FIELD_REMOVED: _Words(
        "The {reader} schema is missing a required field at path: '{path}' in the {writer} schema",
        "Field {where} is required in {writer} but not in {reader}",
        "Keep the field",
        "Remove the field, or make it optional",
    ),
    Difference.ONEOF_FIELD_REMOVED: _Words(
        "The {reader} schema is missing a oneof field at path '{path}' in the {writer} schema",
        "Field {where} of a oneof is in {writer} but not in {reader}",
        "Keep the field, or remove the whole oneof",
        "Move the field out of the oneof",
    ),
    Difference.MULTIPLE_FIELDS_MOVED_TO_ONEOF: _Words(
        "Multiple fields in the oneof at path '{path}' in the {reader} schema are outside a oneof in the {writer} "
        "schema",
        "Oneof {where} of {reader} has several fields that can be set together in {writer}",
        "Move at most one field into a new oneof",
        "Keep the fields in the oneof",
    ),
    Difference.FIELD_MOVED_TO_EXISTING_ONEOF: _Words(
        "A field in the oneof at path '{path}' in the {reader} schema is outside an existing oneof in the {writer} "
        "schema",
        "Oneof {where} of {reader} has a field that can be set together with another of its fields in {writer}",
        "Keep the field outside the oneof",
        "Keep the field in the oneof",
    ),
    Difference.TOO_COMPLEX: _Words(
        "The {reader} schema has too many differences from the {writer} schema at path '{path}' to be compared",
        "The comparison of {reader} with {writer} stopped at {where}: there are too many differences",
        "Compare smaller schemas",
    ),
}


def describe(difference: Difference, path: str) -> str:
    """Return the finding in terms of "reader schema" and "writer schema"."""
    return _WORDS[difference].wire.format(path=path, reader="reader", writer="writer")


def wire_message(finding: Incompatibility, *, reader: str, writer: str) -> str:
    """Return the message of a finding as in the reference's answers, to the letter.

    Args:
        finding: The finding.
        reader: The word for the reader schema, "new" or "old".
        writer: The word for the writer schema, "old" or "new".
    """
    text = _WORDS[Difference(finding.kind)].wire.format(path=finding.path, reader=reader, writer=writer)
    return f'{{errorType:"{finding.kind}", description:"{text}"}}'


def explain(finding: Incompatibility) -> str:
    """Return a sentence for people: which message or field breaks which rule, and which change would be accepted."""
    words = _WORDS[Difference(finding.kind)]
    previous = finding.previous
    reader, writer = ("the new schema", previous)
    if forward := finding.direction is Direction.FORWARD:
        reader, writer = writer, reader
    broken = words.broken.format(where=finding.where or finding.path, reader=reader, writer=writer)
    mend = (forward and words.mend_forward) or words.mend
    return f"{broken}. {mend.format(reader=reader)}."
