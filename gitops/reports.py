"""The result of a check as text for people, JSON, GitHub annotations, SARIF 2.1.0 or JUnit XML."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from strata import __version__
from strata.compat.witness.text import lines_of
from strata.gitops.checks import INVALID, UNJUDGED, Problem, Severity
from strata.gitops.desired import Desired
from strata.gitops.findings import finding_json

__all__ = ["REPORTS"]

_NOT_IN_XML = re.compile("[^\\t\\n -\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_HOME = "https://github.com/strata-registry/strata"
_MEANINGS = {
    INVALID: "The text is not a schema of its format.",
    UNJUDGED: "What the check needs for a verdict is missing.",
}
_SARIF_LEVELS = {Severity.ERROR: "error", Severity.UNJUDGED: "warning", Severity.NOTE: "note"}
_GITHUB_LEVELS = {Severity.ERROR: "error", Severity.UNJUDGED: "warning", Severity.NOTE: "notice"}


def _people(problems: Sequence[Problem], checked: Desired) -> str:
    lines: list[str] = []
    for problem in problems:
        lines.append(
            _line(f"{_place(problem)}: {problem.severity}: {problem.message} [{problem.subject}, {problem.rule}]")
        )
        lines += (f"  {_line(text)}" for text in _proof(problem))
    counts = {severity: sum(problem.severity is severity for problem in problems) for severity in Severity}
    total = sum(subject.text is not None for subject in checked.subjects.values())
    summary = f"{_count(total, 'schema')} checked, {_count(counts[Severity.ERROR], 'error')}"
    if counts[Severity.UNJUDGED]:
        summary += f", {counts[Severity.UNJUDGED]} not judged"
    return "\n".join([*lines, summary]) + "\n"


def _proof(problem: Problem) -> list[str]:
    return [] if problem.finding is None else list(lines_of(problem.finding))


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _place(problem: Problem) -> str:
    at = f":{problem.position.line}:{problem.position.column}"
    return f"{problem.file}{at}" if problem.file else problem.subject


def _json(problems: Sequence[Problem], checked: Desired) -> str:
    subjects = [
        {"subject": subject.name, "file": subject.file}
        for subject in checked.subjects.values()
        if subject.text is not None
    ]
    return (
        json.dumps(
            {"checked": subjects, "problems": [_as_json(problem) for problem in problems]}, indent=2, default=str
        )
        + "\n"
    )


def _as_json(problem: Problem) -> dict[str, object]:
    content: dict[str, object] = {
        "severity": problem.severity, "rule": problem.rule, "subject": problem.subject, "file": problem.file,
        "line": problem.position.line, "column": problem.position.column, "message": problem.message,
    }  # fmt: skip
    return content if problem.finding is None else content | finding_json(problem.finding)


def _github(problems: Sequence[Problem], _: Desired) -> str:
    """Return workflow commands, which GitHub shows as annotations of the pull request."""
    lines = []
    for problem in problems:
        where = (
            f"file={_property(problem.file)},line={problem.position.line},col={problem.position.column},"
            if problem.file
            else ""
        )
        title = _property(f"{problem.subject}: {problem.rule}")
        lines.append(f"::{_GITHUB_LEVELS[problem.severity]} {where}title={title}::{_data(problem.message)}\n")
    return "".join(lines)


def _xml(text: str) -> str:
    return _NOT_IN_XML.sub("?", text)


def _line(text: str) -> str:
    """Return a text on one line: names of files and types must not end it, or move the cursor."""
    return "".join(character if character.isprintable() or character == " " else "?" for character in text)


def _data(text: str) -> str:
    return _line(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(problems: Sequence[Problem], _: Desired) -> str:
    problems = [
        problem for problem in problems if problem.file
    ]  # GitHub takes no report with a result that has no file
    rules = sorted({problem.rule for problem in problems})
    results = [
        {
            "ruleId": problem.rule,
            "ruleIndex": rules.index(problem.rule),
            "level": _SARIF_LEVELS[problem.severity],
            "message": {"text": "\n".join([problem.message, *_proof(problem)])},
            "locations": [_location(problem)],
        }
        for problem in problems
    ]
    about = {"name": "strata", "version": __version__, "informationUri": _HOME}
    driver = {**about, "rules": [_rule(rule) for rule in rules]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: str) -> dict[str, object]:
    """Return a rule with the texts that GitHub shows beside its results."""
    words = rule.replace("_", " ").capitalize()
    meaning = _MEANINGS.get(rule, "The schema may not follow an earlier version at its compatibility level.")
    help_text = f"{meaning} See {_HOME}/blob/main/docs/compatibility.md"
    return {
        "id": rule,
        "shortDescription": {"text": f"{words}."},
        "fullDescription": {"text": f"{words}. {meaning}"},
        "help": {"text": help_text},
    }


def _location(problem: Problem) -> dict[str, object]:
    logical = {"logicalLocations": [{"name": problem.subject, "kind": "resource"}]}
    region = {"startLine": problem.position.line, "startColumn": problem.position.column}
    return {"physicalLocation": {"artifactLocation": {"uri": quote(problem.file)}, "region": region}, **logical}


def _junit(problems: Sequence[Problem], checked: Desired) -> str:
    """Return one test case for each schema, as Jenkins and GitLab read it."""
    by_subject: dict[str, list[Problem]] = {}
    for problem in problems:
        by_subject.setdefault(problem.subject, []).append(problem)
    cases: list[str] = []
    failures = errors = 0
    for subject in (
        checked_subject for checked_subject in checked.subjects.values() if checked_subject.text is not None
    ):
        inner = []
        for problem in by_subject.get(subject.name, ()):
            if problem.severity is Severity.NOTE:
                continue
            tag = "failure" if problem.severity is Severity.ERROR else "error"
            shown = escape(_xml(f"{_place(problem)}: {problem.message}"))
            inner.append(
                f'<{tag} type="{escape(problem.rule)}" message="{escape(_xml(problem.message))}">{shown}</{tag}>'
            )
        failures += any(element.startswith("<failure") for element in inner)
        errors += any(element.startswith("<error") for element in inner)
        attributes = f'classname="{escape(_xml(subject.file))}" name="{escape(_xml(subject.name))}"'
        cases.append(f"  <testcase {attributes}>{''.join(inner)}</testcase>\n")
    counts = f'tests="{len(cases)}" failures="{failures}" errors="{errors}"'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="strata check" {counts}>\n'
        + "".join(cases)
        + "</testsuite>\n"
    )


REPORTS: Mapping[str, Callable[[Sequence[Problem], Desired], str]] = {
    "text": _people,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
    "junit": _junit,
}
"""Format of a report -> the function that writes it."""
