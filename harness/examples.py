"""How many random examples a test draws."""

from typing import Final

from hypothesis import settings

__all__ = ["examples"]

_PART: Final = 4


def examples(number: int, part: int = _PART) -> int:
    """Return `number` where each run draws new examples (the profile `explore` of `make test-all`), else a part of it.

    `make test` draws the same examples each time. More of them prove more the first time only.

    Args:
        number: the number of examples.
        part: the part of them that `make test` draws: one of so many.
    """
    return number if settings.get_current_profile_name() == "explore" else max(1, number // part)
