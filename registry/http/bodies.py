"""Bodies: those of requests with a size limit as received and as decompressed, and the JSON of requests and answers.

A few kilobytes of gzip can hold gigabytes, so both sizes are limited.
"""

import codecs
import json
import re
from collections.abc import Callable
from typing import Annotated, TypeVar

import orjson
from pydantic import BaseModel, BeforeValidator, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from strata.registry.core import errors
from strata.registry.http.asgi import Message, Receive
from strata.registry.http.compression import decompressed

__all__ = [
    "Flag",
    "Number",
    "Truth",
    "Word",
    "answer",
    "decompressing",
    "limited",
    "parse_body",
    "read_body",
    "read_up_to",
    "read_whole",
    "replayed",
    "text_answer",
]


_BodyT = TypeVar("_BodyT", bound=BaseModel)
_DECODER = json.JSONDecoder()
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_TRUTHS = {text: value for value in (True, False) for text in (str(value), str(value).lower(), str(value).upper())}
_RULE_SETS = ("ruleSet", "defaultRuleSet", "overrideRuleSet", "rulesToMerge")  # properties whose errors are 42210


def limited(receive: Receive, limit: int, note: Callable[[int], None] = lambda _size: None) -> Receive:
    """Return a `receive` that limits the size of a body, whatever the headers say.

    Args:
        receive: the ASGI callable to wrap.
        limit: the largest body in bytes.
        note: is called with the size of the body so far.

    Raises:
        RegistryError: from the returned callable, 413 if the body exceeds the limit.
        ClientDisconnect: from the returned callable, if the client disconnects before the body is complete; no route
            may act on part of a body.
    """
    seen, complete = 0, False

    async def receive_some() -> Message:
        nonlocal seen, complete
        message = await receive()
        if message["type"] == "http.disconnect" and not complete:
            raise ClientDisconnect
        complete = not message.get("more_body", False)
        seen += len(message.get("body", b""))
        note(seen)
        if seen > limit:
            raise errors.too_large(limit)
        return message

    return receive_some


def decompressing(receive: Receive, limit: int) -> Receive:
    """Return a `receive` that decompresses a gzip body and passes it on in one piece.

    Args:
        receive: the ASGI callable to wrap.
        limit: the largest decompressed body in bytes.

    Raises:
        RegistryError: from the returned callable, 413 if the decompressed body exceeds the limit; 400 if it is not
            valid gzip.
    """
    is_read = False

    async def receive_decompressed() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return _whole(await decompressed(await read_whole(receive), limit))

    return receive_decompressed


async def read_whole(receive: Receive) -> bytes:
    """Return the body of a request.

    Raises:
        ClientDisconnect: if the client disconnects before the body is complete.
    """
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def read_up_to(receive: Receive, most: int) -> tuple[bytes | None, Receive]:
    """Return the body of a request, None if it has more than `most` bytes, and a `receive` that gives it again.

    Raises:
        ClientDisconnect: if the client disconnects before the body, or `most` bytes of it, have arrived.
    """
    body, messages = b"", []
    while len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        messages.append(message)
        if not message.get("more_body", False):
            break
    unread = iter(messages)

    async def receive_again() -> Message:
        return next(unread, None) or await receive()

    return body if len(body) <= most else None, receive_again


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read before, then what `receive` gives."""
    is_given = False

    async def receive_again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return _whole(body)

    return receive_again


def _whole(body: bytes) -> Message:
    return {"type": "http.request", "body": body, "more_body": False}


def _lenient_flag(value: object) -> bool:
    """Return True for `true` in any case, else False: clients send `True`, and the reference never rejects a flag."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


Flag = Annotated[bool, BeforeValidator(_lenient_flag)]


def _as_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _as_number(value: object) -> object:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_truth(value: object) -> object:
    return _TRUTHS.get(value, value) if isinstance(value, str) else value


# As in the reference, numbers and booleans may be quoted, and either is accepted as a string.
Word = Annotated[str, BeforeValidator(_as_text)]
Number = Annotated[int, BeforeValidator(_as_number)]
Truth = Annotated[bool, BeforeValidator(_as_truth)]


async def read_body(request: Request, model: type[_BodyT]) -> _BodyT:
    """Return the body of a request as an instance of `model`; see `parse_body`."""
    return parse_body(await request.body(), model)


def parse_body(body: bytes, model: type[_BodyT]) -> _BodyT:
    """Return a body as an instance of `model`.

    Raises:
        RegistryError: 422 if the body is missing; 400 if it is not JSON or does not fit the model; 42210 if a rule set
            does not fit.
    """
    data = _as_utf8(body)
    if not data.strip() or data.strip() == b"null":
        raise errors.missing_body()
    try:
        return model.model_validate(_first_value(data))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        if first["loc"] and first["loc"][0] in _RULE_SETS:
            raise errors.invalid_rule_set(f"{where}: {first['msg']}") from None
        raise errors.unreadable_body(f"The request body cannot be used: {where}: {first['msg']}") from None


def _first_value(data: bytes) -> object:
    """Return the JSON value with which a body begins; what follows is dropped, as in the reference.

    One user interface for registries (schema-registry-ui) sends a quote after the body of each write.

    Raises:
        RegistryError: 400 if there is no value.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        try:
            text = data.decode().lstrip()
            # `json` only finds the end: it reads a lone surrogate and NaN, which are not JSON.
            return orjson.loads(text[: _DECODER.raw_decode(text)[1]])
        except (ValueError, RecursionError):
            raise errors.unreadable_body(f"The request body is not JSON: {error}") from None


def _as_utf8(body: bytes) -> bytes:
    """Return a JSON body in UTF-8 without a byte order mark, from UTF-16 or UTF-32 if its first bytes show that.

    Raises:
        RegistryError: 400 if it is not valid in the encoding that its first bytes show.
    """
    if b"\0" not in body[:4] and not body.startswith(_BYTE_ORDER_MARKS):
        return body
    encoding = json.detect_encoding(body)
    try:
        return body.decode(encoding).encode()
    except UnicodeError:
        raise errors.unreadable_body(f"The request body is not JSON in {encoding.upper()}, as it begins") from None


class _Plain(Response):
    """A response without headers, which the exchange adds; Starlette's own class takes three times as long."""

    def __init__(self, body: bytes, status: int) -> None:
        self.body, self.status_code, self.raw_headers, self.background = body, status, [], None


def answer(content: object, status: int = 200, media_type: str | None = None) -> Response:
    """Return a JSON response, by default in the media type that the client prefers.

    A lone surrogate, which a name in a schema may hold, becomes a question mark.
    """
    try:
        body = orjson.dumps(content)
    except TypeError:
        body = json.dumps(content, ensure_ascii=False).encode(errors="replace")
    return _Plain(body, status) if media_type is None else Response(body, status, media_type=media_type)


def text_answer(text: str) -> Response:
    """Return a response that holds a schema text without a JSON wrapper."""
    return Response(text.encode())
