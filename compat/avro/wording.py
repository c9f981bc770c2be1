"""The messages for an Avro incompatibility: on the wire in the reference's exact words, and for people.

The wire text looks like JSON but is not; clients match on it, so it is reproduced letter by letter.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from strata.compat.avro.promotions import PROMOTED_FROM, PROMOTED_TO
from strata.compat.levels import Direction
from strata.compat.result import Incompatibility

__all__ = ["Kind", "describe", "explain", "wire_message"]


class Kind(StrEnum):
    """The kinds of finding: six rules of Avro, and two reasons why a check could not finish."""

    NAME_MISMATCH = "NAME_MISMATCH"
    FIXED_SIZE_MISMATCH = "FIXED_SIZE_MISMATCH"
    MISSING_ENUM_SYMBOLS = "MISSING_ENUM_SYMBOLS"
    READER_FIELD_MISSING_DEFAULT_VALUE = "READER_FIELD_MISSING_DEFAULT_VALUE"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    MISSING_UNION_BRANCH = "MISSING_UNION_BRANCH"
    AMBIGUOUS_FIELD = "AMBIGUOUS_FIELD"
    TOO_COMPLEX = "TOO_COMPLEX"


_DESCRIPTIONS: Final[Mapping[str, str]] = {
    Kind.NAME_MISMATCH: "The name of the schema has changed (path '{path}')",
    Kind.FIXED_SIZE_MISMATCH: (
        "The size of FIXED type field at path '{path}' in the {reader} schema does not match with the {writer} schema"
    ),
    Kind.MISSING_ENUM_SYMBOLS: (
        "The {reader} schema is missing enum symbols '{detail}' at path '{path}' in the {writer} schema"
    ),
    Kind.READER_FIELD_MISSING_DEFAULT_VALUE: (
        "The field '{detail}' at path '{path}' in the {reader} schema has no default value "
        "and is missing in the {writer} schema"
    ),
    Kind.TYPE_MISMATCH: (
        "The type (path '{path}') of a field in the {reader} schema does not match with the {writer} schema"
    ),
    Kind.MISSING_UNION_BRANCH: (
        "The {reader} schema is missing a type inside a union field at path '{path}' in the {writer} schema"
    ),
}
_UNFINISHED: Final = "Unexpected exception during compatibility check: {detail}"


def describe(kind: Kind, path: str, detail: str, *, reader: str = "reader", writer: str = "writer") -> str:
    """Return one sentence about a finding.

    Args:
        kind: The kind of finding.
        path: Its path.
        detail: Its `additionalInfo`.
        reader: The word for the reader schema.
        writer: The word for the writer schema.
    """
    return _DESCRIPTIONS.get(kind, _UNFINISHED).format(path=path, detail=detail, reader=reader, writer=writer)


def wire_message(finding: Incompatibility, *, reader: str, writer: str) -> str:
    """Return the message of a finding as in the reference's answers.

    Args:
        finding: The finding.
        reader: The word for the reader schema, "new" or "old".
        writer: The word for the writer schema, "old" or "new".
    """
    text = describe(Kind(finding.kind), finding.path, finding.detail, reader=reader, writer=writer)
    if finding.kind not in _DESCRIPTIONS:
        return text
    return f"{{errorType:'{finding.kind}', description:'{text}', additionalInfo:'{finding.detail}'}}"


def explain(finding: Incompatibility) -> str:
    """Return what is wrong and which change would be accepted, for the person who wants to register the new schema."""
    direction = finding.direction or Direction.BACKWARD
    return _EXPLANATIONS[Kind(finding.kind), direction].format(
        place=f"Field '{finding.where}'" if finding.where else "The schema",
        field=finding.where.rpartition(".")[2],
        detail=finding.detail,
        symbols=finding.detail.strip("[]"),
        expected=finding.detail.partition("expected: ")[2].partition(",")[0],
        reader=finding.reader,
        writer=finding.writer,
        readable=_listed(PROMOTED_FROM.get(finding.reader, ()), f"{finding.reader}"),
        reading=_listed(PROMOTED_TO.get(finding.writer, ()), f"{finding.writer}"),
        previous=finding.previous,
    )


def _listed(others: Iterable[str], own: str) -> str:
    return ", ".join([own, *others])


_AMBIGUOUS: Final = "{place} cannot be matched: {detail}. Remove the aliases that make it match more than one field."
_TOO_COMPLEX: Final = "The new schema and {previous} are too complex to be compared: {detail}. Register a simpler one."

_EXPLANATIONS: Final[Mapping[tuple[Kind, Direction], str]] = {
    (Kind.READER_FIELD_MISSING_DEFAULT_VALUE, Direction.BACKWARD): (
        "{place} is in the new schema but not in {previous}, and it has no default, so what {previous} wrote could "
        "not be read. Add a default to field '{field}'."
    ),
    (Kind.READER_FIELD_MISSING_DEFAULT_VALUE, Direction.FORWARD): (
        "{place} is missing in the new schema, and {previous} needs it: it has no default there. Keep field '{field}'."
    ),
    (Kind.TYPE_MISMATCH, Direction.BACKWARD): (
        "{place} is {reader} in the new schema, which cannot read the {writer} that {previous} wrote. "
        "Use a type that can: {reading}, or a union with one of them."
    ),
    (Kind.TYPE_MISMATCH, Direction.FORWARD): (
        "{place} is {writer} in the new schema, which {previous} cannot read as its {reader}. "
        "Use a type that it can read: {readable}."
    ),
    (Kind.MISSING_UNION_BRANCH, Direction.BACKWARD): (
        "{place} is a union without a branch that reads the {writer} of {previous}. "
        "Keep {writer} among the branches, and change it compatibly only."
    ),
    (Kind.MISSING_UNION_BRANCH, Direction.FORWARD): (
        "{place} may hold {writer} in the new schema, which no branch of the union in {previous} reads. "
        "Leave {writer} out, or keep it as {previous} has it."
    ),
    (Kind.MISSING_ENUM_SYMBOLS, Direction.BACKWARD): (
        "{place} ({reader}) lacks symbols that {previous} may have written: {symbols}. "
        "Keep them, or give the enum a default symbol."
    ),
    (Kind.MISSING_ENUM_SYMBOLS, Direction.FORWARD): (
        "{place} ({writer}) has new symbols that {previous} cannot read, having no default symbol: {symbols}. "
        "Leave them out."
    ),
    (Kind.FIXED_SIZE_MISMATCH, Direction.BACKWARD): (
        "{place} ({reader}) has another size than in {previous}. Keep size {expected}."
    ),
    (Kind.FIXED_SIZE_MISMATCH, Direction.FORWARD): (
        "{place} ({writer}) has size {expected}, another one than in {previous}. Keep the size."
    ),
    (Kind.NAME_MISMATCH, Direction.BACKWARD): (
        "{place} is {reader} in the new schema and {writer} in {previous}. "
        "Keep the name, or add the alias '{expected}' to {reader}."
    ),
    (Kind.NAME_MISMATCH, Direction.FORWARD): (
        "{place} is {writer} in the new schema, and {previous} knows it only as {reader}. Keep the name: "
        "an alias in the new schema does not help those who read with {previous}."
    ),
    (Kind.AMBIGUOUS_FIELD, Direction.BACKWARD): _AMBIGUOUS,
    (Kind.AMBIGUOUS_FIELD, Direction.FORWARD): _AMBIGUOUS,
    (Kind.TOO_COMPLEX, Direction.BACKWARD): _TOO_COMPLEX,
    (Kind.TOO_COMPLEX, Direction.FORWARD): _TOO_COMPLEX,
}
