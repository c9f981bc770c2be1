"""Check the schemas of a tree: can they be parsed, and may they follow the versions that exist already? Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from strata.compat.check import Previous, check, finding
from strata.compat.levels import LEVELS, Level, Policy
from strata.compat.limits import Limits
from strata.compat.result import Finding
from strata.compat.schema import SchemaParseError
from strata.gitops.desired import Desired, Subject
from strata.gitops.errors import GitopsError
from strata.gitops.positions import Position, position_in_error, position_of
from strata.gitops.versions import Held, Parser, TreeVersions, Versions, held

__all__ = ["INVALID", "UNJUDGED", "Options", "Problem", "Severity", "check_tree"]

_DEFAULT = Level.BACKWARD
INVALID, UNJUDGED, REMOVED = "INVALID_SCHEMA", "NOT_JUDGED", "SUBJECT_REMOVED"


class Severity(StrEnum):
    """How much a problem matters: an error fails the check, an unjudged schema makes it incomplete."""

    ERROR = "error"
    UNJUDGED = "unjudged"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a check found.

    Attributes:
        severity: how much it matters.
        rule: the rule of the finding.
        subject: the subject.
        file: the file of the schema.
        position: the place in it.
        message: what it means, and what would be accepted.
        finding: the finding, of an incompatibility.
    """

    severity: Severity
    rule: str
    subject: str
    file: str
    position: Position
    message: str
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How to check.

    Attributes:
        level: the compatibility level of all subjects; None for that of each.
        policy: how strictly differences count; None for that of each.
    """

    level: Level | None = None
    policy: Policy | None = None


def check_tree(desired: Desired, against: Versions | None, options: Options, label: str) -> list[Problem]:
    """Return the problems of all schemas of a tree, in the order of its subjects.

    Args:
        desired: the tree.
        against: the versions to compare with; None only parses.
        options: how to check.
        label: the name of the tree, for messages.
    """
    own = TreeVersions(desired, label)
    parser, earlier = Parser([own, against] if against else [own]), Parser([against] if against else [])
    problems: list[Problem] = []
    for subject in desired.subjects.values():
        if subject.text is not None:
            level = _level(desired, subject, against, options)
            grouped = _Grouped(against, desired.group(subject.name)) if against else None
            policy = _policy(desired, subject, against, options)
            problems += _check_subject(subject, parser, earlier, grouped, level, policy)
    gone = set(against.subjects()) - set(own.subjects()) if isinstance(against, TreeVersions) else ()
    for name in sorted(gone):
        message = f"Subject {name} is in {against.label} and no longer here." if against else ""
        problems.append(Problem(Severity.NOTE, REMOVED, name, "", Position(), message))
    return problems


def _level(desired: Desired, subject: Subject, against: Versions | None, options: Options) -> Level:
    if options.level is not None:
        return options.level
    found = desired.level(subject.name) or (against.level(subject.name) if against else None)
    return Level(found) if found else _DEFAULT


def _policy(desired: Desired, subject: Subject, against: Versions | None, options: Options) -> Policy:
    if options.policy is not None:
        return options.policy
    found = desired.policy(subject.name) or (against.policy(subject.name) if against else None)
    return Policy.__members__.get(found or "", Policy.STRICT)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The versions that a subject is compared with: those of its compatibility group, if there are groups."""

    source: Versions
    group: str | None

    def versions(self, subject: Subject) -> Sequence[Held]:
        """Return the versions, oldest first."""
        found = self.source.versions(subject.name)
        group = self.group or (self.source.group(subject.name) if found else None)
        if not group:
            return found
        metadata = found[-1].metadata if subject.metadata is None and found else subject.metadata
        return [one for one in found if _property(one.metadata, group) == _property(metadata, group)]


def _property(metadata: Mapping[str, Any] | None, name: str) -> str | None:
    value = ((metadata or {}).get("properties") or {}).get(name)
    return None if value is None else str(value)


def _check_subject(
    subject: Subject, parser: Parser, earlier: Parser, against: _Grouped | None, level: Level, policy: Policy
) -> Iterator[Problem]:
    text = subject.text or ""

    def problem(severity: Severity, rule: str, message: str, position: Position = Position()) -> Problem:  # noqa: B008 - frozen
        return Problem(severity, rule, subject.name, subject.file, position, message)

    try:
        new = parser.parse(held(subject), strict=True)
    except SchemaParseError as error:
        yield problem(Severity.ERROR, INVALID, str(error), position_in_error(text, str(error), subject.format))
        return
    except GitopsError as error:
        yield problem(Severity.UNJUDGED, UNJUDGED, str(error))
        return
    if against is None or not LEVELS[level].directions:
        return
    versions = against.versions(subject)
    looked_at = versions if LEVELS[level].transitive else versions[-1:]
    if not subject.references and all((one.text, one.references) == (text, ()) for one in looked_at):
        return  # most files of a commit are those of the commit before
    try:
        previous = [Previous(one.version, earlier.parse(one, strict=False)) for one in looked_at]
        result = check(new, previous, level, policy, Limits().started())
    except (SchemaParseError, GitopsError) as error:
        yield problem(
            Severity.UNJUDGED, UNJUDGED, f"The earlier version in {against.source.label} cannot be used: {error}"
        )
        return
    for incompatibility in result.incompatibilities:
        # A file of a tree has no version; the words then say "the previous version".
        known = None if isinstance(against.source, TreeVersions) else incompatibility.version
        found = finding(replace(incompatibility, version=known))
        position = position_of(text, found.path, found.field, subject.format)
        yield Problem(Severity.ERROR, found.rule, subject.name, subject.file, position, found.advice, found)
