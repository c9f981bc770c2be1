"""The function of a route, called with the parameters that its signature declares.

FastAPI documents the same signatures, but does not serve them: per request, its resolution of parameters cost ten times
as much as the route itself (docs/decisions/0017). A signature uses a part of FastAPI's language, which this module
reads once, when the route is declared:

- `ExchangeDep` stands for the exchange of the request, and `Request` for FastAPI's form of it;
- `Annotated[T, Depends(function)]` for the result of an asynchronous function, which has parameters of its own;
- a name in braces in the path stands for that segment of the path;
- any other parameter is read from the query string, by its name or by the `alias` of its `Query`, and has a default.

Values are validated by pydantic, as FastAPI does. As there, what depends on functions comes first, in the order of the
signature, then the path, then the query string; the first error counts.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.params import Depends
from fastapi.responses import Response
from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from strata.registry.core import errors
from strata.registry.http.exchange import Exchange, this_exchange

__all__ = ["Endpoint"]

_Query = Mapping[str, list[str]]
_NO_QUERY: _Query = {}
_Validate = Callable[[object], object]


class Endpoint:
    """A route's function, which answers a request.

    Args:
        function: the asynchronous function.
        path: the path of the route, with names in braces.
    """

    def __init__(self, function: Callable[..., Awaitable[Response]], path: str) -> None:
        segments = {part[1:-1]: place for place, part in enumerate(path.split("/")) if part[:1] == "{"}
        self._call = _Call(function, segments)

    async def __call__(self, exchange: Exchange) -> Response:
        """Return the response to a request.

        Raises:
            RegistryError: any error of the parameters or of the function.
        """
        scope = exchange.scope
        query = _parsed(scope["query_string"]) if scope["query_string"] else _NO_QUERY
        response: Response = await self._call.answer(_Given(exchange, scope["path"].split("/"), query))
        return response


class _Given:
    """A request with the segments of its path and the parameters of its query string."""

    __slots__ = ("exchange", "query", "segments")

    def __init__(self, exchange: Exchange, segments: list[str], query: _Query) -> None:
        self.exchange, self.segments, self.query = exchange, segments, query


class _Call:
    """A function and where its arguments come from."""

    def __init__(self, function: Callable[..., Awaitable[object]], segments: Mapping[str, int]) -> None:
        self._function = function
        self._request: str | None = None
        self._exchange: str | None = None
        self._functions: list[tuple[str, _Call]] = []
        self._path: list[tuple[str, int, _Validate | None]] = []
        self._query: list[tuple[str, str, _Validate | None, bool]] = []
        self._defaults: dict[str, Any] = {}
        hints = get_type_hints(function, include_extras=True)
        for name, parameter in inspect.signature(function).parameters.items():
            self._declare(name, hints[name], parameter.default, segments)
        self._copied = [name for name, value in self._defaults.items() if isinstance(value, list)]

    def _declare(self, name: str, hint: object, default: object, segments: Mapping[str, int]) -> None:
        kind, notes = (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
        depends = next((note for note in notes if isinstance(note, Depends)), None)
        if kind is Request:
            self._request = name
        elif depends is not None and depends.dependency is this_exchange:
            self._exchange = name
        elif depends is not None and depends.dependency is not None:
            self._functions.append((name, _Call(depends.dependency, segments)))
        elif name in segments:
            self._path.append((name, segments[name], _validation(kind, notes)))
        elif default is inspect.Parameter.empty:
            raise TypeError(f"the parameter {name} of {self._function} needs a default")
        else:
            alias = next((note.alias for note in notes if isinstance(note, FieldInfo) and note.alias), name)
            self._query.append((name, alias, _validation(kind, notes), get_origin(kind) is list))
            self._defaults[name] = default

    async def answer(self, given: _Given) -> Any:
        """Call the function and return its result."""
        values = self._defaults.copy()
        for name in self._copied:
            values[name] = values[name].copy()
        for name, call in self._functions:
            values[name] = await call.answer(given)
        for name, place, validate in self._path:
            text = given.segments[place]
            values[name] = _validated(f"path.{name}", text, validate) if validate else text
        for name, alias, validate, is_list in self._query if given.query else ():
            if alias in given.query:
                value = given.query[alias] if is_list else given.query[alias][-1]
                values[name] = _validated(f"query.{alias}", value, validate) if validate else value
        if self._request is not None:
            values[self._request] = Request(given.exchange.scope, given.exchange.receive)
        if self._exchange is not None:
            values[self._exchange] = given.exchange
        return await self._function(**values)


def _parsed(query_string: bytes) -> _Query:
    """Return the parameters of a query string, as Starlette reads them."""
    text, query = query_string.decode("latin-1"), dict[str, list[str]]()
    if "%" in text or "+" in text:
        pairs = parse_qsl(text, keep_blank_values=True)
    else:  # mostly; this takes a third of the time
        pairs = [(name, value) for name, _, value in (part.partition("=") for part in text.split("&") if part)]
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    return query


def _validation(kind: Any, notes: tuple[object, ...]) -> _Validate | None:
    """Return what validates a text; None if any text is valid."""
    rules = tuple(note for note in notes if not isinstance(note, FieldInfo))
    if kind in (str, str | None, list[str]) and not rules:
        return None
    validate = TypeAdapter(Annotated[(kind, *rules)] if rules else kind).validator.validate_python
    before: list[Any] = [rule.func for rule in reversed(rules) if isinstance(rule, BeforeValidator)]
    after: list[Any] = [rule.func for rule in rules if isinstance(rule, AfterValidator)]
    if kind not in (str, int) or len(before) + len(after) < len(rules):
        return validate

    def validate_shortly(value: Any) -> Any:
        """Call the functions, as pydantic does in twice the time, which words the errors."""
        result = value
        try:
            for function in before:
                result = function(result)
            if type(result) is kind:
                for function in after:
                    result = function(result)
                return result
        except (ValueError, AssertionError):
            pass
        return validate(value)

    return validate_shortly


def _validated(where: str, value: object, validate: _Validate) -> object:
    try:
        return validate(value)
    except ValidationError as error:
        raise errors.unreadable_body(f"{where}: {error.errors()[0]['msg']}") from None
