"""Schemas, rules, configs and associations as confluent-kafka names them, and their JSON.

Names, order and defaults of the parameters are those of confluent-kafka 2.16; `tests/serdes/confluent/test_api.py`
compares them. `to_dict` and `from_dict` use the names of the REST API.

Rules of this file: values and their JSON; the rest of the package works with `strata.serdes.model`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from typing import Any, ClassVar, Self

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


class ConfigCompatibilityLevel(StrEnum):
    """The compatibility levels."""

    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


class RuleKind(StrEnum):
    """What a rule does: a condition holds or not, a transform returns a new value."""

    CONDITION = "CONDITION"
    TRANSFORM = "TRANSFORM"


class RuleMode(StrEnum):
    """When a rule runs."""

    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    READ = "READ"
    WRITE = "WRITE"
    WRITEREAD = "WRITEREAD"


class RulePhase(StrEnum):
    """The part of a rule set that a rule is in."""

    MIGRATION = "MIGRATION"
    DOMAIN = "DOMAIN"
    ENCODING = "ENCODING"


_Readers = Mapping[str, Callable[[Any], object]]
_Empty = Mapping[str, Callable[[], object]]


class _Part:
    """A value with the fields of a JSON object, in camel case; it leaves out fields without a value."""

    _readers: ClassVar[Mapping[str, Callable[[object], object]]] = {}
    """What parses the JSON of a field."""
    _empty: ClassVar[Mapping[str, Callable[[], object]]] = {}
    """The value of a field that is missing, if it is not None."""

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, object]) -> Self:
        """Parse a JSON object; other properties are ignored.

        Raises:
            ValueError: If a property has none of the values that its enum has.
        """
        values = {}
        for field_ in fields(cls):  # type: ignore[arg-type]  # each part is a dataclass
            value = src_dict.get(_wire_name(field_.name))
            if value is None:
                value = cls._empty.get(field_.name, lambda: None)()
            elif field_.name in cls._readers:
                value = cls._readers[field_.name](value)
            values[field_.name] = value
        return cls(**values)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        pairs = ((field_.name, getattr(self, field_.name)) for field_ in fields(self))  # type: ignore[arg-type]
        return {_wire_name(name): _json(value) for name, value in pairs if value is not None}

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))


def _wire_name(name: str) -> str:
    if name in _WIRE_NAMES:
        return _WIRE_NAMES[name]
    first, *rest = name.split("_")
    return first + "".join(map(str.title, rest))


_WIRE_NAMES = {"schema_str": "schema", "schema_id": "id"}


def _json(value: object) -> object:
    match value:
        case _Part():
            return value.to_dict()
        case list() | tuple() | set() | frozenset():
            return [_json(item) for item in value]
        case Enum():
            return value.value
    return value


def _many(part_type: type[_Part]) -> Callable[[Any], list[_Part]]:
    """Return the parser of a list of parts."""
    return lambda parts: [part_type.from_dict(part) for part in parts]


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

    _readers: ClassVar[_Readers] = {"tags": MetadataTags.from_dict, "properties": MetadataProperties.from_dict}
    _empty: ClassVar[_Empty] = {"sensitive": list}

    tags: MetadataTags | None
    properties: MetadataProperties | None
    sensitive: list[str] | None

    __hash__ = _Part.__hash__


@dataclass(frozen=True)
class Rule(_Part):
    """A rule of a data contract."""

    _readers: ClassVar[_Readers] = {"kind": RuleKind, "mode": RuleMode, "params": RuleParams.from_dict}

    name: str | None
    doc: str | None
    kind: RuleKind | None
    mode: RuleMode | None
    type: str | None
    tags: list[str] | None
    params: RuleParams | None
    expr: str | None
    on_success: str | None
    on_failure: str | None
    disabled: bool | None

    __hash__ = _Part.__hash__


@dataclass
class RuleSet(_Part):
    """The rules of a schema."""

    _readers: ClassVar[_Readers] = dict.fromkeys(("migration_rules", "domain_rules", "encoding_rules"), _many(Rule))
    _empty: ClassVar[_Empty] = dict.fromkeys(("migration_rules", "domain_rules", "encoding_rules"), list)

    migration_rules: list[Rule] | None
    domain_rules: list[Rule] | None
    encoding_rules: list[Rule] | None = None
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

    _readers: ClassVar[_Readers] = {
        "references": _many(SchemaReference),
        "metadata": Metadata.from_dict,
        "rule_set": RuleSet.from_dict,
    }
    _empty: ClassVar[_Empty] = {"references": list}

    schema_str: str | None
    schema_type: str | None = "AVRO"
    references: list[SchemaReference] | None = field(default_factory=list)
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, object]) -> Self:
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
        subject, version, schema_id, guid = map(src_dict.get, ("subject", "version", "id", "guid"))
        return cls(subject, version, schema_id, guid, Schema.from_dict(src_dict))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        own = {"id": self.schema_id, "guid": self.guid, "subject": self.subject, "version": self.version}
        return self.schema.to_dict() | {name: value for name, value in own.items() if value is not None}

    __hash__ = _Part.__hash__


@dataclass
class ServerConfig(_Part):
    """The config of a subject, or the global one."""

    _readers: ClassVar[_Readers] = {
        "compatibility": ConfigCompatibilityLevel,
        "compatibility_level": ConfigCompatibilityLevel,
        "default_metadata": Metadata.from_dict,
        "override_metadata": Metadata.from_dict,
        "default_rule_set": RuleSet.from_dict,
        "override_rule_set": RuleSet.from_dict,
    }

    compatibility: ConfigCompatibilityLevel | None = None
    compatibility_level: ConfigCompatibilityLevel | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


@dataclass(frozen=True)
class Association(_Part):
    """A subject that belongs to a resource, such as a topic."""

    _empty: ClassVar[_Empty] = {"frozen": bool}

    subject: str | None
    guid: str | None
    resource_name: str | None
    resource_namespace: str | None
    resource_id: str | None
    resource_type: str | None
    association_type: str | None
    frozen: bool = False

    __hash__ = _Part.__hash__


@dataclass
class AssociationInfo(_Part):
    """An association in an answer."""

    _readers: ClassVar[_Readers] = {"schema": Schema.from_dict}
    _empty: ClassVar[_Empty] = {"frozen": bool}

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool = False
    schema: Schema | None = None


@dataclass
class AssociationCreateOrUpdateInfo(_Part):
    """An association to create or update."""

    _readers: ClassVar[_Readers] = {"schema": Schema.from_dict}

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Schema | None = None
    normalize: bool | None = None


@dataclass
class AssociationCreateOrUpdateRequest(_Part):
    """A request to create or update the associations of a resource."""

    _readers: ClassVar[_Readers] = {"associations": _many(AssociationCreateOrUpdateInfo)}

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None


@dataclass
class AssociationResponse(_Part):
    """The associations of a resource after a request."""

    _readers: ClassVar[_Readers] = {"associations": _many(AssociationInfo)}

    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = None


def engine_schema(schema: object, format: str) -> model.Schema | None:  # noqa: A002 - the field's word
    """Return a schema as the engine takes it; a text has the format.

    Args:
        schema: a text, a `Schema` of this module or of confluent-kafka, or None.
        format: AVRO, JSON or PROTOBUF.

    Raises:
        TypeError: If it is something else.
    """
    if schema is None:
        return None
    if isinstance(schema, str):
        return model.Schema(schema, format)
    if isinstance(schema, model.Schema):
        return schema
    if not hasattr(schema, "schema_str") or not hasattr(schema, "to_dict"):
        raise wrong_schema(schema, "schema_str")
    return model.Schema.from_answer(schema.to_dict())
