"""The JSON of requests and answers: models that parse bodies and describe the API, and functions that build answers.

Answers leave out null and empty properties, and keep `false` and 0. Requests may hold unknown properties, which are
ignored.
The functions build plain dictionaries: the answer models serve the OpenAPI document only, and a test checks each answer
against its model.
"""

from pydantic import Field

from strata.compat.entities import Tags
from strata.compat.limits import Limits
from strata.registry.api.bodies.contracts import Answer, Body, Metadata, RuleSet, SchemaTags, Text, tags_by_entity
from strata.registry.api.bodies.failures import FindingAnswer
from strata.registry.core.decide.register import Registered
from strata.registry.core.decide.tag import TagRequest
from strata.registry.core.schema_request import SchemaRequest
from strata.registry.http.bodies import Number, Truth, Word
from strata.storage.records import Reference, context_of, guid_of, qualified
from strata.storage.state import SchemaVersion, StoredSchema

__all__ = [
    "CompatibilityAnswer",
    "ContextIdAnswer",
    "RegisteredAnswer",
    "SchemaAnswer",
    "SchemaBody",
    "SchemaStringAnswer",
    "SubjectVersionAnswer",
    "TagsChange",
    "registered",
    "schema_string",
    "schema_version",
]


class ReferenceBody(Body):
    """A name that the schema uses, with the subject and version that it refers to."""

    name: Word = ""
    subject: Word = ""
    version: Number = -1


class SchemaBody(Body):
    """A schema to register, look up or check."""

    text: Word | None = Field(None, alias="schema", description="the schema text; blank: the latest version")
    schema_type: Word | None = Field(None, description="AVRO when absent")
    references: list[ReferenceBody] | None = None
    version: Number | None = Field(None, description="the version number to give it")
    schema_id: Number | None = Field(None, alias="id", description="the id to give it, in IMPORT mode")
    metadata: Metadata | None = Field(None, description="absent: that of the previous version")
    rule_set: RuleSet | None = Field(None, description="absent: that of the previous version")
    tags_to_add: list[SchemaTags] | None = Field(None, alias="schemaTagsToAdd")
    tags_to_remove: list[SchemaTags] | None = Field(None, alias="schemaTagsToRemove")
    propagate_tags: Truth | None = Field(
        None, alias="propagateSchemaTags", description="copy the tags of the previous version into the text"
    )

    @property
    def cited(self) -> tuple[Reference, ...]:
        """The references of the schema."""
        return tuple(Reference(r.name, r.subject, r.version) for r in self.references) if self.references else ()

    def request(self, limits: Limits) -> SchemaRequest:
        """Return the registration request that this body describes, with the limits of its processing."""
        return SchemaRequest(
            self.text or "",
            self.schema_type or "AVRO",
            self.cited,
            self.version or 0,
            None if self.schema_id is not None and self.schema_id < 0 else self.schema_id,
            None if self.metadata is None else self.metadata.value(),
            None if self.rule_set is None else self.rule_set.value(),
            tags_by_entity(self.tags_to_add) if self.tags_to_add else {},
            tags_by_entity(self.tags_to_remove) if self.tags_to_remove else {},
            self.propagate_tags is True,
            limits,
        )


class TagsChange(Body):
    """A change of tags, metadata or rules, which makes a new version of a schema."""

    new_version: Number | None = Field(None, description="the number of the new version; it must be the next one")
    tags_to_add: list[SchemaTags] | None = None
    tags_to_remove: list[SchemaTags] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = Field(None, description="ignored if rulesToMerge or rulesToRemove is present")
    rules_to_merge: RuleSet | None = Field(None, description="rules to add to, or replace in, the latest version")
    rules_to_remove: list[Text] | None = Field(None, description="names of rules")

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


class ReferenceAnswer(Answer):
    """A name that the schema uses, with the subject and version that it refers to."""

    name: str
    subject: str
    version: int


class _SchemaContent(Answer):
    guid: str
    schema_type: str
    references: list[ReferenceAnswer] | None = None
    metadata: Metadata | None = None
    text: str = Field(alias="schema")
    rule_set: RuleSet | None = None
    schema_tags: list[SchemaTags] | None = Field(None, description="if `findTags` asks for them")
    ts: int | None = None
    deleted: bool | None = None


class RegisteredAnswer(_SchemaContent):
    """The id and version of a registered schema; `ts` and `deleted` if it was registered before."""

    id: int
    version: int


class SchemaAnswer(RegisteredAnswer):
    """A version of a subject."""

    subject: str


class SchemaStringAnswer(_SchemaContent):
    """The schema of an id, with a subject and version that use it; or the schema of a GUID, without them."""

    subject: str | None = None
    version: int | None = None
    max_id: int | None = None


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

    is_compatible: bool = Field(alias="is_compatible")
    messages: list[str] | None = None
    findings: list[FindingAnswer] | None = None


_QUALIFIED = "qualified"


def schema_version(
    entry: SchemaVersion,
    *,
    stored: bool = True,
    text: str | None = None,
    tags: Tags | None = None,
    reference_format: str = "",
) -> dict[str, object]:
    """Return the JSON of a version of a subject.

    Args:
        entry: the version.
        stored: whether to include timestamp and deletion, which only the log knows; a look-up's answer leaves them out.
        text: the schema text to show; None shows the stored text.
        tags: the tags that the request asked for.
        reference_format: `qualified` adds the context to the subject of each reference.
    """
    content: dict[str, object] = {"subject": entry.subject, "version": entry.version, "id": entry.schema.schema_id}
    content |= _content(entry.schema, text, tags, _home(entry, reference_format))
    return content | (_log_facts(entry) if stored else {})


def registered(place: Registered, text: str | None = None) -> dict[str, object]:
    """Return the JSON of a registration, `id` first.

    Args:
        place: where the schema is registered.
        text: the schema text to show; None shows the stored text.
    """
    entry = place.entry
    content: dict[str, object] = {"id": entry.schema.schema_id, "version": entry.version}
    return content | _content(entry.schema, text) | (_log_facts(entry) if place.as_stored else {})


def schema_string(
    shown: SchemaVersion,
    *,
    named: bool,
    max_id: int | None,
    text: str | None = None,
    tags: Tags | None = None,
    reference_format: str = "",
) -> dict[str, object]:
    """Return the JSON of the schema that an id or GUID names.

    Args:
        shown: a version that uses the schema.
        named: whether to include the version's subject and number.
        max_id: the highest id in use, if the request asked for it.
        text: the schema text to show; None shows the stored text.
        tags: the tags that the request asked for.
        reference_format: `qualified` adds the context to the subject of each reference.
    """
    content: dict[str, object] = {"subject": shown.subject, "version": shown.version} if named else {}
    content |= _content(shown.schema, text, tags, _home(shown, reference_format))
    if max_id is not None:
        content["maxId"] = max_id
    return content | _log_facts(shown)


def _home(entry: SchemaVersion, reference_format: str) -> str | None:
    """Return the context of a version's references if the format asks for it, else None."""
    return context_of(entry.subject) if reference_format.lower() == _QUALIFIED else None


def _content(
    schema: StoredSchema, text: str | None, tags: Tags | None = None, home: str | None = None
) -> dict[str, object]:
    value = schema.value
    content: dict[str, object] = {"guid": guid_of(schema.fingerprint), "schemaType": schema.schema_type}
    if value.references:
        content["references"] = [
            {"name": r.name, "subject": qualified(r.subject, home) if home else r.subject, "version": r.version}
            for r in value.references
        ]
    if value.metadata:
        content["metadata"] = value.metadata
    content["schema"] = schema.text if text is None else text
    if value.rule_set:
        content["ruleSet"] = value.rule_set
    if tags:
        content["schemaTags"] = [
            {"schemaEntity": {"entityPath": entity.path, "entityType": entity.type.value}, "tags": list(names)}
            for entity, names in tags.items()
        ]
    return content


def _log_facts(entry: SchemaVersion) -> dict[str, object]:
    return {"ts": entry.timestamp, "deleted": entry.deleted}
