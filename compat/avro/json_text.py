"""JSON as Avro Java reads and prints it (Jackson, with comments allowed).

Reading keeps integers of any size and refuses NaN. Of two equal keys, the last value takes the position of the first.
Length, depth and digits are checked before the standard parser, which has no bounds, sees the text. Comments are
allowed wherever blanks are, except after the end.

Printing is compact, escapes only control characters, quotes, backslashes and lone surrogates, and prints a number with
a point or an exponent as a Java double. Infinity and NaN, which JSON does not have, become strings.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from strata.compat.avro.java_numbers import java_double
from strata.compat.avro.model import Json
from strata.compat.limits import Limits
from strata.compat.plain_json import orjson
from strata.compat.schema import SchemaParseError

__all__ = [
    "check_bounds",
    "decoded",
    "decoder_of_long_numbers",
    "excerpt",
    "holds_long_number",
    "in_java_order",
    "json_equal",
    "quote",
    "read_json",
    "read_plain_json",
    "write_json",
]

_STRING: Final = r'"(?:[^"\\]++|\\.)*+"?'
_TOKENS: Final = re.compile(_STRING + r"|[\[{\]}]", re.DOTALL)
_ILLEGAL: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f"  # illegal everywhere, so a comment ends here and is invalid
_COMMENTS: Final = re.compile(rf"{_STRING}|//[^\r\n{_ILLEGAL}]*+|/\*(?:[^*{_ILLEGAL}]++|\*(?!/))*+(?:\*/)?", re.DOTALL)
_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_CONTROLS: Final = "".join(map(chr, range(0x21)))  # the characters that Java's trim() removes

_NUMBERS: Final = bytes(ord("0") if chr(byte) in "0123456789.eE+-" else ord(" ") for byte in range(256))
_FITS_64_BITS: Final = 18  # digits
_BRIEF: Final = 512  # characters
_STEP: Final = 4  # so many characters, of which one is looked at in the search for long numbers

_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_EXCERPT: Final = 200


def read_json(text: str, limits: Limits) -> Json:
    """Read a text that holds exactly one JSON value.

    Raises:
        SchemaParseError: The text is not JSON, continues after the value, or exceeds a bound.
    """
    plain = _without_comments(text) if "//" in text or "/*" in text else text
    check_bounds(plain, limits)
    long = _may_hold_long_number(plain, limits.number)
    decoder = decoder_of_long_numbers(limits.number, _refuse_constant, float) if long else _DECODER
    value, end = decoded(decoder, plain, _skip_blanks(plain))
    if text[end:].strip(_CONTROLS):
        raise SchemaParseError(
            f"Expected nothing after the end of the schema, got {excerpt(text[end:].strip(_CONTROLS))}"
        )
    return value


def read_plain_json(text: str, limits: Limits) -> Json:
    """Return what `read_json` returns, faster; None if the text is not plain JSON, or has integers beyond 64 bits.

    Raises:
        SchemaParseError: The text exceeds a bound.
    """
    if orjson is None or len(text) > limits.text:
        return None
    try:
        content = text.encode()
        value = orjson.loads(content)
        # orjson reads integers beyond 64 bits as floats, and does not write them. All else that it reads differently is
        # an error here.
        if holds_long_number(content, limits):
            value = read_json(text, limits)
            orjson.dumps(value)
    except SchemaParseError:
        raise
    except (ValueError, TypeError):
        return None
    if content.count(b"{") + content.count(b"[") > limits.depth:
        check_bounds(text, limits)
    return value


def holds_long_number(content: bytes, limits: Limits) -> bool:
    """Return whether a text may hold a number that is too long, or that does not fit into 64 bits."""
    length = min(limits.number, _FITS_64_BITS) + 1
    # Such a number leaves its mark on every sample of the text, which is quick to search.
    if len(content) > _BRIEF and b"0" * (length // _STEP) not in content[::_STEP].translate(_NUMBERS):
        return False
    return b"0" * length in content.translate(_NUMBERS)


def decoded(decoder: json.JSONDecoder, text: str, start: int) -> tuple[Json, int]:
    """Return the JSON value at a position of a text, and where it ends.

    Raises:
        SchemaParseError: There is no JSON value.
    """
    try:
        return decoder.raw_decode(text, start)
    except SchemaParseError:
        raise
    except (ValueError, RecursionError) as error:
        raise SchemaParseError(f"Not valid JSON: {error}") from None


def decoder_of_long_numbers(
    digits: int, constant: Callable[[str], object], real: Callable[[str], object]
) -> json.JSONDecoder:
    """Return a decoder that refuses numbers of too many digits.

    Args:
        digits: The most digits of a number.
        constant: Returns the value of NaN and the infinities.
        real: Returns the value of a number with a point or an exponent.
    """

    def check(text: str) -> str:
        if sum(map(str.isdigit, text)) > digits:
            raise SchemaParseError(f"A number of more than {digits} digits: {excerpt(text)}")
        return text

    return json.JSONDecoder(
        parse_constant=constant,
        parse_int=lambda text: int(check(text)),
        parse_float=lambda text: real(check(text)),
    )


def check_bounds(text: str, limits: Limits) -> None:
    """Check the length and depth of a JSON text.

    Raises:
        SchemaParseError: The text is too long or nested too deeply.
    """
    if len(text) > limits.text:
        raise SchemaParseError(f"The schema has {len(text)} characters, more than the {limits.text} allowed")
    content = text.encode(errors="replace")  # bytes are counted in half the time
    if content.count(b"{") + content.count(b"[") <= limits.depth:
        return
    depth = 0
    for token in _TOKENS.finditer(text):
        character = token[0]
        if character in ("{", "["):
            depth += 1
            if depth > limits.depth:
                raise SchemaParseError(f"The schema is nested deeper than {limits.depth} levels")
        elif character in ("}", "]"):
            depth -= 1


def write_json(value: Json) -> str:
    """Return a JSON value as Jackson prints it."""
    if value is None:
        return "null"
    value_type = type(value)
    if value_type is str:
        return quote(value)
    if value_type is int:
        return str(value)
    if value_type is bool:
        return "true" if value else "false"
    if value_type is float:
        text = java_double(value)
        return f'"{text}"' if text.endswith(("y", "N")) else text
    if value_type is list:
        return f"[{','.join(map(write_json, value))}]"
    return "{" + ",".join(f"{quote(key)}:{write_json(item)}" for key, item in value.items()) + "}"


def quote(text: str) -> str:
    """Return a text as a JSON string.

    A lone surrogate becomes its escape, since UTF-8 cannot encode it.
    """
    return f'"{_ESCAPED.sub(_escape, text)}"' if _ESCAPED.search(text) else f'"{text}"'


def excerpt(text: str) -> str:
    """Shorten a text for an error message."""
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"


def in_java_order(texts: Iterable[str]) -> list[str]:
    """Sort texts as Java compares strings: by UTF-16 code units."""
    return sorted(texts, key=_utf_16)


def json_equal(left: Json, right: Json) -> bool:
    """Return whether two values are equal in Jackson.

    1, 1.0 and true differ, and so do 0.0 and -0.0; the order of keys is ignored.
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(json_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(json_equal, left, right))
    if isinstance(left, float):
        return java_double(left) == java_double(right)
    return bool(left == right)


def _utf_16(text: str) -> bytes | str:
    return text.encode("utf-16-be", "surrogatepass")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _ESCAPES.get(character) or f"\\u{ord(character):04X}"


def _refuse_constant(text: str) -> NoReturn:
    raise SchemaParseError(f"Not valid JSON: {text} is not a number that JSON knows")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)


def _may_hold_long_number(text: str, digits: int) -> bool:
    # A long run of such characters leaves its mark on every sample of the text, which is quick to search.
    step = digits // 4 or 1
    sample = rf"[0-9.eE+-]{{{(digits + 1) // step}}}"
    if len(text) <= digits or not re.search(sample, text[::step]):
        return False
    return re.search(rf"(?<![0-9.eE+-])[0-9.eE+-]{{{digits + 1}}}", text) is not None


def _skip_blanks(text: str) -> int:
    blanks = _BLANKS.match(text)
    return blanks.end() if blanks else 0


def _without_comments(text: str) -> str:
    """Replace comments by blanks, so that all other characters keep their positions."""
    return _COMMENTS.sub(lambda match: match[0] if match[0].startswith('"') else " " * len(match[0]), text)
