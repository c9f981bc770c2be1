"""The parameters that routes share, as the reference reads them: lenient flags, encoded path segments."""

from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator

from registry import errors
from registry.lookup import parse_version
from registry.names import subject_name, writable_subject
from registry.wire import MEDIA_TYPES, ErrorAnswer, Flag

__all__ = [
    "Deleted",
    "DeletedOnly",
    "Force",
    "Form",
    "GuidPath",
    "IdPath",
    "Limit",
    "Normalize",
    "Offset",
    "Permanent",
    "ReferenceFormat",
    "SubjectPath",
    "SubjectQuery",
    "Verbose",
    "VersionPath",
    "WritableSubjectPath",
    "body_of",
    "failures",
]


def _decode(value: object) -> object:
    return unquote(value) if isinstance(value, str) else value


def _int(value: object) -> object:
    """A bad integer is an unknown path, as the reference has it."""
    try:
        return int(str(value))
    except ValueError:
        raise errors.not_found() from None


SubjectPath = Annotated[
    str,
    AfterValidator(subject_name),
    BeforeValidator(_decode),
    Path(description="the subject, percent-encoded; `:.context:subject` outside the default context"),
]
WritableSubjectPath = Annotated[
    str, AfterValidator(writable_subject), BeforeValidator(_decode), Path(description="the subject, percent-encoded")
]
VersionPath = Annotated[
    int, BeforeValidator(lambda value: parse_version(unquote(str(value)))), Path(description="1, 2, … or `latest`")
]
IdPath = Annotated[int, BeforeValidator(_int), Path(description="the schema id")]
GuidPath = Annotated[str, BeforeValidator(_decode), Path(description="the GUID, with or without dashes")]
ReferenceFormat = Annotated[
    str, Query(alias="referenceFormat", description="accepted; references are always told as they are stored")
]
SubjectQuery = Annotated[str, Query(description="the subject whose context the id is looked up in")]
Form = Annotated[
    str,
    Query(alias="format", description="another text: `resolved` (Avro), `serialized`, `ignore_extensions` (Protobuf)"),
]
Deleted = Annotated[Flag, Query(description="soft-deleted ones too")]
DeletedOnly = Annotated[Flag, Query(alias="deletedOnly", description="soft-deleted ones only")]
Permanent = Annotated[Flag, Query(description="hard-delete what was soft-deleted before")]
Normalize = Annotated[Flag, Query(description="compare and store the normalised text")]
Force = Annotated[Flag, Query(description="do it against the rules that guard it")]
Verbose = Annotated[Flag, Query(description="say why not")]
Offset = Annotated[int, BeforeValidator(_int), Query(description="how many to leave out")]
Limit = Annotated[int, BeforeValidator(_int), Query(description="how many at most; below zero: all")]


def body_of(model: type[Any]) -> dict[str, Any]:
    """Return what the OpenAPI document says of a body that the route parses itself."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema = _inlined(schema, schema.pop("$defs", {}))
    content = {media_type: {"schema": schema} for media_type in (*MEDIA_TYPES, "application/octet-stream")}
    return {"requestBody": {"required": True, "content": content}}


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """Put definitions where they are referred to: the document holds no place for them."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: _inlined(item, definitions) for name, item in schema.items()}


def failures(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return what the OpenAPI document says of the error codes a route may answer."""
    by_status: dict[int | str, list[int]] = {}
    for code in (*codes, 500, 50001, 50002):
        by_status.setdefault(code if code < 1000 else code // 100, []).append(code)
    return {
        status: {"model": ErrorAnswer, "description": "error_code " + ", ".join(map(str, sorted(found)))}
        for status, found in by_status.items()
    }
