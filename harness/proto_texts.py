"""Random .proto texts: generated from a grammar with occasional errors, or derived from a text by small changes.

Most are not valid schemas, on purpose: a parser with wrong rules accepts what another one rejects.

Rules of this file: all randomness comes from the given `Random`; no parser.
"""

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, TypeVar

__all__ = ["Maker", "changed"]

# In each table the usual entries come first: how far down a choice goes differs from text to text.
_NAMES: Final = (
    *(
        "a",
        "b",
        "A",
        "B",
        "a1",
        "_x",
        "message",
        "option",
        "group",
        "rpc",
        "oneof",
        "map",
        "stream",
        "returns",
        "max",
        "to",
    ),
    *(
        "reserved",
        "1a",
        "a.b",
        ".A",
        "A-B",
        "-a",
        "extensions",
        "optional",
        "enum",
        "syntax",
        "true",
        "inf",
        "(a)",
        "[a]",
    ),
)
_NUMBERS: Final = (
    *(
        "1",
        "2",
        "0",
        "-1",
        "0x1",
        "0X1F",
        "010",
        "2147483647",
        "0x",
        "-0x1",
        "08",
        "1.5",
        "1e3",
        "2147483648",
        "x",
        "1-2",
    ),
    *("-2147483648", "-2147483649", "0b1", "1_000", "-", "--1", "+1", "7f", "0xFFFFFFFF", "0x7fffffff", "٣", "1L"),
)
_LETTERS: Final = (
    *(
        "a",
        "b",
        " ",
        "\\n",
        '\\"',
        "\\'",
        "\\x41",
        "\\101",
        "\\\\",
        "\\a",
        "//",
        "/*",
        "é",
        "\n",
        "😀",
        "\x00",
        "\\x4",
        "\\xG",
    ),
    *("\\8", "\\400", "\\777", "\\u00e9", "\\U0001F600", "\\?", "\\ "),
)
_TYPES: Final = (
    *(
        "int32",
        "string",
        "A",
        ".A",
        "a.B",
        "map<string, A>",
        "bytes",
        "group",
        "map<string,map<int32,A>>",
        "a . B",
        "map",
    ),
    *(
        "map <string , A>",
        "google.protobuf.Any",
        "map<A>",
        "map<string A>",
        "map<string,string,string>",
        "map<.A, -b>",
        "a.",
    ),
)
_OPTIONS: Final = (
    *(
        "a",
        "deprecated",
        "(a)",
        "(a).b",
        "default",
        "json_name",
        "packed",
        "(a).b.c",
        "(.a.b)",
        "a.b",
        "(a).(b)",
        "( a )",
    ),
    *(
        "(a) . b",
        "[a]",
        "a.(b)",
        "(a).[b]",
        "(default)",
        "default.x",
        "(a",
        "a)",
        '"x"',
        "(a)b",
        "a b",
        "(a..b)",
        "(a)..b",
    ),
)
_KEYS: Final = ("a", "b", "a.b", "[a.b]", "[ a.b ]", "1", "-a", ".a", "[a.b/c]", '"k"', "[a.b", "a.(b)")
_WORDS: Final = ("true", "FOO", "inf", "-inf", "nan", ".5", "5.", "1e-5", "1E+5", "1.5f", "A-B", "+1", "- 1")
_LABELS: Final = ("", "optional ", "repeated ", "required ", "optional/*c*/", "optional optional ")
_ENDS: Final = (
    *(
        ";",
        ";",
        ";",
        " ;",
        ";;",
        "; // c\n",
        "; /* c */\n",
        ";\t/* a\nb */ \n",
        "",
        "; /* c */",
        " /*c*/;",
        ";/**/",
        ";/",
    ),
    *(";//\r\n", "; /* c */\r\n", "; /*c*/ // d\n"),
)
_HEADS: Final = (
    *('syntax = "proto3";', 'syntax = "proto2";', "", "syntax = 'proto3';", '// c\nsyntax = "proto3";', "\ufeff"),
    *('syntax="proto2" ;', 'syntax = "proto" "3";', '/**/ syntax="proto3";', ';syntax = "proto3";'),
)
_PATHS: Final = ('"a.proto"', '"a/./b.proto"', '"a//b"', '"../a"', '"./a"', '"/../a"', '"a\\\\b"', '""', "'a/'", "a")
_OTHERS: Final = (
    *(
        ";",
        "reserved 1;",
        "extensions 4;",
        'edition = "2023";',
        'syntax = "proto3";',
        "oneof o {}",
        "optional int32 a = 1;",
    ),
    *(
        "group G = 1 {}",
        "rpc F (A) returns (A);",
        'reserved "a" to 5;',
        "x",
        'option "a" = 1;',
        "message Q {}",
        "}",
        "{",
    ),
)
_BETWEEN: Final = (
    *(
        "/* c */",
        "// c\n",
        "\n",
        " ",
        "\t",
        "/**/",
        "/* a\n b */",
        "//\n",
        "/** doc */",
        "\r\n",
        "/* c */\n",
        "/* c */ // d\n",
    ),
    *("/", "/*", "*/", "///\n", "\x0b", "\u00a0", "#", '"', "'", "\\"),
)
_TOKEN: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\w.\-]+|\s+|.""", re.DOTALL | re.ASCII
)

_ItemT = TypeVar("_ItemT")
_Part = Callable[[], str]


def changed(random: Random, text: str) -> str:
    """Return the text with one to three changes of its tokens."""
    tokens = _TOKEN.findall(text)
    tables = (_NAMES, _NUMBERS, _TYPES, _OPTIONS, _KEYS, _WORDS, _ENDS, _OTHERS, tuple("{}[]()<>=,:.-"))
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(tokens) + 1)
        action = random.randrange(6)
        if action < 2:
            tokens.insert(at, random.choice(_BETWEEN))
        elif action == 2:
            tokens.insert(at, random.choice(random.choice(tables)))
        elif action == 3:
            tokens[at : at + 1] = [random.choice(random.choice(tables))]
        elif action == 4:
            del tokens[at : at + 1]
        else:
            tokens[at : at + 3] = tokens[at : at + 3][::-1]
    return "".join(tokens)


class Maker:
    """A generator of texts with one or two declarations."""

    def __init__(self, random: Random):
        self._random = random
        self._skew = 1

    def text(self) -> str:
        """Return the text of a file; about one in three is a valid schema."""
        self._skew = self._random.choice((2, 3, 5))
        parts = [self._pick((self._message, self._message, self._enum, self._extend, self._service, self._other_top))()]
        if self._random.random() < 0.5:
            parts.append(self._other_top())
        return self._pick(_HEADS) + self._pick(("\n", " ", "//x\n")) + self._pick(("\n", " ")).join(parts)

    def _pick(self, items: Sequence[_ItemT]) -> _ItemT:
        return items[int(len(items) * self._random.random() ** self._skew)]

    def _some(self, most: int, *parts: _Part) -> str:
        count = self._random.randrange(most)
        return self._pick((" ", "\n", "")).join(self._pick(parts)() for _ in range(count))

    def _name(self) -> str:
        return self._pick(_NAMES)

    def _other(self) -> str:
        return self._pick(_OTHERS)

    def _string(self) -> str:
        quote = self._random.choice("\"'")
        inner = "".join(self._pick(_LETTERS) for _ in range(self._random.randrange(4)))
        return f"{quote}{inner}{quote}"

    def _value(self, depth: int = 0) -> str:
        kind = self._random.randrange(6 if depth < 3 else 4)
        if kind == 0:
            return self._string()
        if kind == 1:
            return f"{self._string()}{self._pick(('', ' ', '/*c*/'))}{self._string()}"
        if kind < 4:
            return self._pick(self._random.choice((_NUMBERS, _WORDS)))
        if kind == 4:
            entries = (
                f"{self._pick(_KEYS)}{self._pick((': ', ':', ' ', '='))}{self._value(depth + 1)}"
                f"{self._pick((', ', ' ', ';', ',,'))}"
                for _ in range(self._random.randrange(4))
            )
            return f"{{{''.join(entries)}}}"
        items = ",".join(self._value(depth + 1) for _ in range(self._random.randrange(3)))
        return f"[{items}{self._pick(('', '', ' ', ','))}]"

    def _option(self) -> str:
        return f"{self._pick(_OPTIONS)}{self._pick((' = ', '=', ': ', ''))}{self._value()}"

    def _options(self) -> str:
        if self._random.random() < 0.5:
            return ""
        options = self._pick((", ", ",", ",\n", ";")).join(self._option() for _ in range(self._random.randrange(1, 3)))
        return f"{self._pick((' ', '', '/*c*/'))}[{options}{self._pick(('', '', '', ','))}]"

    def _option_statement(self) -> str:
        return f"option {self._option()}{self._pick(_ENDS)}"

    def _field(self, labels: Sequence[str] = _LABELS) -> str:
        head = f"{self._pick(labels)}{self._pick(_TYPES)} {self._name()}{self._pick((' = ', '=', ' '))}"
        return f"{head}{self._pick(_NUMBERS)}{self._options()}{self._pick(_ENDS)}"

    def _member(self) -> str:
        return self._field(("", "", "", "optional "))

    def _group(self) -> str:
        inner = self._some(3, self._field, self._other)
        return f"{self._pick(_LABELS)}group {self._name()} = {self._pick(_NUMBERS)} {{{inner}}}"

    def _range(self) -> str:
        first, last = self._pick(_NUMBERS), self._pick((*_NUMBERS, "max"))
        return self._pick((first, f"{first} to {last}", f"{first} to max", self._string(), "max", f"{first} to", "a"))

    def _reserved(self) -> str:
        word = self._pick(("reserved", "extensions"))
        ranges = self._pick((", ", ",", " ")).join(self._range() for _ in range(self._random.randrange(1, 3)))
        return f"{word} {ranges}{self._options() if word == 'extensions' else ''}{self._pick(_ENDS)}"

    def _constant(self) -> str:
        return f"{self._name()} = {self._pick(_NUMBERS)}{self._options()}{self._pick(_ENDS)}"

    def _enum(self) -> str:
        inner = self._some(4, self._constant, self._option_statement, self._reserved, self._other)
        return f"enum {self._name()} {{{inner}}}{self._pick(('', ';'))}"

    def _oneof(self) -> str:
        inner = self._some(4, self._member, self._option_statement, self._group, self._other)
        return f"oneof {self._name()} {{{inner}}}"

    def _extend(self) -> str:
        return (
            f"extend {self._name()} {{{self._some(3, self._field, self._group, self._option_statement, self._other)}}}"
        )

    def _method(self) -> str:
        types = [
            f"({self._pick(('', 'stream ', 'stream'))}{self._pick(('A', '.A', 'a.B', 'stream', '', 'map<string,A>'))})"
            for _ in range(2)
        ]
        body = self._pick((";", " {}", "{};", f" {{ {self._option_statement()} }}", "{ rpc F(A) returns (A); }", ""))
        return f"rpc {self._name()}{types[0]} {self._pick(('returns', 'return'))} {types[1]}{body}"

    def _service(self) -> str:
        inner = self._some(4, self._method, self._option_statement, self._other)
        return f"service {self._name()} {{{inner}}}"

    def _message(self) -> str:
        nested = self._message if self._random.random() < 0.3 else self._enum
        parts = (self._field, self._oneof, self._option_statement, self._reserved, self._group, self._extend, nested)
        end = self._pick(("", ";", "// c\n", "/* c */"))
        return f"message {self._name()} {{{self._some(5, *parts, self._other)}}}{end}"

    def _other_top(self) -> str:
        return self._pick(
            (
                self._option_statement(),
                f"import {self._pick(('', 'public ', 'weak ', 'foo '))}{self._pick(_PATHS)}{self._pick(_ENDS)}",
                f"package {self._name()}{self._pick(_ENDS)}",
                self._other(),
            )
        )
