"""Schemas, rules, configs and associations as confluent-kafka names them, and their JSON.

Names, order and defaults of the parameters are those of confluent-kafka 2.16; `tests/serdes/confluent/test_api.py`
compares them. `to_dict` and `from_dict` use the names of the REST API.

Rules of this file: values and their JSON; the rest of the package works with `strata.serdes.model`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Self

from strata.serdes import model
from strata.serdes.errors import wrong_schema

__all__ = [
    "Association",
    "AssociationCreateOrUpdateInfo",
    "AssociationCreateOrUpdateRequest",
    "AssociationInfo",
    "AssociationResponse",
    "ConfigCompatibilityLevel",
    "Metadata",
    "MetadataProperties",
    "MetadataTags",
    "RegisteredSchema",
    "Rule",
    "RuleKind",
    "RuleMode",
    "RuleParams",
    "RulePhase",
    "RuleSet",
    "Schema",
    "SchemaReference",
    "SchemaVersion",
    "ServerConfig",
    "engine_schema",
]


class ConfigCompatibilityLevel(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
    """The compatibility levels."""

    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


class RuleKind(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
    """What a rule does: a condition holds or not, a transform returns a new value."""

    CONDITION = "CONDITION"
    TRANSFORM = "TRANSFORM"


class RuleMode(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
    """When a rule runs."""

    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    READ = "READ"
    WRITE = "WRITE"
    WRITEREAD = "WRITEREAD"


class RulePhase(str, Enum):  # noqa: UP042 - its text is that of confluent-kafka
    """The part of a rule set that a rule is in."""

    MIGRATION = "MIGRATION"
    DOMAIN = "DOMAIN"
    ENCODING = "ENCODING"


class _Part:
    """A value with the fields of a JSON object, in camel case; fields that are None are left out."""

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Parse a JSON object; other properties are ignored.

        Raises:
            ValueError: If a property has none of the values that its enum has.
        """
        values = {}
        for one in fields(cls):  # type: ignore[arg-type]  # each part is a dataclass
            value = src_dict.get(_wire_name(one.name))
            read: Callable[[Any], Any] | None = one.metadata.get("read")
            if value is None:
                value = one.metadata.get("empty", lambda: None)()
            elif read is not None:
                value = read(value)
            values[one.name] = value
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        pairs = ((one.name, getattr(self, one.name)) for one in fields(self))  # type: ignore[arg-type]
        return {_wire_name(name): _json(value) for name, value in pairs if value is not None}

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))


def _wire_name(name: str) -> str:
    if name in _WIRE_NAMES:
        return _WIRE_NAMES[name]
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


_WIRE_NAMES = {"schema_str": "schema", "schema_id": "id"}


def _json(value: Any) -> Any:
    match value:
        case _Part():
            return value.to_dict()
        case list() | tuple() | set() | frozenset():
            return [_json(one) for one in value]
        case Enum():
            return value.value
    return value


def _read(read: Callable[[Any], Any], **more: Any) -> Any:
    """Return a field whose JSON is parsed by a function."""
    return field(metadata={"read": read}, **more)


def _many(kind: type[_Part], **more: Any) -> Any:
    """Return a field with a list of parts; a missing one is empty."""
    return field(metadata={"read": lambda given: [kind.from_dict(one) for one in given], "empty": list}, **more)


@dataclass
class RuleParams(_Part):
    """The parameters of a rule."""

    params: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Parse a JSON object."""
        return cls(params=dict(src_dict))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return dict(self.params)

    __hash__ = _Part.__hash__


@dataclass
class MetadataTags(_Part):
    """The tags of fields, by path."""

    tags: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Parse a JSON object."""
        return cls(tags={name: list(tags) for name, tags in src_dict.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {name: list(tags) for name, tags in self.tags.items()}

    __hash__ = _Part.__hash__


@dataclass
class MetadataProperties(_Part):
    """The properties of a schema, by name."""

    properties: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Parse a JSON object."""
        return cls(properties=dict(src_dict))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return dict(self.properties)

    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Metadata(_Part):
    """The metadata of a schema."""

    tags: MetadataTags | None = _read(MetadataTags.from_dict)
    properties: MetadataProperties | None = _read(MetadataProperties.from_dict)
    sensitive: list[str] | None = field(metadata={"empty": list})

    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Rule(_Part):
    """A rule of a data contract."""

    name: str | None
    doc: str | None
    kind: RuleKind | None = _read(RuleKind)
    mode: RuleMode | None = _read(RuleMode)
    type: str | None
    tags: list[str] | None
    params: RuleParams | None = _read(RuleParams.from_dict)
    expr: str | None
    on_success: str | None
    on_failure: str | None
    disabled: bool | None

    __hash__ = _Part.__hash__


@dataclass
class RuleSet(_Part):
    """The rules of a schema."""

    migration_rules: list[Rule] | None = _many(Rule)
    domain_rules: list[Rule] | None = _many(Rule)
    encoding_rules: list[Rule] | None = _many(Rule, default=None)
    enable_at: str | None = None

    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class SchemaReference(_Part):
    """A reference of a schema to another one."""

    name: str | None
    subject: str | None
    version: int | None

    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class SchemaVersion(_Part):
    """A subject and one of its versions."""

    subject: str | None
    version: int | None

    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Schema(_Part):
    """A schema that need not be registered."""

    schema_str: str | None
    schema_type: str | None = "AVRO"
    references: list[SchemaReference] | None = _many(SchemaReference, default_factory=list)
    metadata: Metadata | None = _read(Metadata.from_dict, default=None)
    rule_set: RuleSet | None = _read(RuleSet.from_dict, default=None)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Parse a JSON object; without a type it is Avro."""
        return super().from_dict({"schemaType": "AVRO", **src_dict})

    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class RegisteredSchema(_Part):
    """A schema with its id, and the subject and version that hold it."""

    subject: str | None
    version: int | None
    schema_id: int | None
    guid: str | None
    schema: Schema

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Parse a JSON object, in which the properties of the schema are beside the others."""
        names = ("subject", "version", "id", "guid")
        return cls(*(src_dict.get(name) for name in names), schema=Schema.from_dict(src_dict))  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        own = {"id": self.schema_id, "guid": self.guid, "subject": self.subject, "version": self.version}
        return self.schema.to_dict() | {name: value for name, value in own.items() if value is not None}

    __hash__ = _Part.__hash__


@dataclass
class ServerConfig(_Part):
    """The config of a subject, or the global one."""

    compatibility: ConfigCompatibilityLevel | None = _read(ConfigCompatibilityLevel, default=None)
    compatibility_level: ConfigCompatibilityLevel | None = _read(ConfigCompatibilityLevel, default=None)
    compatibility_group: str | None = None
    default_metadata: Metadata | None = _read(Metadata.from_dict, default=None)
    override_metadata: Metadata | None = _read(Metadata.from_dict, default=None)
    default_rule_set: RuleSet | None = _read(RuleSet.from_dict, default=None)
    override_rule_set: RuleSet | None = _read(RuleSet.from_dict, default=None)


@dataclass(frozen=True)
class Association(_Part):
    """A subject that belongs to a resource, such as a topic."""

    subject: str | None
    guid: str | None
    resource_name: str | None
    resource_namespace: str | None
    resource_id: str | None
    resource_type: str | None
    association_type: str | None
    frozen: bool = field(default=False, metadata={"empty": bool})

    __hash__ = _Part.__hash__


@dataclass
class AssociationInfo(_Part):
    """An association in an answer."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool = field(default=False, metadata={"empty": bool})
    schema: Schema | None = _read(Schema.from_dict, default=None)


@dataclass
class AssociationCreateOrUpdateInfo(_Part):
    """An association to create or update."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Schema | None = _read(Schema.from_dict, default=None)
    normalize: bool | None = None


@dataclass
class AssociationCreateOrUpdateRequest(_Part):
    """A request to create or update the associations of a resource."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = _many(AssociationCreateOrUpdateInfo, default=None)


@dataclass
class AssociationResponse(_Part):
    """The associations of a resource after a request."""

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = _many(AssociationInfo, default=None)


def engine_schema(given: Any, format: str) -> model.Schema | None:  # noqa: A002 - the field's word
    """Return a schema as the engine takes it; a text has the format.

    Args:
        given: a text, a `Schema` of this module or of confluent-kafka, or None.
        format: AVRO, JSON or PROTOBUF.

    Raises:
        TypeError: If it is something else.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return model.Schema(given, format)
    if isinstance(given, model.Schema):
        return given
    if not hasattr(given, "schema_str") or not hasattr(given, "to_dict"):
        raise wrong_schema(given, "schema_str")
    return model.Schema.from_answer(given.to_dict())
