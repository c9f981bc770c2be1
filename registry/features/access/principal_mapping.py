r"""Kafka's rules that turn the subject of a certificate into the name of a user: `ssl.principal.mapping.rules`.

    RULE:^CN=(.*?),OU=Services.*$/$1/L,DEFAULT

Rules are tried in order. `RULE:PATTERN/REPLACEMENT/` applies if the pattern matches the whole subject; `L` or `U` at
its end makes the name lower or upper case. `DEFAULT` takes the subject as it is. A slash within a pattern or
replacement is written `\/`. Patterns are Python's, which differ from Java's only in rarely used forms.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["InvalidMapping", "PrincipalMapping", "parse_mapping"]

_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"(DEFAULT)|RULE:{_PART}/{_PART}/([LU]?)", re.DOTALL)
_BETWEEN = re.compile(r"[\s,]*")
_END = re.compile(r"\s*(?:,|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d+)", re.DOTALL)
_CASES: dict[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper}


class InvalidMapping(ValueError):
    """Rules that cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule; without a pattern it is `DEFAULT`."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, subject: str) -> str | None:
        """Return the name of a subject; None if the rule does not match."""
        if self.pattern is None:
            return subject
        if not self.pattern.fullmatch(subject):
            return None
        name = self.pattern.sub(self._expanded, subject)
        return _CASES[self.case](name) if self.case else name

    def _expanded(self, match: re.Match[str]) -> str:
        """Return the replacement with its references to groups filled in."""
        groups = match.re.groups

        def group(reference: re.Match[str]) -> str:
            escaped, digits = reference.groups()
            if escaped is not None:
                return str(escaped)
            # As many digits as name a group; the others are text.
            for length in range(len(digits), 0, -1):
                if int(digits[:length]) <= groups:
                    return (match[int(digits[:length])] or "") + str(digits[length:])
            return str(reference[0])

        return _REFERENCE.sub(group, self.replacement)


@dataclass(frozen=True, slots=True)
class PrincipalMapping:
    """A list of rules."""

    rules: tuple[_Rule, ...]

    def name(self, subject: str) -> str | None:
        """Return the name of the user with this subject; None if no rule matches."""
        return next((name for rule in self.rules if (name := rule.apply(subject)) is not None), None)


def parse_mapping(text: str) -> PrincipalMapping:
    """Return the rules of a text.

    Raises:
        InvalidMapping: if one of them is invalid, or there is none.
    """
    rules: list[_Rule] = []
    at = _skip(text, 0)
    while at < len(text):
        match = _RULE.match(text, at)
        end = _END.match(text, match.end()) if match else None
        if match is None or end is None:
            raise InvalidMapping(f"expected DEFAULT or RULE:PATTERN/REPLACEMENT/[L|U], got {text[at:]!r}")
        rules.append(_Rule() if match[1] else _rule(match[2], match[3], match[4]))
        at = _skip(text, end.end())
    if not rules:
        raise InvalidMapping("expected at least one rule, such as DEFAULT")
    return PrincipalMapping(tuple(rules))


def _skip(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return between.end() if between else at


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        return _Rule(re.compile(pattern), replacement, case)
    except re.error as error:
        raise InvalidMapping(f"the pattern {pattern!r} is not a regular expression: {error}") from None
