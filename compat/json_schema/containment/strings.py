"""A string that fulfils some leaves, or the proof that there is none."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.evaluation import allows_rule
from strata.compat.json_schema.containment.formats import EXAMPLES, FORMS
from strata.compat.json_schema.containment.goals import Answer, Found, Leaves, Nothing, Work
from strata.compat.json_schema.containment.languages import Languages, Term, TooManyStatesError
from strata.compat.json_schema.containment.patterns import language_of

__all__ = ["string"]

_COST: Final = 20
_MOST_TRIES: Final = 40
_GUESSES: Final = ("", "a", "A", "0", "-", "ab", "aA0", "a-b", "Aa1!aaaa", "00", "a b", "é", "#", "abc123", "a" * 12)


@dataclass(slots=True)
class _Demands:
    low: int = 0
    high: int | None = None
    parts: list[Term] = field(default_factory=list)
    formats: set[r.Format] = field(default_factory=set)
    not_formats: set[r.Format] = field(default_factory=set)
    is_exact: bool = True  # whether each pattern is understood

    def size(self, rule: r.Size, *, is_positive: bool) -> None:
        low, high = rule.low, rule.high
        if not is_positive:
            low, high = (0, low - 1) if high is None else (high + 1, None)
        self.low = max(self.low, low)
        self.high = high if self.high is None else self.high if high is None else min(high, self.high)

    def pattern(self, text: str, languages: Languages, *, is_positive: bool) -> None:
        language = language_of(text, languages)
        if language is None:
            self.is_exact = False
        else:
            self.parts.append(language if is_positive else languages.complement(language))


def _demands(leaves: Leaves, languages: Languages) -> _Demands:
    made = _Demands()
    for rule, is_positive, _ in leaves:
        match rule:
            case r.Size():
                made.size(rule, is_positive=is_positive)
            case r.Pattern(text):
                made.pattern(text, languages, is_positive=is_positive)
            case r.Values(keys) if not is_positive:
                made.parts += [languages.complement(languages.literal(key)) for key in keys if isinstance(key, str)]
            case r.Format(name, is_asserted):
                (made.formats if is_positive else made.not_formats).add(rule)
                if is_positive and is_asserted and name in FORMS:
                    made.pattern(FORMS[name], languages, is_positive=True)
    return made


def string(leaves: Leaves, languages: Languages, work: Work, longest: int) -> Answer:
    """Return a short string that fulfils the leaves.

    Raises:
        OutOfWorkError: The work is used up.
        TooManyStatesError: The patterns are too large.
    """
    work.charge(_COST)
    demands = _demands(leaves, languages)
    if demands.high is not None and demands.high < demands.low:
        return Nothing.PROVED
    if any(
        format_ in demands.formats or r.Format(format_.name, True) in demands.formats for format_ in demands.not_formats
    ):
        return Nothing.PROVED  # whether validators check the format or not
    if demands.low > longest:
        return Nothing.TOO_LARGE
    candidates: Iterator[str] = iter(())
    with suppress(TooManyStatesError):
        language = languages.intersection(demands.parts)
        shortest = _shortest(language, languages, demands, work)
        if shortest is None:
            return Nothing.PROVED
        if demands.is_exact and not demands.formats and not demands.not_formats:
            return Found(shortest)
        candidates = _more(shortest, language, languages, demands, work)
    return _tried(leaves, demands, candidates, work)


def _tried(leaves: Leaves, demands: _Demands, candidates: Iterator[str], work: Work) -> Answer:
    """Return the first of several strings that fulfils the leaves; else one that ignores formats that may not count."""
    examples = [text for name in sorted(format_.name for format_ in demands.formats) for text in EXAMPLES[name]]
    soft = frozenset(leaf for leaf in leaves if not isinstance(leaf.rule, r.Format) or leaf.rule.is_asserted)
    for text in (*examples, *_GUESSES):
        work.charge()
        if _fits(text, leaves):
            return Found(text)
    rest = list(candidates)
    for wanted in (leaves, soft):
        for text in (*rest, *_GUESSES):
            work.charge()
            if _fits(text, wanted):
                return Found(text)
    return Nothing.UNSURE


def _fits(text: str, leaves: Leaves) -> bool:
    return all(allows_rule(rule, text) in (is_positive, None) for rule, is_positive, _ in leaves)


def _shortest(language: Term, languages: Languages, demands: _Demands, work: Work) -> str | None:
    work.charge(_COST)
    shortest = languages.shortest(language, demands.low, demands.high)
    work.charge(len(shortest or ""))
    return shortest


def _more(first: str, language: Term, languages: Languages, demands: _Demands, work: Work) -> Iterator[str]:
    """Yield members of a language, the shortest first."""
    text: str | None = first
    for _ in range(_MOST_TRIES):
        if text is None:
            return
        yield text
        try:
            language = languages.intersection((language, languages.complement(languages.literal(text))))
            text = _shortest(language, languages, demands, work)
        except TooManyStatesError:
            return
