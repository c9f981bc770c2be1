"""The JSON of requests and answers: models that parse bodies and describe the API, and builders of answer bodies.

Answers leave out what is null or empty, and keep `false` and 0. Unknown properties of a request are ignored.
Builders return bytes: the models of answers serve the OpenAPI document, and a test holds each answer against its
model.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import orjson
from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from registry import errors
from registry.decide.register import Registered
from registry.schemas import SchemaRequest
from storage.records import Reference
from storage.state import SchemaVersion, StoredSchema

__all__ = [
    "MEDIA_TYPES",
    "CompatibilityAnswer",
    "ConfigAnswer",
    "ConfigChange",
    "ContextIdAnswer",
    "ErrorAnswer",
    "Flag",
    "ModeAnswer",
    "ModeChange",
    "RegisteredAnswer",
    "SchemaAnswer",
    "SchemaBody",
    "SchemaStringAnswer",
    "SubjectVersionAnswer",
    "answer",
    "read_body",
    "registered",
    "schema_string",
    "schema_version",
    "text_answer",
]

# What we answer in, by preference, and what we take.
MEDIA_TYPES = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)


def _lenient_flag(value: object) -> bool:
    """Anything but `true` is false, in any case: clients send `True`, and the reference never refuses a flag."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


Flag = Annotated[bool, BeforeValidator(_lenient_flag)]


class _Body(BaseModel):
    """A request's JSON object."""

    model_config = ConfigDict(extra="ignore", protected_namespaces=(), strict=True)


class ReferenceBody(_Body):
    """A name inside the schema, and the subject and version it stands for."""

    name: str = ""
    subject: str = ""
    version: int = -1


class SchemaBody(_Body):
    """A schema to register, look up or check."""

    text: str | None = Field(None, alias="schema", description="the schema text; blank: the latest version")
    schema_type: str | None = Field(None, alias="schemaType", description="AVRO when absent")
    references: list[ReferenceBody] | None = None
    version: int | None = Field(None, description="the version it must get")
    schema_id: int | None = Field(None, alias="id", description="the id it must get, in IMPORT mode")

    def request(self) -> SchemaRequest:
        """Return the request in the terms of the decisions."""
        return SchemaRequest(
            self.text or "",
            self.schema_type or "AVRO",
            tuple(Reference(r.name, r.subject, r.version) for r in self.references or ()),
            self.version or 0,
            None if self.schema_id is not None and self.schema_id < 0 else self.schema_id,
        )


class ConfigChange(_Body):
    """A change of a configuration: an absent property keeps what stands, null clears it."""

    compatibility: str | None = None
    compatibility_policy: str | None = Field(None, alias="compatibilityPolicy", description="STRICT or LENIENT")
    normalize: bool | None = None
    validate_new_schemas: bool | None = Field(None, alias="validateNewSchemas")

    def change(self) -> dict[str, Any]:
        """Return the properties that the request holds, null ones included."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class ModeChange(_Body):
    """The mode to set; null clears the scope's own."""

    mode: str | None = None


class _Answer(BaseModel):
    """An answer's JSON object, for the OpenAPI document."""

    model_config = ConfigDict(protected_namespaces=(), extra="forbid")


class ErrorAnswer(_Answer):
    """Any answer other than success."""

    error_code: int
    message: str


class ReferenceAnswer(_Answer):
    """A name inside the schema, and the subject and version it stands for."""

    name: str
    subject: str
    version: int


class RegisteredAnswer(_Answer):
    """Where a schema stands now; `ts` and `deleted` when it stood there before."""

    id: int
    version: int
    guid: str
    schema_type: str = Field(alias="schemaType")
    references: list[ReferenceAnswer] | None = None
    text: str = Field(alias="schema")
    ts: int | None = None
    deleted: bool | None = None


class SchemaAnswer(_Answer):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    guid: str
    schema_type: str = Field(alias="schemaType")
    references: list[ReferenceAnswer] | None = None
    text: str = Field(alias="schema")
    ts: int | None = None
    deleted: bool | None = None


class SchemaStringAnswer(_Answer):
    """What an id names; subject and version when the request named a subject."""

    subject: str | None = None
    version: int | None = None
    guid: str
    schema_type: str = Field(alias="schemaType")
    references: list[ReferenceAnswer] | None = None
    text: str = Field(alias="schema")
    max_id: int | None = Field(None, alias="maxId")
    ts: int
    deleted: bool


class SubjectVersionAnswer(_Answer):
    """A use of a schema."""

    subject: str
    version: int


class ContextIdAnswer(_Answer):
    """A schema's id within a context."""

    context: str
    id: int


class CompatibilityAnswer(_Answer):
    """A verdict; messages only when asked for (`verbose`)."""

    is_compatible: bool
    messages: list[str] | None = None


class ConfigAnswer(_Answer):
    """A configuration as read (a change names the level `compatibility`)."""

    model_config = ConfigDict(extra="allow")
    compatibility_level: str = Field(alias="compatibilityLevel")


class ModeAnswer(_Answer):
    """A mode."""

    mode: str | None = None


async def read_body(request: Request, model: type[_Body]) -> Any:
    """Parse a request's body.

    Raises:
        RegistryError: 422 when there is none, 400 when it is not what the route takes.
    """
    data = await request.body()
    if not data.strip() or data.strip() == b"null":
        raise errors.missing_body()
    try:
        return model.model_validate(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise errors.unreadable_body(f"The request body is not JSON: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        raise errors.unreadable_body(f"The request body cannot be used: {where}: {first['msg']}") from None


def answer(content: Any, status: int = 200) -> Response:
    """Return a JSON answer; the media type is settled by the front, from what the client accepts."""
    return Response(orjson.dumps(content), status)


def text_answer(text: str) -> Response:
    """Return a schema text as it is, not wrapped in JSON."""
    return Response(text.encode())


def schema_version(entry: SchemaVersion, *, stored: bool = True, text: str | None = None) -> dict[str, Any]:
    """Return a version of a subject, in another text when one is given.

    Not `stored`: as the echo of a look-up, without what only the log knows.
    """
    content = {"subject": entry.subject, "version": entry.version, "id": entry.schema.schema_id}
    return content | _content(entry.schema, text) | (_log_facts(entry) if stored else {})


def registered(place: Registered, text: str | None = None) -> dict[str, Any]:
    """Return the answer to a registration, `id` first; in another text when one is given."""
    content: dict[str, Any] = {"id": place.schema.schema_id, "version": place.version}
    return content | _content(place.schema, text) | (_log_facts(place.existing) if place.existing else {})


def schema_string(shown: SchemaVersion, *, subject: str, max_id: int | None, text: str | None = None) -> dict[str, Any]:
    """Return what an id names, in another text when one is given."""
    content: dict[str, Any] = {"subject": shown.subject, "version": shown.version} if subject else {}
    content |= _content(shown.schema, text)
    if max_id is not None:
        content["maxId"] = max_id
    return content | _log_facts(shown)


def _content(schema: StoredSchema, text: str | None = None) -> dict[str, Any]:
    value = schema.value
    content: dict[str, Any] = {"guid": schema.guid, "schemaType": schema.schema_type}
    if value.references:
        content["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in value.references]
    content |= _present({"metadata": value.metadata})
    content["schema"] = schema.text if text is None else text
    return content | _present({"ruleSet": value.rule_set})


def _log_facts(entry: SchemaVersion) -> dict[str, Any]:
    return {"ts": entry.timestamp, "deleted": entry.deleted}


def _present(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value}
