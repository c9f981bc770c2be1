"""A number that fulfils some leaves, or the proof that there is none; exact, over the rationals that JSON can write."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Final

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.goals import Answer, Found, Leaves, Nothing, Work
from strata.compat.json_schema.containment.values import Key, exact

__all__ = ["number"]

_MOST_MULTIPLES: Final = 5_000
_MOST_CANDIDATES: Final = 400
_ONE: Final = Fraction(1)


@dataclass(slots=True)
class _Demands:
    """What a number has to fulfil."""

    low: Fraction | None = None
    high: Fraction | None = None
    is_low_open: bool = False
    is_high_open: bool = False
    divisors: list[Fraction] = field(default_factory=list)
    not_divisors: list[Fraction] = field(default_factory=list)
    is_whole: bool | None = None
    is_written_whole: bool | None = None  # in draft 4
    is_contrary: bool = False
    excluded: set[Key] = field(default_factory=set)

    def limit(self, value: Fraction, *, is_low: bool, is_open: bool) -> None:
        if is_low:
            if self.low is None or (value, is_open) > (self.low, self.is_low_open):
                self.low, self.is_low_open = value, is_open
        elif self.high is None or (-value, is_open) > (-self.high, self.is_high_open):
            self.high, self.is_high_open = value, is_open

    def whole(self, rule: r.Types, is_positive: bool) -> None:
        known = self.is_written_whole if rule.written else self.is_whole
        if known is (not is_positive):
            self.is_contrary = True
        if rule.written:
            self.is_written_whole = is_positive
        else:
            self.is_whole = is_positive

    def is_in(self, value: Fraction) -> bool:
        if self.low is not None and (value < self.low or (value == self.low and self.is_low_open)):
            return False
        return self.high is None or not (value > self.high or (value == self.high and self.is_high_open))

    def fits(self, value: Fraction) -> bool:
        return (
            self.is_in(value)
            and value not in self.excluded
            and (self.is_whole is None or (value.denominator == 1) is self.is_whole)
            and all((value / divisor).denominator == 1 for divisor in self.divisors)
            and not any((value / divisor).denominator == 1 for divisor in self.not_divisors)
        )


def number(leaves: Leaves, work: Work) -> Answer:
    """Return a number that fulfils the leaves, near 0 or near a bound.

    Raises:
        OutOfWorkError: The work is used up.
    """
    demands = _demands(leaves)
    if demands.is_contrary or (demands.is_written_whole and demands.is_whole is False):
        return Nothing.PROVED
    grid = list(demands.divisors)
    if demands.is_whole or demands.is_written_whole:
        grid.append(_ONE)
    if grid:
        return _on_grid(_common(grid), demands, work)
    return _between(demands, work)


def _demands(leaves: Leaves) -> _Demands:
    made = _Demands()
    for rule, is_positive, _ in leaves:
        match rule:
            case r.Limit(value, is_low, is_open):
                made.limit(value, is_low=is_low is is_positive, is_open=is_open is is_positive)
            case r.MultipleOf(divisor):
                (made.divisors if is_positive else made.not_divisors).append(divisor)
            case r.Types():
                made.whole(rule, is_positive)
            case r.Values(keys) if not is_positive:
                made.excluded |= {key for key in keys if isinstance(key, Fraction)}
    return made


def _common(grid: list[Fraction]) -> Fraction:
    """Return the number of which all common multiples are multiples."""
    numerator, denominator = 1, 0
    for step in grid:
        numerator, denominator = math.lcm(numerator, step.numerator), math.gcd(denominator, step.denominator)
    return Fraction(numerator, denominator)


def _on_grid(step: Fraction, demands: _Demands, work: Work) -> Answer:
    if any((step / divisor).denominator == 1 for divisor in demands.not_divisors):
        return Nothing.PROVED
    if demands.is_whole is False and step.denominator == 1:
        return Nothing.PROVED
    low = None if demands.low is None else math.ceil(demands.low / step)
    high = None if demands.high is None else math.floor(demands.high / step)
    for place in islice(_near_zero(low, high), _MOST_MULTIPLES):
        work.charge()
        value = step * place
        if demands.fits(value):
            made = _written(value, demands)
            return Nothing.UNSURE if made is None else Found(made)
    is_whole_range = low is not None and high is not None and high - low < _MOST_MULTIPLES
    return Nothing.PROVED if is_whole_range else Nothing.UNSURE


def _near_zero(low: int | None, high: int | None) -> Iterator[int]:
    """Yield the integers of a range, those near 0 first; then the far end."""
    if low is not None and high is not None and low > high:
        return
    start = 0
    if low is not None and low > 0:
        start = low
    if high is not None and high < 0:
        start = high
    yield start
    offset = 1
    while True:
        above, below = start + offset, start - offset
        is_above, is_below = high is None or above <= high, low is None or below >= low
        if not is_above and not is_below:
            return
        if is_above:
            yield above
        if is_below:
            yield below
        offset += 1


def _between(demands: _Demands, work: Work) -> Answer:
    low, high = demands.low, demands.high
    if low is not None and high is not None:
        if low > high or (low == high and (demands.is_low_open or demands.is_high_open)):
            return Nothing.PROVED
        if low == high:
            made = _written(low, demands) if demands.fits(low) else None
            return Found(made) if made is not None else Nothing.UNSURE if demands.fits(low) else Nothing.PROVED
    for value in islice(_candidates(low, high), _MOST_CANDIDATES):
        work.charge()
        if demands.fits(value) and all(_is_clear(value, divisor) for divisor in demands.not_divisors):
            made = _written(value, demands)
            if made is not None:
                return Found(made)
    return Nothing.UNSURE


def _is_clear(value: Fraction, divisor: Fraction) -> bool:
    """Return whether validators that compute with doubles see that a number is not a multiple of another."""
    part = float(value / divisor) % 1
    return 1e-6 < part < 1 - 1e-6


def _candidates(low: Fraction | None, high: Fraction | None) -> Iterator[Fraction]:
    yield from map(Fraction, (0, 1, -1, 2, 10, -10, 100))
    anchors = [bound for bound in (low, high) if bound is not None] or [Fraction(0)]
    yield from anchors
    steps = (_ONE, Fraction(1, 2), Fraction(1, 4), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000), Fraction(3, 8))
    for anchor in anchors:
        whole = Fraction(math.floor(anchor))
        for step in steps:
            yield from (anchor + step, anchor - step, whole + step, whole - step, whole + 1)
    if low is not None and high is not None:
        width = high - low
        for part in (2, 4, 8, 3, 5, 7, 10, 100, 1000):
            for times in range(1, min(part, 12)):
                yield low + width * times / part
    yield from (Fraction(place, 8) for place in _near_zero(-60, 60))
    for anchor in anchors:
        yield from (anchor + Fraction(place * 3, 7) for place in (*range(1, 30), *range(-29, 0)))


def _written(value: Fraction, demands: _Demands) -> int | float | None:
    """Return a number as a document has it, or None if a double has no place for it."""
    if value.denominator == 1:
        if demands.is_written_whole is False:
            made = float(value)
            return made if Fraction(made) == value else None
        return int(value)
    made = float(value)
    # The shortest text of the double is what is written; it has to fulfil the demands as well.
    written = exact(made)
    return made if demands.fits(written) and _is_kept(written, demands.divisors) else None


def _is_kept(value: Fraction, divisors: Iterable[Fraction]) -> bool:
    """Return whether validators that compute with doubles see that a number is a multiple of others."""
    return all((float(value) / float(divisor)).is_integer() for divisor in divisors)
