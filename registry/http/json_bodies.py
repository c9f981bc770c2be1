"""Reads the JSON of requests and writes that of answers."""

import codecs
import json
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, ValidationError

from strata.registry.core import errors

__all__ = ["Flag", "answer", "parse_body", "read_body", "text_answer"]

_BodyT = TypeVar("_BodyT", bound=BaseModel)
_DECODER = json.JSONDecoder()
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_RULE_SETS = ("ruleSet", "defaultRuleSet", "overrideRuleSet", "rulesToMerge")  # properties whose errors are 42210


def _lenient_flag(value: object) -> bool:
    """Return True for `true` in any case, else False: clients send `True`, and the reference never rejects a flag."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


Flag = Annotated[bool, BeforeValidator(_lenient_flag)]


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


def answer(content: Any, status: int = 200, media_type: str | None = None) -> Response:
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
