"""Matching of `patternProperties` patterns: a pattern may match anywhere in a property name, as in all dialects.

Patterns come from strangers, so Python's `re`, which may backtrack forever, is not used. jsonschema-rs runs plain
patterns in linear time, and those with look-around or back-references under a limit. A pattern that it cannot read
matches nothing.
"""

from functools import lru_cache
from typing import Final

from jsonschema_rs import Draft7Validator, FancyRegexOptions

from strata.compat.limits import DEFAULT_LIMITS, Limits

__all__ = ["found_in"]

_COMPILED_SIZE: Final = 1 << 20  # bytes


def found_in(pattern: str, name: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether a pattern matches somewhere in a name; return false if a bound of `limits` is exceeded."""
    if len(pattern) > limits.pattern or len(name) > limits.pattern:
        return False
    validator = _compiled(pattern, limits.backtracks)
    try:
        return validator is not None and bool(validator.is_valid(name))
    except ValueError:
        return False


@lru_cache(maxsize=512)
def _compiled(pattern: str, backtracks: int) -> Draft7Validator | None:
    options = FancyRegexOptions(backtrack_limit=backtracks, size_limit=_COMPILED_SIZE)
    try:
        return Draft7Validator({"pattern": pattern}, pattern_options=options, offline=True)
    except ValueError:
        return None
