"""JSON texts with unusual spelling, which Python's JSON values cannot represent."""

import json
from random import Random
from typing import Any, NamedTuple

__all__ = ["JsonText", "Number"]

Json = Any


class Number(NamedTuple):
    """A number with its spelling."""

    text: str


class JsonText:
    """A JSON writer, either plain or with random whitespace, escapes, comments and duplicate keys."""

    def __init__(self, chance: Random | None) -> None:
        self._random = chance.random if chance and chance.random() < 0.3 else lambda: 1.0

    def of(self, value: Json) -> str:
        """Return the text of a value."""
        if isinstance(value, Number):
            return value.text
        if isinstance(value, dict):
            return self._between("{", [f"{self._key(key)}:{self.of(inner)}" for key, inner in value.items()], "}")
        if isinstance(value, list):
            return self._between("[", [self.of(inner) for inner in value], "]")
        return self._string(value) if isinstance(value, str) else self._blank() + json.dumps(value)

    def _between(self, begin: str, parts: list[str], end: str) -> str:
        if parts and self._random() < 0.03:
            parts.append(parts[0])
        return self._blank() + begin + f"{self._blank()},".join(parts) + self._blank() + end + self._blank()

    def _key(self, text: str) -> str:
        return self._string(text) + self._blank()

    def _string(self, text: str) -> str:
        if self._random() < 0.1:
            units = text.encode("utf-16-be", "surrogatepass")
            return '"' + "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)) + '"'
        return self._blank() + json.dumps(text, ensure_ascii=self._random() >= 0.5)

    def _blank(self) -> str:
        draw = self._random()
        return (
            " \t\n\r"[int(draw * 40)] if draw < 0.1 else "/* , */" if draw < 0.11 else "// ]\n" if draw < 0.12 else ""
        )
