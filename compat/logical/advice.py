"""What a finding on tables means for the author of a schema, and what would be accepted."""

from collections.abc import Iterator, Mapping
from typing import Final

from strata.compat.levels import Direction
from strata.compat.logical.comparison import TableFinding
from strata.compat.logical.policy import TableCheck
from strata.compat.result import Finding

__all__ = ["table_findings"]

_KEEP_TYPE: Final = "Keep the type {before}, or add a field under another name."

# By rule: of the new schema by itself, or of a table that follows it from the previous version to the new one.
_ADVICE: Final[Mapping[str, str]] = {
    "NO_LOGICAL_TYPE": "Change the schema, or set compatibilityPolicy to STRICT.",
    "NO_TABLE": "Nothing else is judged.",
    "CYCLIC_TYPE": "Hold the inner value in a type of its own, or as text or bytes.",
    "UNRESOLVED_TYPE_REF": "Define the type, or refer to the schema that does.",
    "PRECISION_OUT_OF_RANGE": "Use a precision of 1 to 38.",
    "SCALE_OUT_OF_RANGE": "Use a scale of 0 up to the precision.",
    "LENGTH_OUT_OF_RANGE": "Use a greater length.",
    "EMPTY_STRUCT": "Give it a field.",
    "FIELD_NAME_CASE_COLLISION": "Rename one of the two fields.",
    "UNREPRESENTABLE_TYPE": "Use another type, such as a time with a precision of at most 6.",
    "REQUIRED_FIELD_ADDED": "Make the field nullable.",
    "NULLABLE_TO_NON_NULLABLE": "Keep it nullable.",
    "NON_NULLABLE_DEFAULT_REMOVED": "Keep the default, or make the field nullable.",
    "FIELD_DELETED": "Keep the field; a rename counts as a deletion.",
    "FIELD_REORDERED": "Keep the order of the fields, and add new ones at the end.",
    "MAP_KEY_TYPE_MISMATCH": "Keep the type {before} of the key.",
    "TYPE_MISMATCH": _KEEP_TYPE,
    "UNSUPPORTED_TYPE_CHANGE": _KEEP_TYPE,
}
# By rule: of a table that goes back from the new schema to the previous version.
_FORWARD_ADVICE: Final[Mapping[str, str]] = {
    "REQUIRED_FIELD_ADDED": "The previous version has the field as NOT NULL, so keep it.",
    "NULLABLE_TO_NON_NULLABLE": "It is NOT NULL in the previous version, so keep it so.",
    "NON_NULLABLE_DEFAULT_REMOVED": "The previous version has no default for it, so add none.",
    "FIELD_DELETED": "The previous version lacks the field, so a level in this direction allows no new one.",
    "FIELD_REORDERED": "Keep the order of the fields.",
    "MAP_KEY_TYPE_MISMATCH": "Keep the type {after} of the key.",
    "TYPE_MISMATCH": "Keep the type {after}, or add a field under another name.",
    "UNSUPPORTED_TYPE_CHANGE": "Keep the type {after}, or add a field under another name.",
}


def table_findings(check: TableCheck) -> Iterator[Finding]:
    """Yield the findings of a check in terms of the new schema and the previous version."""
    for finding in check.findings:
        before, after = finding.before, finding.after
        if check.direction is Direction.FORWARD:
            before, after = after, before
        yield Finding(
            finding.rule,
            _advice(check, finding),
            path=finding.path,
            field=finding.path,
            direction=check.direction,
            version=check.version,
            previous=before or None,
            new=after or None,
            table=check.rules.label if check.rules else "Flink, Iceberg",
        )


def _advice(check: TableCheck, finding: TableFinding) -> str:
    table = f"Tables of {check.rules.label}" if check.rules else "Tables"
    previous = "the previous version" if check.version is None else f"version {check.version}"
    if check.direction is None:
        problem = f"{table} cannot hold the schema"
    elif check.direction is Direction.BACKWARD:
        problem = f"{table} cannot follow from {previous} to the new schema"
    else:
        problem = f"{table} of the new schema cannot be read as {previous}"
    where = f" at '{finding.path}'" if finding.path else ""
    advice = (_FORWARD_ADVICE if check.direction is Direction.FORWARD else _ADVICE)[finding.rule]
    return f"{problem}{where}: {finding.text}. {advice.format(before=finding.before, after=finding.after)}"
