"""Check whether a new schema may follow the versions of a subject under a compatibility level, with messages.

The check takes the latest version first and, for a transitive level, then the older ones until one is incompatible.
The messages are the reference's, to the letter. After the findings of the last direction come two lines about the
previous version; then those of the policy LOGICAL, which looks at all versions; the server adds a last line about its
settings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from strata.compat.formats import FORMATS
from strata.compat.levels import LEVELS, Direction, Level, Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.logical.policy import TableCheck, check_tables
from strata.compat.result import Finding, Incompatibility
from strata.compat.schema import ParsedSchema

__all__ = ["CheckResult", "Previous", "check", "explain", "finding"]

_OTHER_FORMAT: Final = "Incompatible because of different schema type"
_TYPE_CHANGED: Final = "SCHEMA_TYPE_CHANGED"
_LONGEST_TEXT: Final = 10 * 1024  # how much of a previous schema a message quotes, in UTF-16 code units


class Previous(NamedTuple):
    """An earlier version of the subject to compare with."""

    version: int
    schema: ParsedSchema
    union: str = ""  # the metadata property `confluent:union`, which names the branches of a union at the root


@dataclass(frozen=True)
class CheckResult:
    """The verdict, the messages as clients expect them, and the findings behind the messages."""

    compatible: bool
    messages: tuple[str, ...] = ()
    incompatibilities: tuple[Incompatibility, ...] = ()
    tables: tuple[TableCheck, ...] = ()


_COMPATIBLE: Final = CheckResult(compatible=True)


def check(
    new: ParsedSchema,
    previous: Sequence[Previous],
    level: Level,
    policy: Policy = Policy.STRICT,
    limits: Limits = DEFAULT_LIMITS,
    union: str = "",
) -> CheckResult:
    """Check a new schema against the previous versions of its subject.

    Args:
        new: The new schema.
        previous: The previous versions, oldest first.
        level: The compatibility level.
        policy: How strictly to treat differences.
        limits: Bounds on work, findings and time.
        union: The metadata property `confluent:union` of the new version, for the policy LOGICAL.

    Raises:
        OutOfTime: The time of `limits` ran out before there was a verdict.
    """
    if policy is not Policy.LOGICAL:
        return _check_records(new, previous, level, policy, limits)
    result = _check_records(new, previous, level, Policy.STRICT, limits)
    versions = [(version.version, version.schema, version.union) for version in previous]
    tables = check_tables(new, versions, level, limits, union)
    messages = (*result.messages, *(table.message for table in tables))
    return CheckResult(result.compatible and not tables, messages, result.incompatibilities, tuple(tables))


def _check_records(
    new: ParsedSchema, previous: Sequence[Previous], level: Level, policy: Policy, limits: Limits
) -> CheckResult:
    """Return the verdict of the format's own rules on the records."""
    rule = LEVELS[level]
    looked_at = previous if rule.transitive else previous[-1:]
    for version in reversed(looked_at if rule.directions else ()):
        result = _check_version(new, version, rule.directions, policy, limits)
        if not result.compatible:
            return result
    return _COMPATIBLE


def explain(incompatibility: Incompatibility) -> str:
    """Return a sentence for people: which rule a field breaks, and which change would be accepted."""
    if incompatibility.kind == _TYPE_CHANGED:
        return (
            f"The schema is of type {incompatibility.reader_value}, version {incompatibility.version} is of type "
            f"{incompatibility.writer_value}. Keep the type, or register the schema under another subject."
        )
    return FORMATS[incompatibility.format].explain(incompatibility)


def finding(incompatibility: Incompatibility) -> Finding:
    """Return an incompatibility in terms of the new schema and the previous version."""
    new, previous = incompatibility.reader_value, incompatibility.writer_value
    if incompatibility.direction is Direction.FORWARD:
        new, previous = previous, new
    return Finding(
        incompatibility.kind,
        explain(incompatibility),
        incompatibility.path,
        incompatibility.where,
        incompatibility.direction,
        incompatibility.version,
        previous,
        new,
    )


def _check_version(
    new: ParsedSchema, previous: Previous, directions: Sequence[Direction], policy: Policy, limits: Limits
) -> CheckResult:
    if new.format is not previous.schema.format:
        return CheckResult(False, (_OTHER_FORMAT,), (_other_format(new, previous),))
    messages: list[str] = []
    findings: list[Incompatibility] = []
    incompatibilities: Sequence[Incompatibility] = ()
    for direction in directions:
        incompatibilities = _check_direction(new, previous, direction, policy, limits)
        if incompatibilities:
            findings += incompatibilities
            messages += _messages(incompatibilities, limits)
    if not findings:
        return _COMPATIBLE
    if incompatibilities:
        messages += _lines_on(previous)
    return CheckResult(compatible=False, messages=tuple(messages), incompatibilities=tuple(findings))


def _other_format(new: ParsedSchema, previous: Previous) -> Incompatibility:
    ours, theirs = str(new.format), str(previous.schema.format)
    return Incompatibility(
        new.format,
        _TYPE_CHANGED,
        path="",
        message=_OTHER_FORMAT,
        reader_value=ours,
        writer_value=theirs,
        version=previous.version,
    )


def _check_direction(
    new: ParsedSchema, previous: Previous, direction: Direction, policy: Policy, limits: Limits
) -> Sequence[Incompatibility]:
    backward = direction is Direction.BACKWARD
    reader, writer = (new, previous.schema) if backward else (previous.schema, new)
    incompatibilities = FORMATS[new.format].check(reader, writer, policy=policy, limits=limits)
    if not incompatibilities:
        return ()
    return [replace(finding, direction=direction, version=previous.version) for finding in incompatibilities]


def _messages(findings: Sequence[Incompatibility], limits: Limits) -> Iterator[str]:
    """Yield the first message, and further ones while their total length is within the limit."""
    length = 0
    for finding in findings:
        limits.look_at_clock()
        message = _message(finding)
        length += len(message)
        if length > limits.messages and finding is not findings[0]:
            return
        yield message


def _message(finding: Incompatibility) -> str:
    reader, writer = ("new", "old") if finding.direction is Direction.BACKWARD else ("old", "new")
    return FORMATS[finding.format].wire_message(finding, reader=reader, writer=writer)


def _lines_on(previous: Previous) -> tuple[str, str]:
    text = previous.schema.canonical
    units = text.encode("utf-16-le")
    if len(units) <= 2 * _LONGEST_TEXT:
        line = f"{{oldSchema: '{text}'}}"
    else:
        start = units[: 2 * _LONGEST_TEXT].decode("utf-16-le", "ignore")
        line = f"{{oldSchema: <truncated> '{start}...'}}"
    return f"{{oldSchemaVersion: {previous.version}}}", line
