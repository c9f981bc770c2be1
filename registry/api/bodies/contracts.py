"""The JSON of data contracts in requests and answers: metadata, rule sets and tags.

`value()` returns the form that is stored and answered: sorted where order has no meaning, defaults filled in, nothing
null or empty, so that equal contracts have equal forms.
"""

from collections.abc import Iterable
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from strata.compat.entities import Entity, EntityType
from strata.registry.core.decide.content import rule_set_of
from strata.registry.http.bodies import Truth, Word
from strata.storage import records

__all__ = [
    "Answer",
    "Body",
    "Metadata",
    "RuleSet",
    "SchemaTags",
    "Text",
    "TextMap",
    "Texts",
    "tags_by_entity",
]

MAX_ENTRIES = 1000  # of any list or map here, which the reference does not limit

Text = Annotated[Word, Field(max_length=64 * 1024)]
Texts = Annotated[list[Text], Field(max_length=MAX_ENTRIES)]
Action = Annotated[Text | None, Field(description="an action; two actions, `a,b`, for a rule of two modes")]
TextMap = Annotated[dict[Text, Text], Field(max_length=MAX_ENTRIES)]


class Body(BaseModel):
    """The JSON object of a request; unknown properties are ignored."""

    # Built on the first request that needs it: a node should start fast.
    model_config = ConfigDict(
        extra="ignore", alias_generator=to_camel, protected_namespaces=(), strict=True, defer_build=True
    )


class Answer(BaseModel):
    """The JSON object of an answer, for the OpenAPI document."""

    model_config = ConfigDict(alias_generator=to_camel, protected_namespaces=(), extra="forbid", defer_build=True)


class Metadata(Body):
    """The metadata of a schema: tags, properties and the names of sensitive properties."""

    tags: Annotated[dict[Text, Texts], Field(max_length=MAX_ENTRIES)] | None = Field(
        None, description="path (`*` and `**` stand for names in it) -> tags"
    )
    properties: TextMap | None = None
    sensitive: Texts | None = Field(None, description="the names of sensitive properties")

    def value(self) -> records.Metadata:
        """Return the metadata as stored; empty if nothing is set."""
        value: records.Metadata = {}
        if self.tags:
            value["tags"] = {path: sorted(set(tags)) for path, tags in sorted(self.tags.items())}
        if self.properties:
            value["properties"] = dict(sorted(self.properties.items()))
        if self.sensitive:
            value["sensitive"] = sorted(set(self.sensitive))
        return value


class Rule(Body):
    """A rule: a transformation or a condition of records."""

    name: Text | None = None
    doc: Text | None = None
    kind: Literal["TRANSFORM", "CONDITION"] | None = Field(None, description="TRANSFORM when absent")
    mode: Literal["UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD"] | None = Field(
        None, description="WRITEREAD when absent"
    )
    type: Text | None = Field(None, description="the executor: CEL, JSONATA, ENCRYPT, …")
    tags: Texts | None = Field(None, description="the tags of the fields to which it applies")
    params: TextMap | None = None
    expr: Text | None = None
    on_success: Action = None
    on_failure: Action = None
    disabled: Truth | None = None

    def value(self) -> records.Rule:
        """Return the rule as stored."""
        texts = self.model_dump(by_alias=True, exclude={"tags", "params", "disabled"}, exclude_none=True)
        texts |= {"kind": self.kind or "TRANSFORM", "mode": self.mode or "WRITEREAD"}
        lists = {"tags": sorted(set(self.tags or ())), "params": dict(sorted((self.params or {}).items()))}
        every = texts | lists
        present = {name: every[name] for name in _RULE_ORDER if every.get(name)}
        return cast("records.Rule", present | {"disabled": self.disabled is True})


_RULE_ORDER = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure")
Rules = Annotated[list[Rule], Field(max_length=MAX_ENTRIES)]


class RuleSet(Body):
    """The rules of a schema by the phase in which they run."""

    migration_rules: Rules | None = None
    domain_rules: Rules | None = None
    encoding_rules: Rules | None = None
    enable_at: Literal["ALL", "CLIENT", "GATEWAY", "SERVER", "NONE"] | None = None

    def value(self) -> records.RuleSet:
        """Return the rule set as stored; empty if there are no rules."""
        phases: dict[records.Phase, list[Rule] | None] = {
            "migrationRules": self.migration_rules,
            "domainRules": self.domain_rules,
            "encodingRules": self.encoding_rules,
        }
        return rule_set_of(
            {phase: [rule.value() for rule in rules or ()] for phase, rules in phases.items()}, self.enable_at
        )


class TaggedEntity(Body):
    """A record or a field of a schema."""

    path: Text = Field(alias="entityPath", description="names with dots between, as `findTags` shows them")
    kind: Literal["sr_record", "sr_field"] = Field(alias="entityType")


class SchemaTags(Body):
    """Tags of a record or a field."""

    entity: TaggedEntity = Field(alias="schemaEntity")
    tags: Texts | None = None


def tags_by_entity(bodies: Iterable[SchemaTags] | None) -> dict[Entity, tuple[str, ...]]:
    """Return the tags of each entity; several entries for one entity are combined."""
    tags: dict[Entity, tuple[str, ...]] = {}
    for body in bodies or ():
        entity = Entity(body.entity.path.removeprefix("."), EntityType(body.entity.kind))
        tags[entity] = (*tags.get(entity, ()), *(body.tags or ()))
    return tags
