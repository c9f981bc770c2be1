"""The reader of words, as in the reference's parser.

There is no separate tokenizer, because the context decides what counts as a word. Each regular expression is one
character class, so it cannot backtrack. Line and column are counted only for an error. The error messages are our own:
clients do not compare them.
"""

import re
from collections.abc import Container
from typing import Final, NamedTuple

from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError

__all__ = ["PlainField", "Reader"]

_SKIPPED: Final = frozenset(" \t\r\n/")  # the first characters of space and comments
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_BLANKS: Final = re.compile(r"[ \t]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_.\-]*")
_PART: Final = re.compile(r"[A-Za-z0-9_\-]*")  # a word without dots
_PLAIN: Final = re.compile(r"[^\"'\\]*")  # the characters of a literal between quotes and escapes
_PLAIN_FIELD: Final = re.compile(
    r"[ \t\r\n]*+(?:(required|optional|repeated)[ \t\r\n]++)?+([A-Za-z_][A-Za-z0-9_.\-]*+)[ \t\r\n]++"
    r"([A-Za-z_][A-Za-z0-9_.\-]*+)[ \t]*+=[ \t]*+([0-9]{1,9})[ \t]*+;[ \t]*+(?=[^/])"
)
_NO_TYPES: Final = frozenset(  # words that begin something else than a plain field
    {"option", "reserved", "message", "enum", "extend", "extensions", "oneof", "group", "map"}
)
_DIGITS: Final = {10: re.compile(r"-?[0-9]{1,64}"), 16: re.compile(r"-?[0-9A-Fa-f]{1,64}")}
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEX: Final = re.compile(r"[0-9A-Fa-f]{1,2}")
_OCTAL: Final = re.compile(r"[0-7]{1,3}")
_CLOSING: Final = {"(": ")", "[": "]"}
_LONGEST_SHOWN: Final = 60
_ENDS_EARLY: Final = "The text ends too early; a closing brace, bracket or quote, or a semicolon is missing"
_SINGLE_SLASH: Final = "A comment begins with '//' or '/*', not with '/' alone"


class PlainField(NamedTuple):
    """A field without options: where it begins, its label, type, name and tag, and where its name stands."""

    start: int
    label: str | None
    type_name: str
    name: str
    tag: int
    at: int


class Reader:
    """A cursor in a text."""

    def __init__(self, text: str, limits: Limits):
        self._text = text
        self.limits = limits
        self._at = 0

    @property
    def position(self) -> int:
        """The position of the cursor, for `fault`."""
        return self._at

    def fault(self, message: str, position: int | None = None) -> SchemaParseError:
        """Return an error with line and column.

        Args:
            message: What is wrong.
            position: Where, if not at the cursor.
        """
        at = min(self._at if position is None else position, len(self._text))
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return SchemaParseError(f"{message} (line {line}, column {column})")

    def at_end(self) -> bool:
        """Return whether only space and comments are left."""
        self._skip()
        return self._at == len(self._text)

    def peek(self) -> str:
        """Return the next character that is neither space nor comment, without reading it.

        Raises:
            SchemaParseError: The text ends, or a comment is invalid.
        """
        text, at = self._text, self._at
        if at < len(text) and text[at] not in _SKIPPED:  # without the call, since each word comes this way
            return text[at]
        self._skip()
        if self._at >= len(text):
            raise self.fault(_ENDS_EARLY)
        return text[self._at]

    def take(self, character: str) -> bool:
        """Read the character if it is the next one."""
        if self.peek() != character:
            return False
        self._at += 1
        return True

    def require(self, character: str) -> None:
        """Read the character, which must be the next one.

        Raises:
            SchemaParseError: It is not.
        """
        if not self.take(character):
            raise self.fault(f"'{character}' is missing before '{self._text[self._at]}'")

    def word(self, *, leading_digit: bool = True, dots: bool = True) -> str:
        """Read letters, digits, underscores, hyphens and dots.

        Args:
            leading_digit: Whether the word may begin with a digit.
            dots: Whether the word may have dots.

        Raises:
            SchemaParseError: There is no word, or it begins with a digit.
        """
        self._skip()
        start = self._at
        end = self._end(_WORD if dots else _PART)
        if start == end:
            got = repr(self._text[start]) if start < len(self._text) else "the end of the text"
            raise self.fault(f"Expected a name or a number, got {got}")
        if not leading_digit and self._text[start] in "0123456789":
            raise self.fault("The name of a field or constant must begin with a letter or '_', not with a digit", start)
        self._at = end
        return self._text[start:end]

    def name(self, *, leading_digit: bool = True, dots: bool = True) -> str:
        """Read a word that may be in parentheses or brackets, where it may always have dots.

        Args:
            leading_digit: Whether the word may begin with a digit.
            dots: Whether the word may have dots outside parentheses and brackets.

        Raises:
            SchemaParseError: There is no word, it begins with a digit, or the bracket is not closed.
        """
        closing = _CLOSING.get(self.peek())
        if closing is None:
            return self.word(leading_digit=leading_digit, dots=dots)
        self._at += 1
        word = self.word(leading_digit=leading_digit)
        if not self.take(closing):
            raise self.fault(f"'{closing}' is missing after {word[:_LONGEST_SHOWN]}")
        return word

    def integer(self) -> int:
        """Read an integer of 32 bits; a leading zero does not make it octal.

        Raises:
            SchemaParseError: There is no such integer.
        """
        word = self.word()
        if word[:2] in ("0x", "0X"):
            return self.as_integer(word[2:], 16)
        return self.as_integer(word)

    def as_integer(self, digits: str, base: int = 10) -> int:
        """Return the integer of 32 bits that a word means.

        Raises:
            SchemaParseError: The word is not one.
        """
        number = int(digits, base) if _DIGITS[base].fullmatch(digits) else None
        if number is None or not -(2**31) <= number < 2**31:
            raise self.fault(f"Expected a 32-bit integer, got {digits[:_LONGEST_SHOWN]}")
        return number

    def plain_field(self, labels: Container[str | None]) -> PlainField | None:
        """Read `label type name = tag;` up to the next word if nothing else stands there, and the label is allowed.

        Most fields have neither options nor comments.
        """
        match = _PLAIN_FIELD.match(self._text, self._at)
        if match is None or match[1] not in labels or match[2] in _NO_TYPES:
            return None
        self._at = match.end()
        start = match.start(2) if match[1] is None else match.start(1)
        return PlainField(start, match[1], match[2], match[3], int(match[4]), match.start(3))

    def literal(self) -> str:
        """Read adjacent literals in quotes and join them.

        Raises:
            SchemaParseError: There is no literal, or it is not closed.
        """
        if self.peek() not in "\"'":
            raise self.fault("Expected a quoted string")
        parts: list[str] = []
        while self.peek() in "\"'":
            self._at += 1
            self._inside_quotes(self._text[self._at - 1], parts)
        return "".join(parts)

    def _inside_quotes(self, quote: str, parts: list[str]) -> None:
        opening = self._at - 1
        while True:
            start, self._at = self._at, self._end(_PLAIN)
            parts.append(self._text[start : self._at])
            if self._at >= len(self._text):
                raise self.fault("A quoted string is not closed", opening)
            character = self._text[self._at]
            self._at += 1
            if character == quote:
                return
            parts.append(self._escape() if character == "\\" else character)

    def _escape(self) -> str:
        if self._at >= len(self._text):
            raise self.fault(_ENDS_EARLY)
        character = self._text[self._at]
        if character in "01234567":
            return self._numeric(_OCTAL, 8)
        self._at += 1
        if character in "xX":
            return self._numeric(_HEX, 16)
        return _ESCAPES.get(character, character)

    def _numeric(self, pattern: re.Pattern[str], base: int) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise self.fault("\\x needs one or two hexadecimal digits")
        self._at = match.end()
        return chr(int(match.group(), base))

    def trailing_comment(self) -> None:
        """Read a comment after a declaration on the same line; a block comment must end the line.

        Raises:
            SchemaParseError: The comment is invalid, or the text ends here. The reference refuses this too, since it
                expects a comment or a line break.
        """
        self._at = self._end(_BLANKS)
        if self._at >= len(self._text):
            raise self.fault("The text ends right after a statement; add a line break, or the '}' that is missing")
        if self._text[self._at] != "/":
            return
        if not self._text.startswith(("//", "/*"), self._at):
            raise self.fault(_SINGLE_SLASH)
        is_block = self._text[self._at + 1] == "*"
        self._comment()
        if not is_block:
            return
        self._at = self._end(_BLANKS)
        if self._at < len(self._text) and self._text[self._at] != "\n":
            raise self.fault("A block comment after a statement must end its line; move what follows to the next line")

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
                raise self.fault("A comment is not closed; '*/' is missing")
            self._at = end + 2
        else:
            raise self.fault(_SINGLE_SLASH)

    def _end(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        return match.end() if match else self._at
