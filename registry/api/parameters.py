"""The parameters of routes: how a route's function is called with those that its signature declares, and shared ones.

FastAPI documents the same signatures, but does not serve them: per request, its resolution of parameters cost ten times
as much as the route itself (docs/decisions/0017). A signature uses a part of FastAPI's language, by the marks of
`http/parameter_marks.py`, which this module reads once, when the route is declared:

- `ExchangeDep` stands for the exchange of the request, and `Request` for FastAPI's form of it;
- `Annotated[T, Depends(function)]` for the result of an asynchronous function, which has parameters of its own;
- a name in braces in the path stands for that segment of the path;
- any other parameter is read from the query string, by its name or by the `alias` of its `Query`, and has a default.

Values are validated by pydantic, as FastAPI does. As there, what depends on functions comes first, in the order of the
signature, then the path, then the query string; the first error counts. Parameters that routes share are parsed like
the reference does: lenient flags, percent-encoded path segments.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, unquote

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.bodies.contracts import Body
from strata.registry.api.bodies.schemas import SchemaBody
from strata.registry.core import errors
from strata.registry.core.lookup import parse_version
from strata.registry.core.subject_names import PathSubject, subject_name, writable_subject
from strata.registry.http.bodies import Flag, parse_body, read_whole
from strata.registry.http.exchange import Exchange, ExchangeDep, this_exchange
from strata.registry.http.parameter_marks import Depends, Path, Query
from strata.storage.records import Subject

__all__ = [
    "AssociationType",
    "ContextPath",
    "DefaultToGlobal",
    "Deleted",
    "DeletedOnly",
    "Endpoint",
    "ExporterPath",
    "FindTags",
    "Force",
    "Form",
    "GivenSchema",
    "GuidPath",
    "IdPath",
    "KekPath",
    "Limit",
    "Normalize",
    "Offset",
    "Paging",
    "Permanent",
    "ReferenceFormat",
    "SubjectPath",
    "SubjectQuery",
    "Verbose",
    "VersionPath",
    "Witness",
    "WritableSubjectPath",
    "body_first",
]

_INTEGER = re.compile(r"[+-]?[0-9]{1,100}")
_BEYOND_64_BITS = 1 << 63
_KNOWN_SEGMENTS = 256  # of up to 8 KiB each
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
        response: Response = await self._call.answer(_RequestParts(exchange, scope["path"].split("/"), query))
        return response


class _RequestParts:
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
        self._takes_exchange_alone = self._exchange is not None and len(hints.keys() - {"return"}) == 1

    def _declare(self, name: str, hint: object, default: object, segments: Mapping[str, int]) -> None:
        type_, notes = (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
        depends = next((note for note in notes if isinstance(note, Depends)), None)
        if type_ is Request:
            self._request = name
        elif depends is not None and depends.function is this_exchange:
            self._exchange = name
        elif depends is not None:
            self._functions.append((name, _Call(depends.function, segments)))
        elif name in segments:
            validate = _validation(type_, notes)
            # Clients ask about the same subjects and versions again and again.
            self._path.append((name, segments[name], validate and lru_cache(_KNOWN_SEGMENTS)(validate)))
        elif default is inspect.Parameter.empty:
            raise TypeError(f"the parameter {name} of {self._function} needs a default")
        else:
            alias = next((note.alias for note in notes if isinstance(note, Query) and note.alias), name)
            self._query.append((name, alias, _validation(type_, notes), get_origin(type_) is list))
            self._defaults[name] = default

    def answer(self, parts: _RequestParts) -> Awaitable[Any]:
        """Call the function."""
        return self._function(parts.exchange) if self._takes_exchange_alone else self._answer(parts)

    async def _answer(self, parts: _RequestParts) -> Any:
        values = self._defaults.copy()
        for name in self._copied:
            values[name] = values[name].copy()
        for name, call in self._functions:
            values[name] = await call.answer(parts)
        for name, place, validate in self._path:
            text = parts.segments[place]
            values[name] = _validated("path", name, text, validate) if validate else text
        if parts.query:
            for name, alias, validate, is_list in self._query:
                if alias in parts.query:
                    value = parts.query[alias] if is_list else parts.query[alias][-1]
                    values[name] = _validated("query", alias, value, validate) if validate else value
        if self._request is not None:
            values[self._request] = Request(parts.exchange.scope, parts.exchange.receive)
        if self._exchange is not None:
            values[self._exchange] = parts.exchange
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


@cache
def _validation(type_: Any, notes: tuple[object, ...]) -> _Validate | None:
    """Return what validates a text, which routes with the same parameter share; None if any text is valid."""
    rules = tuple(note for note in notes if not isinstance(note, Query | Path))
    if type_ in (str, str | None, list[str]) and not rules:
        return None
    validate = TypeAdapter(Annotated[(type_, *rules)] if rules else type_).validator.validate_python
    before: list[Any] = [rule.func for rule in reversed(rules) if isinstance(rule, BeforeValidator)]
    after: list[Any] = [rule.func for rule in rules if isinstance(rule, AfterValidator)]
    if type_ not in (str, int) or len(before) + len(after) < len(rules):
        return validate

    def validate_shortly(value: object) -> object:
        """Call the functions, as pydantic does in twice the time, which words the errors."""
        result = value
        try:
            for function in before:
                result = function(result)
            if type(result) is type_:
                for function in after:
                    result = function(result)
                return result
        except (ValueError, AssertionError):
            pass
        return validate(value)

    return validate_shortly


def _validated(part: str, name: str, value: object, validate: _Validate) -> object:
    try:
        return validate(value)
    except ValidationError as error:
        raise errors.unreadable_body(f"{part}.{name}: {error.errors()[0]['msg']}") from None


def _decode(value: object) -> object:
    return unquote(value) if isinstance(value, str) else value


def _int(value: object) -> object:
    """Parse an integer of at most 64 bits; answer 404 for anything else, as the reference does."""
    text = unquote(str(value))
    if not _INTEGER.fullmatch(text) or not -_BEYOND_64_BITS <= int(text) < _BEYOND_64_BITS:
        raise errors.not_found()
    return int(text)


def _int_or(default: int) -> BeforeValidator:
    """Return a validator that replaces an empty parameter by a default."""
    return BeforeValidator(lambda value: default if value == "" else _int(value))


def _named(exchange: Exchange, subject: str) -> PathSubject:
    access = exchange.access
    return PathSubject(subject, access.check_target, access.covers)


def _subject_of_path(parse: Callable[[str], Subject], description: str) -> object:
    """Return a dependency that gives the subject in the path, as a function parses it."""
    path_subject = Annotated[str, AfterValidator(parse), BeforeValidator(_decode), Path(description=description)]

    async def read(exchange: ExchangeDep, subject: path_subject) -> PathSubject:
        return _named(exchange, subject)

    return Depends(read)


async def _subject_of_query(
    exchange: ExchangeDep,
    subject: Annotated[str | None, Query(description="a subject of the context in which to look up the id")] = None,
) -> PathSubject:
    return _named(exchange, subject_name(subject or ""))


SubjectPath = Annotated[
    PathSubject,
    _subject_of_path(subject_name, "the subject, percent-encoded; `:.context:subject` outside the default context"),
]
WritableSubjectPath = Annotated[PathSubject, _subject_of_path(writable_subject, "the subject, percent-encoded")]
VersionPath = Annotated[
    int, BeforeValidator(lambda value: parse_version(unquote(str(value)))), Path(description="1, 2, … or `latest`")
]
IdPath = Annotated[int, BeforeValidator(_int), Path(description="the schema id")]
GuidPath = Annotated[str, BeforeValidator(_decode), Path(description="the GUID, with or without dashes")]
ContextPath = Annotated[
    str, BeforeValidator(_decode), Path(description="the context, percent-encoded, with or without its leading dot")
]
KekPath = Annotated[str, BeforeValidator(_decode), Path(description="the key encryption key")]
ExporterPath = Annotated[str, BeforeValidator(_decode), Path(description="the exporter, percent-encoded")]
ReferenceFormat = Annotated[
    str, Query(alias="referenceFormat", description="`qualified`: reference subjects with their context")
]
SubjectQuery = Annotated[PathSubject, Depends(_subject_of_query)]
Form = Annotated[
    str,
    Query(
        alias="format",
        description="the form of the text: `resolved` (Avro), `serialized` or `ignore_extensions` (Protobuf)",
    ),
]
FindTags = Annotated[
    list[str], Query(alias="findTags", description="show the records and fields with one of these tags; `*`: any")
]
AssociationType = Annotated[list[str], Query(alias="associationType", description="`key`, `value`, or both")]
Deleted = Annotated[Flag, Query(description="include soft-deleted ones")]
DeletedOnly = Annotated[Flag, Query(alias="deletedOnly", description="only soft-deleted ones")]
DefaultToGlobal = Annotated[
    Flag, Query(alias="defaultToGlobal", description="return the inherited value if the scope has none of its own")
]
Permanent = Annotated[Flag, Query(description="hard-delete what is already soft-deleted")]
Normalize = Annotated[Flag, Query(description="normalize the schema before it is compared and stored")]
Force = Annotated[Flag, Query(description="skip the checks that would reject the request")]
Verbose = Annotated[Flag, Query(description="include messages and findings that explain the verdict")]
Witness = Annotated[
    Flag,
    Query(description="include findings, each with a record that shows it, and changes of values; implies verbose"),
]
Offset = Annotated[int, _int_or(0), Query(description="how many results to skip")]
Limit = Annotated[int, _int_or(-1), Query(description="the most results to return; below 1: all")]


async def _paging(offset: Offset = 0, limit: Limit = -1) -> tuple[int, int]:
    return offset, limit


Paging = Annotated[tuple[int, int], Depends(_paging)]


def body_first(model: type[Body]) -> object:
    """Return a dependency that parses the body first, so that its errors come first as in the reference."""

    async def read(exchange: ExchangeDep) -> Body:
        is_read = exchange.body_bytes is not None
        return parse_body(exchange.body if is_read else await read_whole(exchange.receive), model)

    return Depends(read)


GivenSchema = Annotated[SchemaBody, body_first(SchemaBody)]
