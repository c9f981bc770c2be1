r"""A syntax check of patterns as Java's `java.util.regex` compiles them: the reference's loaders compile every pattern.

This module checks only syntax, in the order in which Java reads it, and matches nothing. It accepts what depends on the
release of Java: unknown names of scripts and blocks (`\p{IsLatin}`, `\p{InGreek}`), and a look-behind without a bound.
"""

import re
import unicodedata
from typing import Final

from strata.compat.json_schema.json_text import excerpt
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.schema import SchemaParseError

__all__ = ["check_pattern"]

_END: Final = "\0"
_CATEGORY_NAMES: Final = """Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf
    L M N Z C P S LC LD L1 all"""
_CLASS_NAMES: Final = "ASCII Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit"
_METHOD_NAMES: Final = """LowerCase UpperCase Alphabetic Ideographic TitleCase Digit Defined Letter LetterOrDigit
    JavaIdentifierStart JavaIdentifierPart UnicodeIdentifierStart UnicodeIdentifierPart IdentifierIgnorable SpaceChar
    Whitespace ISOControl Mirrored"""
_CATEGORIES: Final = frozenset(_CATEGORY_NAMES.split())
_PROPERTIES: Final = _CATEGORIES.union(_CLASS_NAMES.split(), (f"java{name}" for name in _METHOD_NAMES.split()))
_WIDE: Final = frozenset(_CLASS_NAMES.upper().split()) - {"ASCII"} | {"WORD"}  # with (?U), case-insensitive
_GROUP_NAME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9]*)>")
_UNICODE_NAME: Final = re.compile(r"\{([A-Za-z0-9 \-]+)\}")
_QUOTE: Final = re.compile(r"(?:[^\\]|\\[^Q])*?\\Q", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _\-]*")
_KEYS: Final = frozenset({"sc", "script", "blk", "block", "gc", "general_category"})
_CLASSES: Final = frozenset("DHSVWdhsvw")  # escapes that match several characters
_CONTROLS: Final = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PLACES: Final = frozenset("ABGZbz")  # escapes that match a position, and are invalid inside a class
_FLAGS: Final = frozenset("imsducxU")
_LARGEST_COUNT: Final = 0x7FFFFFFF


def check_pattern(pattern: str, limits: Limits = DEFAULT_LIMITS) -> None:
    """Check the syntax of a pattern, unless it is too long to be matched anyway.

    Raises:
        SchemaParseError: Java does not compile the pattern.
        OutOfTime: The time of `limits` ran out.
    """
    limits.look_at_clock()
    if len(pattern) > limits.pattern:
        return
    try:
        _Reader(_without_quotes(pattern)).read()
    except _BadPatternError as error:
        raise SchemaParseError(f"Invalid regular expression {excerpt(pattern)!r}: {error}") from None


class _BadPatternError(Exception):
    pass


def _without_quotes(pattern: str) -> str:
    r"""Return the pattern with the characters between `\Q` and `\E` escaped one by one."""
    parts: list[str] = []
    at = 0
    begin = _QUOTE.match(pattern)
    while begin is not None:
        end = pattern.find("\\E", begin.end())
        quoted = pattern[begin.end() : end if end >= 0 else None]
        parts += pattern[at : begin.end() - 2], "".join(map(_escaped, quoted[:1])), "".join(map(_quoted, quoted[1:]))
        at = end + 2 if end >= 0 else len(pattern)
        begin = _QUOTE.match(pattern, at)
    return "".join([*parts, pattern[at:]])


def _quoted(char: str) -> str:
    return char if ord(char) > 127 or char.isalnum() else f"\\{char}"


def _escaped(char: str) -> str:
    return f"\\x3{char}" if char in "0123456789" else _quoted(char)  # a plain digit could extend an escape before it


class _Reader:
    def __init__(self, pattern: str):
        self._text = pattern + _END * 2
        self._length = len(pattern)
        self._at = 0
        self._names: set[str] = set()
        self._comments = False
        self._wide = False

    def read(self) -> None:
        self._alternatives()
        if self._at < self._length:
            raise _BadPatternError("unmatched )")

    def _skip_comments(self) -> None:
        while self._comments and self._at < self._length:
            char = self._text[self._at]
            if char == "#":
                while self._at < self._length and self._text[self._at] not in "\n\r\x85\u2028\u2029":
                    self._at += 1
            elif char not in " \t\n\x0b\f\r":
                return
            else:
                self._at += 1

    def _peek(self) -> str:
        self._skip_comments()
        return self._text[self._at] if self._at < self._length else ""

    def _take(self) -> str:
        char = self._peek()
        self._at += len(char)
        return char

    def _accept(self, char: str, message: str) -> None:
        if self._take() != char:
            raise _BadPatternError(message)

    def _alternatives(self) -> None:
        self._sequence()
        while self._take_if("|"):
            self._sequence()

    def _sequence(self) -> None:
        while True:
            char = self._peek()
            if char in ("", "|", ")"):
                return
            if char in "*+?":
                raise _BadPatternError(f"nothing to repeat before {char}")
            if char != "{":  # read below as a repetition of nothing
                self._at += 1
            if char == "(" and not self._group():
                continue
            if char == "[":
                self._class()
            elif char == "\\":
                self._escaped()
            self._repetition()

    def _repetition(self) -> None:
        char = self._peek()
        if char not in ("?", "*", "+", "{"):
            return
        self._at += 1
        if char == "{":
            self._count()
        if self._peek() in ("?", "+"):
            self._at += 1

    def _count(self) -> None:
        least = most = self._digits()
        if self._take_if(","):
            most = _LARGEST_COUNT if self._peek() == "}" else self._digits(needed=False)
        self._accept("}", "expected } after {")
        if most < least:
            raise _BadPatternError("the minimum of a repetition is above its maximum")

    def _take_if(self, char: str) -> bool:
        is_taken = self._peek() == char
        self._at += is_taken
        return is_taken

    def _digits(self, *, needed: bool = True) -> int:
        begin = self._at
        while self._at < self._length and self._text[self._at] in "0123456789":
            self._at += 1
        if begin == self._at and needed:
            raise _BadPatternError("expected a number after {")
        count = int(self._text[begin : self._at] or 0)
        if count > _LARGEST_COUNT:
            raise _BadPatternError("the count of a repetition is out of range")
        return count

    def _group(self) -> bool:
        """Read a group after its `(`; return false if it only sets flags, which cannot be repeated."""
        outer = self._comments, self._wide
        if self._take_if("?"):
            mark = self._text[self._at]
            self._at += 1
            if mark == "<":
                self._look_behind_or_name()
            elif mark in "$@":
                raise _BadPatternError("unknown kind of group")
            elif mark not in ":=!>":
                self._at -= 1
                if self._flags():
                    return False
        self._alternatives()
        self._accept(")", "expected ) after (")
        self._comments, self._wide = outer
        return True

    def _look_behind_or_name(self) -> None:
        if self._text[self._at] in "=!":
            self._at += 1
            return
        name = self._name()
        if name in self._names:
            raise _BadPatternError("duplicate group name")
        self._names.add(name)

    def _name(self) -> str:
        match = _GROUP_NAME.match(self._text, self._at)
        if match is None:
            raise _BadPatternError("invalid group name")
        self._at = match.end()
        return match[1]

    def _flags(self) -> bool:
        """Read the flags of a group; return true if the group contains nothing else."""
        on = True
        while True:
            char = self._peek()
            if char == "-" and on:
                on = False
            elif char == "x":
                self._comments = on
            elif char == "U":
                self._wide = on
            elif char not in _FLAGS:
                break
            self._at += 1
        if self._take_if(")"):
            return True
        self._accept(":", "unknown flag")
        return False

    def _escaped(self) -> None:
        if self._text[self._at] in ("p", "P"):
            self._at += 1
            self._property()
        else:
            self._escape(in_class=False)

    def _escape(self, *, in_class: bool) -> str:
        """Read the rest of an escape; return its character, or an empty string if it does not mean one character."""
        if self._at >= self._length:
            raise _BadPatternError("backslash at the end")
        char = self._text[self._at]
        self._at += 1
        if char in _CLASSES:
            return ""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _NUMBERS:
            return self._number(char)
        if char == "c" and self._at < self._length:
            self._at += 1
            return chr(ord(self._text[self._at - 1]) ^ 64)
        if char == "N":
            self._unicode_name()
            return "N"
        if not (char.isascii() and char.isalnum()):
            return char
        if not in_class and (char in _PLACES or char in "RX" or char.isdigit()):
            if char == "b" and self._text.startswith("{g}", self._at):
                self._at += 3
            return ""
        if not in_class and char == "k":
            self._named_reference()
            return ""
        raise _BadPatternError(f"unknown escape \\{char}")

    def _number(self, char: str) -> str:
        match = _NUMBERS[char].match(self._text, self._at)
        if match is None or (match[0].startswith("{") and int(match[0][1:-1], 16) > 0x10FFFF):
            raise _BadPatternError(f"invalid escape \\{char}")
        self._at = match.end()
        digits = match[0].strip("{}")
        return chr(int(digits, 8 if char == "0" else 16))

    def _unicode_name(self) -> None:
        match = _UNICODE_NAME.match(self._text, self._at)
        try:
            unicodedata.lookup(match[1] if match else "")
        except KeyError:
            raise _BadPatternError("invalid escape \\N") from None
        self._at += len(match[0]) if match else 0

    def _named_reference(self) -> None:
        if self._text[self._at] != "<":
            raise _BadPatternError("expected <name> after \\k")
        self._at += 1
        if self._name() not in self._names:
            raise _BadPatternError("reference to an unknown group")

    def _property(self) -> None:
        r"""Read the rest of a property after `\p`."""
        if self._text[self._at] != "{":
            name = self._text[self._at]
            self._at += 1
        else:
            end = self._text.find("}", self._at)
            if end < 0:
                raise _BadPatternError("expected } after \\p{")
            name = self._text[self._at + 1 : end]
            self._at = end + 1
        key, equals, value = name.partition("=")
        if equals:
            known = key.lower() in _KEYS and (_WORD.fullmatch(value) is not None)
            known = known and (key.lower() not in ("gc", "general_category") or value in _CATEGORIES)
        elif name[:2] in ("In", "Is"):
            known = _WORD.fullmatch(name[2:]) is not None
        else:
            known = name in _PROPERTIES or (self._wide and name.upper() in _WIDE)
        if not known:
            raise _BadPatternError("unknown property")

    def _class(self) -> None:
        self._take_if("^")
        self._members(closing=True, empty=True)

    def _members(self, *, closing: bool, empty: bool) -> None:
        """Read members of a class; a `]` in the first position is a member."""
        while True:
            char = self._peek()
            if char == "":
                raise _BadPatternError("expected ] after [")
            if char == "[":
                self._at += 1
                self._class()
            elif char == "&" and self._text.startswith("&&", self._at):
                self._at += 2
                empty = self._intersection(empty=empty)
                continue
            elif char == "]" and not empty:
                self._at += closing
                return
            else:
                self._range()
            empty = False

    def _intersection(self, *, empty: bool) -> bool:
        right = False
        while self._peek() not in ("]", "&", ""):
            if self._take_if("["):
                self._class()
            else:
                self._members(closing=False, empty=True)
            right = True
        if empty and not right:
            raise _BadPatternError("empty intersection")
        return False

    def _range(self) -> None:
        first = self._member()
        if not first or self._peek() != "-" or self._text[self._at + 1] in "[]":
            return
        self._at += 1
        last = self._member(in_range=True)
        if not last or last < first:
            raise _BadPatternError("the ends of a range are reversed")

    def _member(self, *, in_range: bool = False) -> str:
        """Read one member; return its character, or an empty string for a class."""
        char = self._peek()
        if char == "":
            raise _BadPatternError("expected ] after [")
        self._at += 1
        if char != "\\":
            return char
        if self._text[self._at] in "pP" and self._at < self._length and not in_range:
            self._at += 1
            self._property()
            return ""
        if self._text[self._at] == "v" and (in_range or self._text[self._at + 1] == "-"):
            self._at += 1
            return "\v"
        return self._escape(in_class=True)


_NUMBERS: Final = {
    "0": re.compile(r"[0-3][0-7]{2}|[0-7]{1,2}"),
    "u": re.compile(r"[0-9a-fA-F]{4}"),
    "x": re.compile(r"[0-9a-fA-F]{2}|\{[0-9a-fA-F]+\}"),
}
