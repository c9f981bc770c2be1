"""The search for proofs: the table of formats, the proofs of a check's findings, and the changes that no rule refuses.

A format's module has two functions. `breaks` proves findings of the checker, which refuse a change. `alters` proves
outcomes of the difference, which say that a value becomes another one although the change is accepted. Both yield one
proof for each finding, in order, and may raise `OutOfTime`, after which the proofs that they have yielded count.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

from strata.compat.check import Previous, finding
from strata.compat.difference.compare import addresses, outcomes
from strata.compat.difference.outcomes import Cause, Outcome, Verdict
from strata.compat.levels import LEVELS, Direction, Level
from strata.compat.limits import Limits, OutOfTime
from strata.compat.proofs import Budget, NoWitness, Proof
from strata.compat.result import Finding, Incompatibility
from strata.compat.schema import ParsedSchema, SchemaFormat

__all__ = ["SILENT_CHANGE", "budget_within", "is_loaded", "proven", "silent_changes"]

SILENT_CHANGE: Final = "SILENT_CHANGE"
"""The rule of a finding about a change that is accepted although a reader gets another value, or none."""

_SECONDS: Final = 1.0  # CPU time for the proofs of one check
_MOST_SILENT: Final = 100  # changes of values in one check
_UNJUDGED: Final = "It is not known whether readers get the values that were written: the time ran out."
_REPORTED: Final = (Verdict.BREAKS, Verdict.SILENT)


class _Format(NamedTuple):
    """The searches of a format; the schemas are of the format's own class."""

    breaks: Callable[[Any, Any, Sequence[Incompatibility], Budget], Iterator[Proof]]  # reader, writer
    alters: Callable[[Any, Any, Sequence[Outcome], Budget], Iterator[Proof]]  # reader, writer


_SEARCHES: Final[dict[SchemaFormat, _Format]] = {}


def _of(schema_format: SchemaFormat) -> _Format:
    """Return the searches of a format, whose modules are imported at its first use."""
    searches = _SEARCHES.get(schema_format)
    if searches is None:
        searches = _SEARCHES[schema_format] = _imported(schema_format)
    return searches


def _imported(schema_format: SchemaFormat) -> _Format:
    match schema_format:
        case SchemaFormat.AVRO:
            from strata.compat.witness import avro

            return _Format(avro.breaks, avro.alters)
        case SchemaFormat.PROTOBUF:
            from strata.compat.witness import protobuf

            return _Format(protobuf.breaks, protobuf.alters)
        case SchemaFormat.JSON:
            from strata.compat.witness import json_schema

            return _Format(json_schema.breaks, json_schema.alters)


def is_loaded(schema_format: SchemaFormat) -> bool:
    """Return whether the searches of a format have been imported, which takes as long as some hundred checks."""
    return schema_format in _SEARCHES


def budget_within(limits: Limits) -> Budget:
    """Return the budget for the proofs of one check, given the limits of the request."""
    return Budget(limits if limits.at_once else limits.ending_in(_SECONDS))


def proven(
    new: ParsedSchema,
    previous: Sequence[Previous],
    findings: Sequence[Incompatibility],
    budget: Budget,
    *,
    is_numbered: bool = True,
) -> list[Finding]:
    """Return the findings of a check, each with its proof.

    Args:
        new: The new schema.
        previous: The versions that it was compared with.
        findings: The incompatibilities that `strata.compat.check.check` found.
        budget: Bounds on time and size.
        is_numbered: Whether the findings name the versions by their numbers.
    """
    versions = {earlier.version: earlier.schema for earlier in previous}
    made: list[Finding] = []
    for (version, direction), group in groupby(
        findings, key=lambda difference: (difference.version, difference.direction)
    ):
        same = list(group)
        schema = None if version is None else versions.get(version)
        if schema is None or direction is None:  # the format has changed, or the check is not of a level
            proofs: Sequence[Proof] = [NoWitness("undecided")] * len(same)
        else:
            proofs = breaks(*_sides(new, schema, direction), same, budget)
        named = same if is_numbered else [replace(difference, version=None) for difference in same]
        made += [replace(finding(difference), proof=proof) for difference, proof in zip(named, proofs, strict=True)]
    return made


def silent_changes(
    new: ParsedSchema,
    previous: Sequence[Previous],
    level: Level,
    findings: Sequence[Incompatibility],
    budget: Budget,
    *,
    is_numbered: bool = True,
) -> list[Finding]:
    """Return the changes that the rules accept although a reader gets another value than was written.

    They count in the directions and for the versions of the level. If the time runs out, the last one says so.

    Args:
        new: The new schema.
        previous: The versions of the subject, oldest first.
        level: The compatibility level.
        findings: What the check refuses; a part that is refused is not listed again.
        budget: Bounds on time and size.
        is_numbered: Whether the findings name the versions by their numbers.
    """
    rule = LEVELS[level]
    made: list[Finding] = []
    try:
        for version in reversed(previous if rule.transitive else previous[-1:]):
            for direction in rule.directions:
                made += _silent(new, version, direction, findings, budget, is_numbered=is_numbered)
    except OutOfTime:
        return [*made[:_MOST_SILENT], Finding(SILENT_CHANGE, _UNJUDGED, proof=NoWitness("time"))]
    return made[:_MOST_SILENT]


def _silent(
    new: ParsedSchema,
    previous: Previous,
    direction: Direction,
    findings: Sequence[Incompatibility],
    budget: Budget,
    *,
    is_numbered: bool,
) -> Iterator[Finding]:
    reader, writer = _sides(new, previous.schema, direction)
    is_new = direction is Direction.BACKWARD
    refused = {
        at
        for finding in findings
        if (finding.version, finding.direction) == (previous.version, direction)
        for at in addresses(finding)
    }
    judged = (
        change
        for change in outcomes(reader, writer, budget.limits, is_new=is_new)
        if _is_reported(change) and refused.isdisjoint(change.at)
    )
    listed = list(islice(judged, _MOST_SILENT))
    for outcome, proof in zip(listed, alters(reader, writer, listed, budget), strict=True):
        before, after = outcome.before or None, outcome.after or None
        version = previous.version if is_numbered else None
        yield Finding(
            SILENT_CHANGE,
            outcome.words(is_new=is_new, version=version),
            path=outcome.at[0] if outcome.at[0].startswith("#") else "",
            field=outcome.at[0].removeprefix("#/").replace("/", "."),
            direction=direction,
            version=version,
            previous=before if is_new else after,
            new=after if is_new else before,
            proof=proof,
        )


def _is_reported(change: Outcome) -> bool:
    """Return whether an outcome is a finding; that a search for changed values did not end is one, too."""
    return change.verdict in _REPORTED or change.cause is Cause.NUMBERS_UNDECIDED


def _sides(new: ParsedSchema, previous: ParsedSchema, direction: Direction) -> tuple[ParsedSchema, ParsedSchema]:
    return (new, previous) if direction is Direction.BACKWARD else (previous, new)


def breaks(
    reader: ParsedSchema, writer: ParsedSchema, findings: Sequence[Incompatibility], budget: Budget
) -> list[Proof]:
    """Return a proof for each finding of the check of two schemas.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        findings: The findings of the check of these two, in the order of the check.
        budget: Bounds on time and size.
    """
    form = _of(writer.format) if reader.format is writer.format else None
    return _within(form.breaks(reader, writer, findings, budget) if form else None, len(findings))


def alters(reader: ParsedSchema, writer: ParsedSchema, outcomes: Sequence[Outcome], budget: Budget) -> list[Proof]:
    """Return a proof for each outcome of reading data of the writer's schema with the reader's.

    Args:
        reader: The reader's schema.
        writer: The writer's schema.
        outcomes: The outcomes for these two.
        budget: Bounds on time and size.
    """
    form = _of(writer.format) if reader.format is writer.format else None
    return _within(form.alters(reader, writer, outcomes, budget) if form else None, len(outcomes))


def _within(proofs: Iterator[Proof] | None, number: int) -> list[Proof]:
    """Return the proofs that a search yields in its time, and the reason why for the others."""
    if proofs is None:
        return [NoWitness("undecided")] * number
    made: list[Proof] = []
    with suppress(OutOfTime):
        made.extend(proofs)
    return made + [NoWitness("time")] * (number - len(made))
