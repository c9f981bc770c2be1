"""JSON as the reference reads and prints a JSON Schema.

Numbers keep their digits, as in a BigDecimal. Text after the root value is dropped. Of two equal keys the last wins.
NaN and the infinities become strings.
"""

import hashlib
import re
from decimal import Decimal, InvalidOperation
from typing import Final, TypeAlias

from strata.compat.avro.json_text import check_bounds, decoded, decoder_of_long_numbers, excerpt, in_java_order, quote
from strata.compat.limits import Limits
from strata.compat.plain_json import orjson
from strata.compat.schema import SchemaParseError

__all__ = ["Json", "excerpt", "json_digest", "json_key", "read_json", "write_json"]

Json: TypeAlias = bool | int | Decimal | str | list["Json"] | dict[str, "Json"] | None

_NAME: Final = re.compile(r"[\w$]")  # a character that continues a word such as `true`
_BLANKS: Final = " \t\r\n"
_CONTROLS: Final = b"\\u00"  # how the escape of a control character begins
_LARGEST_EXPONENT: Final = 100_000  # beyond it, arithmetic on the number would cost more than the schema is worth


def read_json(text: str, limits: Limits) -> Json:
    """Read the first JSON value of a text.

    Raises:
        SchemaParseError: The text does not begin with a JSON value, or exceeds a bound.
    """
    check_bounds(text, limits)
    decoder = decoder_of_long_numbers(limits.number, str, _decimal)
    start = len(text) - len(text.lstrip(_BLANKS))
    value: Json
    value, end = decoded(decoder, text, start)
    if isinstance(value, bool) and _NAME.match(text, end):
        raise SchemaParseError(f"Not valid JSON: {excerpt(text[start:])}")
    return value


def write_json(value: Json, *, sort: bool = False) -> str:
    """Return compact JSON text; `sort` sorts the keys of every object as Java sorts strings."""
    if orjson is not None and not sort:
        try:
            text: bytes = orjson.dumps(value)
        except TypeError:  # a number with a point or an exponent or beyond 64 bits, a lone surrogate
            return _written(value, sort=False)
        if _CONTROLS not in text:  # whose hexadecimal digits Java writes as capitals
            return text.decode()
    return _written(value, sort=sort)


def _written(value: Json, *, sort: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return str(value.copy_abs() if value.is_zero() else value)
    if isinstance(value, list):
        return f"[{','.join([_written(item, sort=sort) for item in value])}]"
    keys = in_java_order(value) if sort else value
    return "{" + ",".join([f"{quote(key)}:{_written(value[key], sort=sort)}" for key in keys]) + "}"


def json_key(value: Json) -> str:
    """Return a text that is equal for two values if, and only if, they are equal in the reference."""
    return write_json(value, sort=True)


def json_digest(value: Json, known: dict[int, str]) -> str:
    """Return a digest that is equal where `json_key` is; `known` caches the digests of parts by object id."""
    if not isinstance(value, dict | list):
        return json_key(value)
    digest = known.get(id(value))
    if digest is None:
        whole = hashlib.blake2b(b"{" if isinstance(value, dict) else b"[", digest_size=16)
        if isinstance(value, dict):
            parts = (f"{quote(key)}:{json_digest(value[key], known)}," for key in in_java_order(value))
        else:
            parts = (f"{json_digest(item, known)}," for item in value)
        for part in parts:
            whole.update(part.encode())
        digest = known[id(value)] = whole.hexdigest()
    return digest


def _decimal(digits: str) -> Decimal:
    try:
        number = Decimal(digits)
    except InvalidOperation:
        raise SchemaParseError(f"Number out of range: {excerpt(digits)}") from None
    if abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise SchemaParseError(f"Number out of range: {excerpt(digits)}")
    return number
