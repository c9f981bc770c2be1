"""Characters to words, the way the reference's parser reads them.

There is no separate list of tokens: what counts as a word depends on the place. Each regular expression is one
character class, so none can go back and forth over its input. Line and column are counted only when a fault is told.
"""

import re
from typing import Final

from compat.schema import SchemaParseError

__all__ = ["Reader"]

_SKIPPED: Final = frozenset(" \t\r\n/")  # what space and comments begin with
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_BLANKS: Final = re.compile(r"[ \t]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]*")
_PART: Final = re.compile(r"[A-Za-z0-9_\-]*")  # a word without dots
_PLAIN: Final = re.compile(r"[^\"'\\]*")  # what a literal holds between quotes and escapes
_DIGITS: Final = {10: re.compile(r"-?[0-9]{1,64}"), 16: re.compile(r"-?[0-9A-Fa-f]{1,64}")}
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX: Final = re.compile(r"[0-9A-Fa-f]{1,2}")
_OCTAL: Final = re.compile(r"[0-7]{1,3}")
_CLOSING: Final = {"(": ")", "[": "]"}
_LONGEST_SHOWN: Final = 60


class Reader:
    """A cursor in a text."""

    def __init__(self, text: str):
        self._text = text
        self._at = 0

    @property
    def position(self) -> int:
        """Where the cursor stands, for `fault`."""
        return self._at

    def fault(self, message: str, position: int | None = None) -> SchemaParseError:
        """An error that tells line and column."""
        at = min(self._at if position is None else position, len(self._text))
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return SchemaParseError(f"Syntax error in :{line}:{column}: {message}")

    def at_end(self) -> bool:
        """Whether nothing but space and comments is left."""
        self._skip()
        return self._at == len(self._text)

    def peek(self) -> str:
        """The next character that is neither space nor comment."""
        self._skip()
        if self._at >= len(self._text):
            raise self.fault("unexpected end of file")
        return self._text[self._at]

    def take(self, character: str) -> bool:
        """Read the character if it is the next one."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def require(self, character: str) -> None:
        """Read the character, which has to be the next one."""
        if not self.take(character):
            found = self._text[self._at]
            self._at += 1
            raise self.fault(f"expected '{character}' but was '{found}'")

    def word(self, *, leading_digit: bool = True, dots: bool = True) -> str:
        """Letters, digits, underscores, hyphens and dots."""
        self._skip()
        start = self._at
        end = self._end(_WORD if dots else _PART)
        if start == end:
            raise self.fault("expected a word")
        if not leading_digit and self._text[start] in "0123456789":
            raise self.fault("field and constant names cannot start with a digit", start)
        self._at = end
        return self._text[start:end]

    def name(self, *, leading_digit: bool = True, dots: bool = True) -> str:
        """A word that may stand in parentheses or brackets, where it may always have dots."""
        closing = _CLOSING.get(self.peek())
        if closing is None:
            return self.word(leading_digit=leading_digit, dots=dots)
        self._at += 1
        word = self.word(leading_digit=leading_digit)
        if not self.take(closing):
            raise self.fault(f"expected '{closing}'")
        return word

    def integer(self) -> int:
        """A whole number of 32 bits; a leading zero does not make it octal."""
        word = self.word()
        if word[:2] in ("0x", "0X"):
            return self.as_integer(word[2:], 16)
        return self.as_integer(word)

    def as_integer(self, digits: str, base: int = 10) -> int:
        """The number of 32 bits that a word means."""
        number = int(digits, base) if _DIGITS[base].fullmatch(digits) else None
        if number is None or not -(2**31) <= number < 2**31:
            raise self.fault(f"expected an integer but was {digits[:_LONGEST_SHOWN]}")
        return number

    def literal(self) -> str:
        """One or several literals in quotes, which count as one."""
        if self.peek() not in "\"'":
            raise self.fault("expected a quoted string")
        parts: list[str] = []
        while self.peek() in "\"'":
            quote = self._text[self._at]
            self._at += 1
            self._inside_quotes(quote, parts)
        return "".join(parts)

    def _inside_quotes(self, quote: str, parts: list[str]) -> None:
        while True:
            start, self._at = self._at, self._end(_PLAIN)
            parts.append(self._text[start : self._at])
            if self._at >= len(self._text):
                raise self.fault("unterminated string")
            character = self._text[self._at]
            self._at += 1
            if character == quote:
                return
            parts.append(self._escape() if character == "\\" else character)

    def _escape(self) -> str:
        if self._at >= len(self._text):
            raise self.fault("unexpected end of file")
        character = self._text[self._at]
        if character in "01234567":
            return self._numeric(_OCTAL, 8)
        self._at += 1
        if character in "xX":
            return self._numeric(_HEX, 16)
        return _ESCAPES.get(character, character)

    def _numeric(self, pattern: re.Pattern[str], base: int) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self.fault("expected a digit after \\x or \\X")
        self._at = found.end()
        return chr(int(found.group(), base))

    def trailing_comment(self) -> None:
        """Read a comment that follows a declaration on its line; a block comment must be the last on that line.

        After all but blanks the text must not end, for the reference looks for a comment there.
        """
        self._at = self._end(_BLANKS)
        if self._at < len(self._text) and self._text[self._at] != "/":
            return
        if not self._text.startswith(("//", "/*"), self._at):
            raise self.fault("expected '//' or '/*'")
        is_block = self._text[self._at + 1] == "*"
        self._comment()
        if not is_block:
            return
        self._at = self._end(_BLANKS)
        if self._at < len(self._text) and self._text[self._at] != "\n":
            raise self.fault("no syntax may follow trailing comment")

    def _skip(self) -> None:
        text, size = self._text, len(self._text)
        while self._at < size and text[self._at] in _SKIPPED:
            if text[self._at] == "/":
                self._comment()
            else:
                self._at = self._end(_SPACE)

    def _comment(self) -> None:
        if self._text.startswith("//", self._at):
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end + 1
        elif self._text.startswith("/*", self._at):
            end = self._text.find("*/", self._at + 2)
            if end < 0:
                raise self.fault("unterminated comment")
            self._at = end + 2
        else:
            raise self.fault("unexpected '/'")

    def _end(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        return found.end() if found else self._at
