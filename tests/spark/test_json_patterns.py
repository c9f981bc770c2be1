"""Regular expressions become automata only if they mean the same to the validator of the Python path."""

from collections.abc import Mapping, Sequence
from random import Random

import jsonschema_rs
import pytest

from harness.java_probes import RunJava

pytestmark = pytest.mark.spark


ATOMS = (
    "[a-c]", "[^a]", "[A-Z0-9_-]", "\\d", "\\w", "[\\d.-]", "[^\\w]", "[ab.+]", "[-a]", "[a-]", "[^0-9 ]", "[\\-b]",
    "\\.", "\\/", "\\$", "\\[", "\\\\", "\\+", *"abcAZ01_ -/:@#",
)  # fmt: skip
REPEATS = ("", "", "", "", "?", "*", "+", "{2}", "{1,2}", "{0,3}", "{2,}")
CHARACTERS = ("abcA01", "abcAZ019_ -/:@#.$[\\+\n\r\u2028é\U0001f68b\0٣")
# pattern -> a text that matches, a text that does not
COMMON = {
    "^[A-Z]{3}$": ("EUR", "EURO"),
    r"^\d{4}-\d{2}-\d{2}$": ("2026-03-01", "2026-03-01\n"),
    "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$": ("12345678-1234-1234-1234-123456789abc", "12345678"),
    "^[a-z0-9]+(-[a-z0-9]+)*$": ("a-b", "a--b"),
    "^(?:EUR|USD)$": ("USD", "USDT"),
    r"^\+?[1-9]\d{1,14}$": ("+4912345", "0049"),
    r"[a-z0-9.]+@[a-z0-9.]+\.[a-z]{2,}": ("to: a@b.example!", "a@b"),
    "a|b": ("xb", "xc"),
    "^$": ("", "a"),
    "": ("anything", None),
}
UNKNOWN = (
    "^.+$", r"^\S+$", "^(?!x)a", "^a|b$", r"\bfoo", r"\u0041", "[&&]", "a{,3}", "[]a]", "é", "a+?", "a(^b)", "(a", "a)",
    "[b-a]", "^[a-z]+-?[a-z]+$", "(a+b?){2}", "a{2000}", "(a{100}){100}", "(a|b)*a(a|b){12}", "(?i)a",
    r"(a)\1", "[[:alpha:]]", "a{99999999999}", "a{2,1}", "(", "[", "\\", "a**", "(" * 250, "a" * 501, "((a?){90}){90}",
    "(" * 249 + "é" + ")" * 249,
)  # fmt: skip


def _random(chance: Random, depth: int = 0) -> str:
    def atom() -> str:
        if depth < 3 and chance.random() < 0.2:
            return f"({chance.choice(['', '?:'])}{_random(chance, depth + 1)})"
        return chance.choice(ATOMS)

    def sequence() -> str:
        return "".join(atom() + chance.choice(REPEATS) for _ in range(chance.randrange(1, 4)))

    return "|".join(sequence() for _ in range(chance.choice([1, 1, 1, 2])))


def _matched(run_java: RunJava, texts: Mapping[str, Sequence[str]]) -> dict[str, list[bool] | None]:
    """Return for each pattern whether it is found in its texts, None if it has no automaton."""
    lines = [{"pattern": pattern, "texts": ones} for pattern, ones in texts.items()]
    return dict(zip(texts, run_java("strata.spark.PatternProbe", lines), strict=True))


def test_common_patterns(run_java: RunJava) -> None:
    """Patterns that schemas often have become automata."""
    texts = {pattern: [one for one in pair if one is not None] for pattern, pair in COMMON.items()}

    assert {pattern: [True, False][: len(ones)] for pattern, ones in texts.items()} == _matched(run_java, texts)


def test_patterns_that_engines_read_differently(run_java: RunJava) -> None:
    """Other patterns, and those with too many states, are left to the validator of Python."""
    assert dict.fromkeys(UNKNOWN) == _matched(run_java, dict.fromkeys(UNKNOWN, ()))


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_patterns(run_java: RunJava, count: int) -> None:
    """An automaton matches the texts that the validator of Python allows."""
    chance = Random(7)
    texts: dict[str, list[str]] = {}
    while len(texts) < 2 * count:
        pattern = chance.choice(["", "^"]) + _random(chance) + chance.choice(["", "$"])
        texts[pattern] = [
            "".join(chance.choice(chance.choice(CHARACTERS)) for _ in range(chance.randrange(7))) for _ in range(8)
        ]

    ours = {pattern: one for pattern, one in _matched(run_java, texts).items() if one is not None}

    assert len(ours) > count
    for pattern, matches in ours.items():
        theirs = jsonschema_rs.validator_for({"pattern": pattern})
        assert [theirs.is_valid(text) for text in texts[pattern]] == matches, (pattern, texts[pattern])
    assert sum(map(sum, ours.values())) > count
