"""Schema texts as a page shows them: indented, highlighted by Pygments, and cut if they are long.

Indenting adds white space between the parts of a JSON text and changes nothing else, so the digits of a number and the
order of names stay as stored.
"""

import re
from typing import Final, NamedTuple

from markupsafe import Markup, escape

__all__ = ["ShownText", "indented", "plain_text", "shown_text"]

_MOST_HIGHLIGHTED: Final = 16 << 10
_MOST: Final = 256 << 10
_LEXERS: Final = {"AVRO": "JsonLexer", "JSON": "JsonLexer", "PROTOBUF": "ProtoBufLexer"}
# A string without an end is one part: no character is read twice.
_PART: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\],:]|[^"{}\[\],:\s]+|\s+', re.DOTALL)
_DEEPEST: Final = 100
# Controls besides tab and line feed, marks for direction, invisible characters, lone surrogates.
_ODD = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


class ShownText(NamedTuple):
    """A text as a page shows it.

    Attributes:
        html: the text, escaped and highlighted.
        is_cut: whether its end is missing.
    """

    html: Markup
    is_cut: bool


def shown_text(text: str, schema_type: str) -> ShownText:
    """Return a schema text for a page."""
    is_cut = len(text) > _MOST
    shown = text[:_MOST]
    if schema_type != "PROTOBUF" and not is_cut and "\n" not in shown.strip():
        shown = indented(shown, _MOST)
    shown = plain_text(shown)
    lexer = _LEXERS.get(schema_type)
    if lexer is None or len(shown) > _MOST_HIGHLIGHTED:
        return ShownText(escape(shown), is_cut)
    return ShownText(_highlighted(shown, lexer), is_cut)


def plain_text(text: str) -> str:
    """Return a text in which each character that is invisible, or moves others, is spelled out."""
    return _ODD.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def indented(text: str, most: int = _MOST) -> str:
    """Return a JSON text with one name or item in a line; a text that would get too long is returned as it is."""
    made: list[str] = []
    depth = length = 0
    for part in _parts(text):
        if part in "}]":
            depth -= 1
            piece = part if made and made[-1][0] in "{[" else _line(depth) + part
        elif made and made[-1][-1] in "{[":
            piece = _line(depth) + part
        else:
            piece = part
        if part in "{[":
            depth += 1
        piece += {",": _line(depth), ":": " "}.get(part, "")
        made.append(piece)
        length += len(piece)
        if length > most:
            return text
    return "".join(made)


def _parts(text: str) -> list[str]:
    return [part for part in _PART.findall(text) if not part.isspace()]


def _line(depth: int) -> str:
    return "\n" + "  " * min(max(depth, 0), _DEEPEST)


def _highlighted(text: str, lexer: str) -> Markup:
    import pygments
    from pygments import lexers
    from pygments.formatters import HtmlFormatter

    loaded = getattr(lexers, lexer)(stripnl=False, ensurenl=False)
    return Markup(pygments.highlight(text, loaded, HtmlFormatter(nowrap=True)))  # noqa: S704 - the formatter escapes
