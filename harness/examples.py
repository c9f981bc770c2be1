"""How many random examples a test draws."""

from typing import Final

from hypothesis import settings

__all__ = ["examples"]

_PART: Final = 4


def examples(number: int) -> int:
    """Return `number` where each run draws new examples (the profile `explore` of `make test-all`), else a quarter.

    `make test` draws the same examples each time. More of them prove more the first time only.
    """
    return number if settings.get_current_profile_name() == "explore" else max(1, number // _PART)
