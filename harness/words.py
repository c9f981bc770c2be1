"""The words that plain English does without, kept out of prose, docstrings, comments and messages.

    python -m harness.words [FILE …]     every tracked file when none is named

Looks at Markdown, at comments and string literals of Python (docstrings and messages are such), and at comments and
strings of Java. Ends with 1 and a line for each find. A line whose words are fixed by the wire carries `wire text` in a
comment.
"""

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

__all__ = ["main", "quaint"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_WIRE: Final = "wire text"
# Recorded answers, and this file with its tests, quote what they must.
_LEFT_OUT: Final = ("tests/conformance/", "harness/words.py", "tests/harness/test_words.py")
# What to look for, and what to write.
WORDS: Final = (
    (r"whoever", "the client, the caller, who"),
    (r"(?<![\"'`/])(?:some|any|no)body(?![\"'`/])", "name the actor: a client, another node, nothing"),
    (r"anew", "again"),
    (r"had better", "should"),
    (r"(?:is|are|was|were|be|been) told(?! apart)", "says, gets, learns"),
    (r"(?:that|which|what|who) (?:is|are|was|were) none", "that is not one"),
    (r"(?:if|when|where) it is none", "if it is not one"),
    (r"and is none|but is none", "but is not one"),
    (r"in the clothes of", "as"),
    (r"hence|whence|thereof|therein|thereby|whereupon|lest", "so, from which, of it, …"),
    (r"bears? another", "has another"),
    (r"(?:what is|is what is|are) said of", "the description of"),
    (r"once more", "again"),
    (r"all the same", "anyway"),
    (r"(?:it|they|who|which|that) stands? still", "does not change"),
    (r"makes? nothing of", "ignores"),
    (r"goes without saying", "is the default"),
    (r"machine of batches|machine of the way back", "batch decoder, encoding VM"),
    # "There is no record" is English, "this is no record" is not.
    (r"(?<!here )(?:is|are|was|were) no (?!longer|more|less|need|such|doubt)(?=\w)", "is not a, are not"),
    (r"the own", "this node's own, the local"),
    (r"shall", "must, will"),
    (r"in silence|without a word", "silently"),
    (r"on whatever|of whatever kind", "on any, of any kind"),
    (r"speaks? against", "rules out, contradicts"),
)
_WORDS: Final = re.compile(
    "|".join(rf"(?P<w{n}>\b(?:{pattern})\b)" for n, (pattern, _) in enumerate(WORDS)), re.IGNORECASE
)
_JAVA: Final = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)


def main(arguments: Sequence[str]) -> int:
    """Check files; return 1 when a word was found."""
    found = 0
    for name in arguments or _tracked():
        for line, word, instead in quaint(name, (_ROOT / name).read_text()):
            found += 1
            sys.stdout.write(f"{name}:{line}: {word!r}: write {instead}\n")
    return 1 if found else 0


def quaint(name: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, word and what to write instead, for each word of the list in the prose of a file."""
    wire = {number for number, line in enumerate(text.splitlines(), 1) if _WIRE in line}
    for start, prose in _prose(Path(name).suffix, text):
        for match in _WORDS.finditer(re.sub(r"\s", " ", prose)):
            line = start + prose.count("\n", 0, match.start())
            if line not in wire:
                yield line, match[0], WORDS[int((match.lastgroup or "w0")[1:])][1]


def _tracked() -> list[str]:
    command = ["git", "ls-files", "*.md", "*.py", "*.java"]
    names = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if not name.startswith(_LEFT_OUT)]


def _prose(suffix: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a file that people read, each with its first line."""
    if suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in _READ:
                yield token.start[0], token.string
    elif suffix == ".java":
        for match in _JAVA.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, match[0]
    else:
        yield 1, text


# Pieces of f-strings are tokens of their own from Python 3.12 on.
_READ: Final = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
