"""The outcome of a replay as text and as JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from strata.gitops.replay import outcome as kinds
from strata.gitops.replay.outcome import Finding, Key, Outcome

__all__ = ["as_json", "as_text", "has_problems"]

_HEADINGS = {
    kinds.UNREADABLE: "the candidate cannot read",
    kinds.UNKNOWN_SCHEMA: "the registry does not know the schema of",
    kinds.CHANGED: "the candidate reads another value, without an error, in",
    kinds.NOT_WRITABLE: "the candidate could not have written",
}


def has_problems(outcome: Outcome) -> bool:
    """Return whether the candidate would harm a reader, or there are records without a usable schema."""
    return bool(outcome.findings)


def _sorted(outcome: Outcome) -> list[tuple[Key, Finding]]:
    order = list(_HEADINGS)
    return sorted(outcome.findings.items(), key=lambda item: (order.index(item[0].kind), -item[1].count, item[0]))


def as_json(outcome: Outcome, versions: Mapping[str, Sequence[str]], *, is_whole: bool) -> str:
    """Return the outcome as JSON.

    Args:
        outcome: the outcome.
        versions: the versions of each writer schema, as `subject:version`.
        is_whole: whether everything that was asked for has been read.
    """
    findings = []
    for key, finding in _sorted(outcome):
        row: dict[str, Any] = {
            "kind": key.kind,
            "path": key.path,
            "reason": key.reason,
            "schema": key.schema,
            "versions": list(versions.get(key.schema, ())),
            "count": finding.count,
            "first": [{"partition": place.partition, "offset": place.offset} for place in finding.first],
        }
        if finding.example is not None:
            row["writtenAs"], row["readAs"] = finding.example
        findings.append(row)
    schemas = [
        {"schema": name, "versions": list(versions.get(name, ())), "records": count}
        for name, count in outcome.schemas.most_common()
    ]
    return json.dumps(
        {
            "records": outcome.records,
            "withoutValue": outcome.empty,
            "complete": is_whole,
            "schemas": schemas,
            "findings": findings,
        },
        indent=2,
    )


def as_text(
    outcome: Outcome, versions: Mapping[str, Sequence[str]], *, is_whole: bool, part: str = "value"
) -> Iterator[str]:
    """Yield the lines of the outcome for people; see `as_json`. The part of a record that was read is value or key."""
    without = f", {outcome.empty:,} of them without {part}" if outcome.empty else ""
    yield f"{outcome.records:,} records{without}{'' if is_whole else '; interrupted, this is what was seen until then'}"
    for name, count in outcome.schemas.most_common():
        yield f"  {count:>12,}  schema {name}{_of(versions.get(name, ()))}"
    heading = ""
    for key, finding in _sorted(outcome):
        if key.kind != heading:
            heading = key.kind
            yield f"{_HEADINGS[heading]}:"
        where = ", ".join(f"{place.partition}/{place.offset}" for place in finding.first)
        path = f"{key.path}: " if key.path else ""
        schema = f", schema {key.schema}{_of(versions.get(key.schema, ()))}" if key.schema else ""
        yield f"  {finding.count:>12,}  {path}{key.reason}{schema}; first at {where}"
        if finding.example is not None:
            yield f"                written {finding.example[0]}, read {finding.example[1]}"
    if not outcome.records:
        yield "there is nothing to read from there on" if is_whole else "nothing was read until then"
    elif outcome.records == outcome.empty:
        yield f"no record has a {part} to read"
    elif not outcome.findings:
        yield "the candidate reads every record as it was written" if is_whole else "nothing found until then"


def _of(versions: Sequence[str]) -> str:
    return f" ({', '.join(versions)})" if versions else ""
