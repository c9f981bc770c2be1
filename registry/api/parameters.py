"""The parameters that routes share, parsed like the reference does: lenient flags, percent-encoded path segments."""

import re
from collections.abc import Callable
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query
from pydantic import AfterValidator, BeforeValidator

from strata.registry.api.bodies.contracts import Body
from strata.registry.api.bodies.schemas import SchemaBody
from strata.registry.core import errors
from strata.registry.core.lookup import parse_version
from strata.registry.core.subject_names import PathSubject, subject_name, writable_subject
from strata.registry.http.bodies import read_whole
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.registry.http.json_bodies import Flag, parse_body
from strata.storage.records import Subject

__all__ = [
    "AssociationType",
    "ContextPath",
    "DefaultToGlobal",
    "Deleted",
    "DeletedOnly",
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
    given = Annotated[str, AfterValidator(parse), BeforeValidator(_decode), Path(description=description)]

    async def read(exchange: ExchangeDep, subject: given) -> PathSubject:
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
