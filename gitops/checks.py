"""Check the schemas of a tree: can they be parsed, and may they follow the versions that exist already? Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from strata.compat.check import CheckResult, Previous, check
from strata.compat.formats import FORMATS
from strata.compat.levels import LEVELS, Level, Policy
from strata.compat.limits import Limits
from strata.compat.logical.advice import table_findings
from strata.compat.logical.policy import check_engines
from strata.compat.result import Finding
from strata.compat.schema import ParsedSchema, SchemaParseError
from strata.compat.witness.search import SILENT_CHANGE, budget_within, proven, silent_changes
from strata.gitops.desired import Desired, Subject
from strata.gitops.errors import GitopsError
from strata.gitops.positions import Position, position_in_error, position_of
from strata.gitops.versions import Held, Parser, TreeVersions, Versions, held

__all__ = ["INVALID", "UNJUDGED", "Options", "Problem", "Severity", "check_tree"]

_DEFAULT = Level.BACKWARD
_SILENT, _REFUSE = "strata.silent", "refuse"
INVALID, UNJUDGED, REMOVED, UNNAMED = "INVALID_SCHEMA", "NOT_JUDGED", "SUBJECT_REMOVED", "NO_NAME"


class Severity(StrEnum):
    """How much a problem matters: an error fails the check, an unjudged schema makes it incomplete."""

    ERROR = "error"
    UNJUDGED = "unjudged"
    NOTE = "note"


_IN_CONTAINERS: Final = re.compile(r"\[\]|\{(?:key)?\}")  # elements, values and keys in the path of a table
_SEVERITIES: Final = {"NO_TABLE": Severity.NOTE}  # others are errors


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
        silent: how much it matters that a change is accepted although values change without an error.
        tables: the engines whose tables must be able to follow.
    """

    level: Level | None = None
    policy: Policy | None = None
    silent: Severity = Severity.NOTE
    tables: tuple[str, ...] = ()


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
    broken: set[str] = set()
    for subject in desired.subjects.values():
        if of_broken := [
            reference.subject
            for reference in subject.references
            if reference.version is None and reference.subject in broken
        ]:
            # Its own text would be blamed for the mistake of another.
            message = f"It refers to {', '.join(of_broken)}, which is not valid."
            problems.append(Problem(Severity.UNJUDGED, UNJUDGED, subject.name, subject.file, Position(), message))
            broken.add(subject.name)
        elif subject.text is not None:
            level = _level(desired, subject, against, options)
            grouped = _Grouped(against, desired.group(subject.name)) if against else None
            policy = _policy(desired, subject, against, options)
            problems_of_subject = list(_check_subject(subject, parser, earlier, grouped, level, policy, options))
            broken |= {problem.subject for problem in problems_of_subject if problem.rule == INVALID}
            problems += problems_of_subject
    return problems + [
        Problem(Severity.NOTE, REMOVED, name, "", Position(), f"Subject {name} is in {source} and no longer here.")
        for source, name in _gone(desired, against)
    ]


def _gone(desired: Desired, against: Versions | None) -> list[tuple[str, str]]:
    """Return the subjects that only the earlier tree has, each with the label of that tree."""
    if not isinstance(against, TreeVersions):
        return []
    unnamed = {subject.file for subject in desired.subjects.values() if subject.unnamed}
    here = {subject.name for subject in desired.subjects.values() if subject.text is not None}
    gone = sorted(set(against.subjects()) - here)
    return [
        (against.label, name) for name in gone if not unnamed & {version.file for version in against.versions(name)}
    ]


def _level(desired: Desired, subject: Subject, against: Versions | None, options: Options) -> Level:
    if options.level is not None:
        return options.level
    level = desired.level(subject.name) or (against.level(subject.name) if against else None)
    return Level(level) if level else _DEFAULT


def _policy(desired: Desired, subject: Subject, against: Versions | None, options: Options) -> Policy:
    if options.policy is not None:
        return options.policy
    policy = desired.policy(subject.name) or (against.policy(subject.name) if against else None)
    return Policy.__members__.get(policy or "", Policy.STRICT)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The versions that a subject is compared with: those of its compatibility group, if there are groups."""

    source: Versions
    group: str | None

    def versions(self, subject: Subject) -> Sequence[Held]:
        """Return the versions, oldest first."""
        versions = self.source.versions(subject.name)
        group = self.group or (self.source.group(subject.name) if versions else None)
        if not group:
            return versions
        metadata = versions[-1].metadata if subject.metadata is None and versions else subject.metadata
        return [version for version in versions if _property(version.metadata, group) == _property(metadata, group)]


def _property(metadata: Mapping[str, Any] | None, name: str) -> str | None:
    value = ((metadata or {}).get("properties") or {}).get(name)
    return None if value is None else str(value)


def _check_subject(
    subject: Subject,
    parser: Parser,
    earlier: Parser,
    against: _Grouped | None,
    level: Level,
    policy: Policy,
    options: Options,
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
    for refusal in FORMATS[new.format].refusals(new, path=subject.file):
        position = Position(refusal.line, refusal.column) if refusal.line else Position()
        yield problem(Severity.ERROR, refusal.rule, refusal.message, position)
    if subject.unnamed:
        yield problem(Severity.ERROR, UNNAMED, subject.unnamed)
        return
    is_checked = policy is Policy.LOGICAL or (against is not None and bool(LEVELS[level].directions))
    if not is_checked and not options.tables:
        return
    versions = against.versions(subject) if against else ()
    renamed = not versions and subject.file_name not in ("", subject.name)
    if renamed and against and against.source.versions(subject.file_name):
        yield problem(Severity.UNJUDGED, UNJUDGED, _renamed(subject, against.source.label))
        return
    looked_at = versions if LEVELS[level].transitive or options.tables else versions[-1:]
    if looked_at and not subject.references and all((held.text, held.references) == (text, ()) for held in looked_at):
        return  # most files of a commit are those of the commit before
    try:
        previous = [Previous(held.version, earlier.parse(held, strict=False)) for held in looked_at]
        result = check(new, previous, level, policy, Limits().started()) if is_checked else CheckResult(compatible=True)
        tables = [(version.version, version.schema, version.union) for version in previous]
        engines = check_engines(new, tables, options.tables, Limits().started()) if options.tables else []
    except (SchemaParseError, GitopsError) as error:
        label = against.source.label if against else ""
        yield problem(Severity.UNJUDGED, UNJUDGED, f"The earlier version in {label} cannot be used: {error}")
        return
    is_numbered = against is None or not isinstance(against.source, TreeVersions)
    metadata = versions[-1].metadata if subject.metadata is None and versions else subject.metadata
    refuses = _property(metadata, _SILENT) == _REFUSE
    result = replace(result, tables=(*result.tables, *engines))
    compared = previous if LEVELS[level].transitive else previous[-1:]
    for finding in _findings(new, compared, level, result, is_numbered=is_numbered):
        path, names = ("", _IN_CONTAINERS.sub("", finding.field)) if finding.table else (finding.path, finding.field)
        position = position_of(text, path, names, subject.format)
        severity = _SEVERITIES.get(finding.rule, Severity.ERROR)
        if finding.rule == SILENT_CHANGE and not refuses:
            severity = options.silent
        yield Problem(severity, finding.rule, subject.name, subject.file, position, finding.advice, finding)


def _renamed(subject: Subject, label: str) -> str:
    entry = f"{{name: {subject.file_name}, file: {subject.file}}}"
    return (
        f"The file is the subject {subject.name}, since its folder is that of its package, and {label} has a subject "
        f"{subject.file_name} instead. If that is meant, say so in a strata.yaml: subjects: [{entry}]"
    )


def _findings(
    new: ParsedSchema, previous: Sequence[Previous], level: Level, result: CheckResult, *, is_numbered: bool
) -> Iterator[Finding]:
    """Yield the findings of a check with their proofs, then the changes of values that it accepts.

    A file of a tree has no version, and the words say "the previous version".
    """
    budget = budget_within(Limits())
    refused = result.incompatibilities
    yield from proven(new, previous, refused, budget, is_numbered=is_numbered)
    for tables in result.tables:
        yield from table_findings(tables if is_numbered else replace(tables, version=None))
    yield from silent_changes(new, previous, level, refused, budget, is_numbered=is_numbered)
