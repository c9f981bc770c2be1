"""Findings: the reasons for a verdict in a form that CI can read, in addition to the reference's messages.

Findings show what the two schemas have at a place. Long texts and lists are cut, and numbers that JSON readers may not
represent become strings.
"""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from strata.compat.proofs import Proof, as_json
from strata.compat.result import Finding, Value

__all__ = ["finding_json", "findings_json"]

_LONGEST_TEXT: Final = 1000
_MOST_ITEMS: Final = 100
_MORE: Final = "…"
_LARGEST: Final = 2**63 - 1


def findings_json(findings: Iterable[Finding], most: int) -> list[dict[str, object]]:
    """Return findings as JSON up to a total length, but at least the first.

    Args:
        findings: the findings.
        most: the most characters of all findings together.
    """
    shown: list[dict[str, object]] = []
    length = 0
    for finding in findings:
        entry = finding_json(finding)
        length += len(str(entry))
        if length > most and shown:
            break
        shown.append(entry)
    return shown


def finding_json(finding: Finding) -> dict[str, object]:
    """Return a finding as JSON."""
    return {
        "rule": finding.rule,
        "path": _text(finding.path),
        "field": _text(finding.field),
        "direction": finding.direction and finding.direction.value,
        "version": finding.version,
        "previous": _shown(finding.previous),
        "new": _shown(finding.new),
        "advice": _text(finding.advice),
        **({"table": finding.table} if finding.table else {}),
        **({} if finding.proof is None else _proof_json(finding.proof)),
    }


def _proof_json(proof: Proof) -> dict[str, object]:
    return {name: _encodable(value) for name, value in as_json(proof).items()}


def _encodable(value: object) -> object:
    """Return a JSON value whose texts UTF-8 can encode; proofs are small, so nothing is cut."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(name): _encodable(part) for name, part in value.items()}
    return [_encodable(part) for part in value] if isinstance(value, list) else value


def _shown(value: Value) -> object:
    if isinstance(value, str):
        return _text(value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + _MORE)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float | Decimal):
        return _number(value)
    if isinstance(value, Mapping):
        return {_text(name): _shown(value[name]) for name in list(value)[:_MOST_ITEMS]}
    return [_shown(item) for item in value[:_MOST_ITEMS]] + [_MORE] * (len(value) > _MOST_ITEMS)


def _number(value: int | float | Decimal) -> int | float | str:
    """Return a 64-bit integer, or a number that a double holds exactly; else its digits as a string."""
    if -_LARGEST <= value <= _LARGEST and value == int(value):
        return int(value)
    try:
        digits = str(value)
        double = float(value)
    except (OverflowError, ValueError):
        return "a number out of range"
    if not isinstance(value, int) and math.isfinite(double) and value in (Decimal(repr(double)), Decimal(double)):
        return double
    return digits if len(digits) <= _LONGEST_TEXT else digits[:_LONGEST_TEXT] + _MORE


def _text(text: str) -> str:
    return text.encode(errors="replace").decode()
