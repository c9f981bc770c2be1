"""Parsing and checking by `compat`, with their durations counted by format and outcome.

The caches of `parsing.py` belong to the process, and so does what is counted here.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from strata.compat.check import CheckResult, Previous, check
from strata.compat.formats import Format
from strata.compat.levels import Level, Policy
from strata.compat.limits import Limits, NotAtOnce, OutOfTime
from strata.compat.schema import ParsedSchema, ResolvedReference
from strata.registry.metrics.tally import Tally

__all__ = ["count_in", "timed_check", "timed_parse"]

_tallies = [Tally()]


def count_in(tally: Tally) -> None:
    """Count in the numbers of this process from now on."""
    _tallies[0] = tally


def timed_parse(
    schema_type: str,
    schema_format: Format[Any],
    text: str,
    strict: bool,
    references: Sequence[ResolvedReference],
    limits: Limits,
) -> ParsedSchema:
    """Return a parsed schema, as `Format.parse` does.

    Raises:
        SchemaParseError: the text is not valid, or takes too long.
        NotAtOnce: an event loop cannot wait for it.
    """
    began, outcome = perf_counter(), "invalid"
    try:
        parsed: ParsedSchema = schema_format.parse(text, strict=strict, references=references, limits=limits)
    except (OutOfTime, NotAtOnce):
        outcome = "given_up"
        raise
    else:
        outcome = "ok"
        return parsed
    finally:
        _count("strata_schema_parse_duration_seconds", schema_type, outcome, perf_counter() - began)


def timed_check(
    new: ParsedSchema, previous: Sequence[Previous], level: Level, policy: Policy, limits: Limits, union: str
) -> CheckResult:
    """Return the verdict on a new schema, as `check` does.

    Raises:
        OutOfTime: it takes too long.
        NotAtOnce: an event loop cannot wait for it.
    """
    began, verdict = perf_counter(), "given_up"
    try:
        result = check(new, previous, level, policy, limits, union)
        verdict = "compatible" if result.compatible else "incompatible"
        return result
    finally:
        _count("strata_compatibility_check_duration_seconds", new.format.value, verdict, perf_counter() - began)


def _count(name: str, schema_type: str, outcome: str, seconds: float) -> None:
    _tallies[0].observe(name, schema_type, outcome, value=seconds)
    if outcome == "given_up":
        _tallies[0].add("strata_limits_hit_total", "computing_time")
