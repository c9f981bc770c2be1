"""Does a pattern of `patternProperties` match a property name? Found anywhere in the name, as in the dialects.

Patterns come from strangers, so Python's `re`, which may backtrack for ever, is not asked. jsonschema-rs runs plain
patterns in linear time and those with look-around or back-references under a limit. A pattern that it cannot read
matches nothing.
"""

from functools import lru_cache
from typing import Final

from jsonschema_rs import Draft7Validator, FancyRegexOptions

__all__ = ["found_in"]

_BACKTRACKS: Final = 1_000
_LONGEST: Final = 10_000


def found_in(pattern: str, name: str) -> bool:
    """Whether the pattern is found in the name."""
    if len(pattern) > _LONGEST or len(name) > _LONGEST:
        return False
    validator = _compiled(pattern)
    try:
        return validator is not None and bool(validator.is_valid(name))
    except ValueError:
        return False


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> Draft7Validator | None:
    options = FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=1 << 20)
    try:
        return Draft7Validator({"pattern": pattern}, pattern_options=options, offline=True)
    except ValueError:
        return None
