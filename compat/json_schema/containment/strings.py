"""A string that fulfils some leaves, or the proof that there is none."""

from collections.abc import Iterator
from typing import Final

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.evaluation import allows_rule
from strata.compat.json_schema.containment.formats import EXAMPLES
from strata.compat.json_schema.containment.goals import Answer, Found, Leaves, Nothing, Work
from strata.compat.json_schema.containment.languages import Languages, Term, TooManyStatesError
from strata.compat.json_schema.containment.patterns import language_of

__all__ = ["string"]

_COST: Final = 20
_MOST_TRIES: Final = 40
_GUESSES: Final = ("", "a", "A", "0", "-", "ab", "aA0", "a-b", "Aa1!aaaa", "00", "a b", "é", "#", "abc123", "a" * 12)


def string(leaves: Leaves, languages: Languages, work: Work, longest: int) -> Answer:
    """Return a short string that fulfils the leaves.

    Raises:
        OutOfWorkError: The work is used up.
    """
    work.charge(_COST)
    low, high = 0, None
    parts: list[Term] = []
    excluded: list[str] = []
    formats: list[r.Format] = []
    not_formats: set[str] = set()
    is_exact = True
    for rule, is_positive, _ in leaves:
        match rule:
            case r.Size(_, least, most):
                if not is_positive:
                    least, most = (0, least - 1) if most is None else (most + 1, None)
                low = max(low, least)
                high = most if high is None else high if most is None else min(high, most)
            case r.Pattern(text):
                language = language_of(text, languages)
                if language is None:
                    is_exact = False
                else:
                    parts.append(language if is_positive else languages.complement(language))
            case r.Values(keys) if not is_positive:
                excluded += [key for key in keys if isinstance(key, str)]
            case r.Format():
                if is_positive:
                    formats.append(rule)
                else:
                    not_formats.add(rule.name)
    if high is not None and high < low:
        return Nothing.PROVED
    if any(one.name in not_formats for one in formats):
        return Nothing.PROVED
    if low > longest:
        return Nothing.TOO_LARGE
    demanded = [one for one in formats if one.name in EXAMPLES]
    candidates: Iterator[str] = iter(())
    try:
        parts += [languages.complement(languages.literal(one)) for one in excluded]
        language = languages.intersection(parts)
        shortest = _shortest(language, languages, low, high, work)
        if shortest is None:
            return Nothing.PROVED
        if is_exact and not demanded and not not_formats:
            return Found(shortest)
        candidates = _more(shortest, language, languages, low, high, work)
    except TooManyStatesError:
        pass
    examples = [text for one in demanded for text in EXAMPLES[one.name]]
    soft = frozenset(leaf for leaf in leaves if not isinstance(leaf.rule, r.Format) or leaf.rule.is_asserted)
    for wanted in (leaves, soft) if soft != leaves else (leaves,):
        for text in (*examples, *_GUESSES):
            work.charge()
            if _fits(text, wanted):
                return Found(text)
    for text in candidates:
        if _fits(text, leaves) or _fits(text, soft):
            return Found(text)
    return Nothing.UNSURE


def _fits(text: str, leaves: Leaves) -> bool:
    return all(allows_rule(rule, text) in (is_positive, None) for rule, is_positive, _ in leaves)


def _shortest(language: Term, languages: Languages, low: int, high: int | None, work: Work) -> str | None:
    work.charge(_COST)
    found = languages.shortest(language, low, high)
    work.charge(len(found or ""))
    return found


def _more(first: str, language: Term, languages: Languages, low: int, high: int | None, work: Work) -> Iterator[str]:
    """Yield members of a language, the shortest first."""
    text: str | None = first
    for _ in range(_MOST_TRIES):
        if text is None:
            return
        yield text
        try:
            language = languages.intersection((language, languages.complement(languages.literal(text))))
            text = _shortest(language, languages, low, high, work)
        except TooManyStatesError:
            return
