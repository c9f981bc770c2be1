"""The JSON of requests and answers: models that parse bodies and describe the API, and functions that build answers.

Answers leave out null and empty properties, and keep `false` and 0. Requests may hold unknown properties, which are
ignored.
The functions build plain dictionaries: the answer models serve the OpenAPI document only, and a test checks each answer
against its model.
"""

import codecs
import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Request
from fastapi.responses import Response
from pydantic import BeforeValidator, Field, ValidationError

from strata.compat.limits import Limits
from strata.compat.tags import Tags
from strata.registry import errors
from strata.registry.decide.register import Registered
from strata.registry.decide.tag import TagRequest
from strata.registry.parsing import SchemaRequest
from strata.registry.wire.contracts import (
    Answer,
    Body,
    MetadataAnswer,
    MetadataBody,
    Number,
    RuleSetAnswer,
    RuleSetBody,
    SchemaTagsAnswer,
    SchemaTagsBody,
    Text,
    Truth,
    Word,
    tags_by_entity,
)
from strata.registry.wire.findings import FindingAnswer
from strata.storage.records import Reference, context_of, qualified
from strata.storage.state import SchemaVersion, StoredSchema

__all__ = [
    "ChangedConfigAnswer",
    "CompatibilityAnswer",
    "ConfigAnswer",
    "ConfigChange",
    "ContextIdAnswer",
    "ErrorAnswer",
    "Flag",
    "LiveAnswer",
    "LogAnswer",
    "ModeAnswer",
    "ModeChange",
    "ReadyAnswer",
    "RegisteredAnswer",
    "SchemaAnswer",
    "SchemaBody",
    "SchemaStringAnswer",
    "SubjectVersionAnswer",
    "TagsChange",
    "answer",
    "read_body",
    "registered",
    "schema_string",
    "schema_version",
    "text_answer",
]


def _lenient_flag(value: object) -> bool:
    """Return True for `true` in any case, else False: clients send `True`, and the reference never rejects a flag."""
    return value is True or (isinstance(value, str) and value.lower() == "true")


Flag = Annotated[bool, BeforeValidator(_lenient_flag)]


class ReferenceBody(Body):
    """A name that the schema uses, with the subject and version that it refers to."""

    name: Word = ""
    subject: Word = ""
    version: Number = -1


class SchemaBody(Body):
    """A schema to register, look up or check."""

    text: Word | None = Field(None, alias="schema", description="the schema text; blank: the latest version")
    schema_type: Word | None = Field(None, alias="schemaType", description="AVRO when absent")
    references: list[ReferenceBody] | None = None
    version: Number | None = Field(None, description="the version it must get")
    schema_id: Number | None = Field(None, alias="id", description="the id it must get, in IMPORT mode")
    metadata: MetadataBody | None = Field(None, description="absent: that of the version before")
    rule_set: RuleSetBody | None = Field(None, alias="ruleSet", description="absent: that of the version before")
    tags_to_add: list[SchemaTagsBody] | None = Field(None, alias="schemaTagsToAdd")
    tags_to_remove: list[SchemaTagsBody] | None = Field(None, alias="schemaTagsToRemove")
    propagate_tags: Truth | None = Field(
        None, alias="propagateSchemaTags", description="put the tags of the version before into the text"
    )

    def request(self, limits: Limits) -> SchemaRequest:
        """Return the registration request that this body describes, with the limits of its processing."""
        return SchemaRequest(
            self.text or "",
            self.schema_type or "AVRO",
            tuple(Reference(r.name, r.subject, r.version) for r in self.references or ()),
            self.version or 0,
            None if self.schema_id is not None and self.schema_id < 0 else self.schema_id,
            None if self.metadata is None else self.metadata.value(),
            None if self.rule_set is None else self.rule_set.value(),
            tags_by_entity(self.tags_to_add),
            tags_by_entity(self.tags_to_remove),
            propagate_tags=self.propagate_tags is True,
            limits=limits,
        )


class TagsChange(Body):
    """A change of tags, metadata or rules, which makes a new version of a schema."""

    new_version: Number | None = Field(None, alias="newVersion", description="the next one, when given")
    tags_to_add: list[SchemaTagsBody] | None = Field(None, alias="tagsToAdd")
    tags_to_remove: list[SchemaTagsBody] | None = Field(None, alias="tagsToRemove")
    metadata: MetadataBody | None = None
    rule_set: RuleSetBody | None = Field(None, alias="ruleSet", description="without effect beside the next two")
    rules_to_merge: RuleSetBody | None = Field(None, alias="rulesToMerge", description="over those of the latest")
    rules_to_remove: list[Text] | None = Field(None, alias="rulesToRemove", description="names of rules")

    def request(self, limits: Limits) -> TagRequest:
        """Return the tag request that this body describes, with the limits of its processing."""
        return TagRequest(
            self.new_version or 0,
            tags_by_entity(self.tags_to_add),
            tags_by_entity(self.tags_to_remove),
            limits,
            None if self.metadata is None else self.metadata.value(),
            None if self.rule_set is None else self.rule_set.value(),
            None if self.rules_to_merge is None else self.rules_to_merge.value(),
            None if self.rules_to_remove is None else frozenset(self.rules_to_remove),
        )


class ConfigChange(Body):
    """A change of a configuration: an absent property keeps its value, null removes it."""

    alias: Text | None = Field(None, description="the subject that this name stands for")
    alias_for_deks: Text | None = Field(None, alias="aliasForDeks")
    normalize: Truth | None = None
    validate_fields: Truth | None = Field(None, alias="validateFields", description="refuse reserved field names")
    validate_new_schemas: Truth | None = Field(None, alias="validateNewSchemas")
    validate_rules: Truth | None = Field(None, alias="validateRules", description="true when absent")
    compatibility: Word | None = None
    compatibility_policy: Word | None = Field(None, alias="compatibilityPolicy", description="STRICT or LENIENT")
    compatibility_group: Text | None = Field(
        None, alias="compatibilityGroup", description="the property that must be equal for versions to be compared"
    )
    default_metadata: MetadataBody | None = Field(None, alias="defaultMetadata")
    override_metadata: MetadataBody | None = Field(None, alias="overrideMetadata")
    default_rule_set: RuleSetBody | None = Field(None, alias="defaultRuleSet")
    override_rule_set: RuleSetBody | None = Field(None, alias="overrideRuleSet")

    def change(self) -> dict[str, Any]:
        """Return the properties that the body holds by their JSON names, null ones included."""
        held = ((type(self).model_fields[name].alias or name, getattr(self, name)) for name in self.model_fields_set)
        return {name: value.value() if isinstance(value, MetadataBody | RuleSetBody) else value for name, value in held}


class ModeChange(Body):
    """The mode to set; null removes the mode of the scope itself."""

    mode: Word | None = None


class ErrorAnswer(Answer):
    """The body of an error; `findings` says why a schema is incompatible."""

    error_code: int
    message: str
    findings: list[FindingAnswer] | None = None


class LiveAnswer(Answer):
    """The liveness of the process."""

    live: bool


class _Progress(Answer):
    """How far a node has read the log (`offset`), and the end of the log when last seen (`end`)."""

    offset: int
    end: int
    behind: int
    seconds_since_read: float = Field(alias="secondsSinceRead")


class ReadyAnswer(_Progress):
    """Whether to route requests to this node; `reason` says why not."""

    ready: bool
    reason: str | None = None


class SetAsideAnswer(Answer):
    """A record that could not be read into the State."""

    offset: int
    reason: str


class SetAsideList(Answer):
    """The number of records set aside, and some of them, newest first."""

    count: int
    records: list[SetAsideAnswer]


class LogAnswer(_Progress):
    """The log and its contents; `holdsPen` and `holder` on logs where one node at a time may write."""

    backend: str
    holds_pen: bool | None = Field(None, alias="holdsPen")
    holder: str | None = None
    foreign_records: int = Field(alias="foreignRecords", description="written by others while this node had the pen")
    records: int = Field(description="read since the start of this node")
    counts: dict[str, int]
    set_aside: SetAsideList = Field(alias="setAside")


class ReferenceAnswer(Answer):
    """A name that the schema uses, with the subject and version that it refers to."""

    name: str
    subject: str
    version: int


class _SchemaContent(Answer):
    guid: str
    schema_type: str = Field(alias="schemaType")
    references: list[ReferenceAnswer] | None = None
    metadata: MetadataAnswer | None = None
    text: str = Field(alias="schema")
    rule_set: RuleSetAnswer | None = Field(None, alias="ruleSet")
    schema_tags: list[SchemaTagsAnswer] | None = Field(None, alias="schemaTags", description="when asked by `findTags`")


class RegisteredAnswer(_SchemaContent):
    """The id and version of a registered schema; `ts` and `deleted` if it was registered before."""

    id: int
    version: int
    ts: int | None = None
    deleted: bool | None = None


class SchemaAnswer(_SchemaContent):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    ts: int | None = None
    deleted: bool | None = None


class SchemaStringAnswer(_SchemaContent):
    """The schema of an id, with a subject and version that use it; or the schema of a GUID, without them."""

    subject: str | None = None
    version: int | None = None
    max_id: int | None = Field(None, alias="maxId")
    ts: int
    deleted: bool


class SubjectVersionAnswer(Answer):
    """A subject and version that use a schema."""

    subject: str
    version: int


class ContextIdAnswer(Answer):
    """The id of a schema within a context."""

    context: str
    id: int


class CompatibilityAnswer(Answer):
    """A compatibility verdict; messages and findings only if the request asks for them (`verbose`)."""

    is_compatible: bool
    messages: list[str] | None = None
    findings: list[FindingAnswer] | None = None


class _ConfigFields(Answer):
    alias: str | None = None
    alias_for_deks: str | None = Field(None, alias="aliasForDeks")
    normalize: bool | None = None
    validate_fields: bool | None = Field(None, alias="validateFields")
    validate_new_schemas: bool | None = Field(None, alias="validateNewSchemas")
    validate_rules: bool | None = Field(None, alias="validateRules")
    compatibility_policy: str | None = Field(None, alias="compatibilityPolicy")
    compatibility_group: str | None = Field(None, alias="compatibilityGroup")
    default_metadata: MetadataAnswer | None = Field(None, alias="defaultMetadata")
    override_metadata: MetadataAnswer | None = Field(None, alias="overrideMetadata")
    default_rule_set: RuleSetAnswer | None = Field(None, alias="defaultRuleSet")
    override_rule_set: RuleSetAnswer | None = Field(None, alias="overrideRuleSet")


class ConfigAnswer(_ConfigFields):
    """A configuration as read."""

    compatibility_level: str = Field(alias="compatibilityLevel")


class ChangedConfigAnswer(_ConfigFields):
    """The answer to a configuration change, which calls the level `compatibility`."""

    compatibility: str | None = None


class ModeAnswer(Answer):
    """A mode."""

    mode: str | None = None


_BodyT = TypeVar("_BodyT", bound=Body)
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_QUALIFIED = "qualified"
_RULE_SETS = ("ruleSet", "defaultRuleSet", "overrideRuleSet", "rulesToMerge")  # properties whose errors are 42210


async def read_body(request: Request, model: type[_BodyT]) -> _BodyT:
    """Return the body of a request as an instance of `model`.

    Raises:
        RegistryError: 422 if the body is missing; 400 if it is not JSON or does not fit the model; 42210 if a rule set
            does not fit.
    """
    data = _as_utf8(await request.body())
    if not data.strip() or data.strip() == b"null":
        raise errors.missing_body()
    try:
        return model.model_validate(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise errors.unreadable_body(f"The request body is not JSON: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the body"
        if first["loc"] and first["loc"][0] in _RULE_SETS:
            raise errors.invalid_rule_set(f"{where}: {first['msg']}") from None
        raise errors.unreadable_body(f"The request body cannot be used: {where}: {first['msg']}") from None


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


def answer(content: Any, status: int = 200, media_type: str | None = None) -> Response:
    """Return a JSON response, by default in the media type that the client prefers.

    A lone surrogate, which a name in a schema may hold, becomes a question mark.
    """
    try:
        body = orjson.dumps(content)
    except TypeError:
        body = json.dumps(content, ensure_ascii=False).encode(errors="replace")
    return Response(body, status, media_type=media_type)


def text_answer(text: str) -> Response:
    """Return a response that holds a schema text without a JSON wrapper."""
    return Response(text.encode())


def schema_version(
    entry: SchemaVersion,
    *,
    stored: bool = True,
    text: str | None = None,
    tags: Tags | None = None,
    reference_format: str = "",
) -> dict[str, Any]:
    """Return the JSON of a version of a subject.

    Args:
        entry: the version.
        stored: whether to include timestamp and deletion, which only the log knows; a look-up's answer leaves them out.
        text: the schema text to show; None shows the stored text.
        tags: the tags that the request asked for.
        reference_format: `qualified` adds the context to the subject of each reference.
    """
    content: dict[str, Any] = {"subject": entry.subject, "version": entry.version, "id": entry.schema.schema_id}
    content |= _content(entry.schema, text) | _tags(tags) | (_log_facts(entry) if stored else {})
    return content | _references(entry, reference_format)


def registered(place: Registered, text: str | None = None) -> dict[str, Any]:
    """Return the JSON of a registration, `id` first.

    Args:
        place: where the schema is registered.
        text: the schema text to show; None shows the stored text.
    """
    content: dict[str, Any] = {"id": place.schema.schema_id, "version": place.version}
    facts = _log_facts(place.existing) if place.existing and place.as_stored else {}
    return content | _content(place.schema, text) | facts


def schema_string(
    shown: SchemaVersion,
    *,
    named: bool,
    max_id: int | None,
    text: str | None = None,
    tags: Tags | None = None,
    reference_format: str = "",
) -> dict[str, Any]:
    """Return the JSON of the schema that an id or GUID names.

    Args:
        shown: a version that uses the schema.
        named: whether to include the version's subject and number.
        max_id: the highest id in use, if the request asked for it.
        text: the schema text to show; None shows the stored text.
        tags: the tags that the request asked for.
        reference_format: `qualified` adds the context to the subject of each reference.
    """
    content: dict[str, Any] = {"subject": shown.subject, "version": shown.version} if named else {}
    content |= _content(shown.schema, text) | _tags(tags) | _references(shown, reference_format)
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


def _references(entry: SchemaVersion, reference_format: str) -> dict[str, Any]:
    """Return the references with qualified subjects if the format is `qualified`, else nothing."""
    references = entry.schema.value.references
    if not references or reference_format.lower() != _QUALIFIED:
        return {}
    home = context_of(entry.subject)
    return {
        "references": [
            {"name": r.name, "subject": qualified(r.subject, home), "version": r.version} for r in references
        ]
    }


def _tags(tags: Tags | None) -> dict[str, Any]:
    found = [
        {"schemaEntity": {"entityPath": entity.path, "entityType": entity.type.value}, "tags": list(names)}
        for entity, names in (tags or {}).items()
    ]
    return {"schemaTags": found} if found else {}


def _log_facts(entry: SchemaVersion) -> dict[str, Any]:
    return {"ts": entry.timestamp, "deleted": entry.deleted}


def _present(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value}
