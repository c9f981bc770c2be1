"""The records of the `_schemas` log as typed keys and values; `record_json.py` turns them into bytes and back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, NewType

__all__ = [
    "CONFIG_FIELDS",
    "DEFAULT_CONTEXT",
    "MAX_VERSION",
    "AssociationKey",
    "AssociationValue",
    "ClearSubjectKey",
    "ConfigKey",
    "ConfigValue",
    "ContextKey",
    "DekKey",
    "DekValue",
    "DeleteSubjectKey",
    "HighWaterKey",
    "KekKey",
    "KekValue",
    "Key",
    "KeyType",
    "ModeKey",
    "NoopKey",
    "Reference",
    "SchemaId",
    "SchemaKey",
    "SchemaValue",
    "Subject",
    "Value",
    "Version",
    "context_of",
    "qualified",
]

SchemaId = NewType("SchemaId", int)
Version = NewType("Version", int)
Subject = NewType("Subject", str)

DEFAULT_CONTEXT = "."
MAX_VERSION = 2**31 - 1


class KeyType(StrEnum):
    """The kinds of key that the log knows."""

    SCHEMA = "SCHEMA"
    CONFIG = "CONFIG"
    MODE = "MODE"
    NOOP = "NOOP"
    DELETE_SUBJECT = "DELETE_SUBJECT"
    CLEAR_SUBJECT = "CLEAR_SUBJECT"
    CONTEXT = "CONTEXT"
    ASSOC = "ASSOC"


@dataclass(frozen=True, slots=True)
class SchemaKey:
    """One version of a subject."""

    subject: Subject
    version: Version


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """The configuration of a subject, or of the registry when None."""

    subject: Subject | None


@dataclass(frozen=True, slots=True)
class ModeKey:
    """The mode of a subject, or of the registry when None."""

    subject: Subject | None


@dataclass(frozen=True, slots=True)
class NoopKey:
    """A record that changes nothing."""


@dataclass(frozen=True, slots=True)
class HighWaterKey:
    """The highest schema id ever given in a context.

    Ids must never be reused, not even after a hard delete whose tombstones compaction has dropped, so a hard delete
    of the highest id leaves this mark. On the wire it is a NOOP with a context, which other registries pass over.
    """

    context: str


@dataclass(frozen=True, slots=True)
class DeleteSubjectKey:
    """The soft delete of every version of a subject up to the one in the value."""

    subject: Subject


@dataclass(frozen=True, slots=True)
class ClearSubjectKey:
    """The removal of what a soft-deleted subject (or context, or everything: None) still holds."""

    subject: Subject | None


@dataclass(frozen=True, slots=True)
class ContextKey:
    """The existence of a context; its value is its name again."""

    context: str


@dataclass(frozen=True, slots=True, order=True)
class AssociationKey:
    """That a resource (a topic) keeps its keys' or its values' schemas under a subject."""

    resource_namespace: str
    resource_name: str
    resource_type: str
    association_type: str
    subject: Subject


@dataclass(frozen=True, slots=True)
class KekKey:
    """A key encryption key (KEK), by its name: what a key management service (KMS) keeps, and only it can use.

    On the wire it is a NOOP of the kind KEK, which other registries pass over (docs/decisions/0010).
    """

    name: str


@dataclass(frozen=True, slots=True, order=True)
class DekKey:
    """A version of a data encryption key (DEK): what the fields of a subject's records are encrypted with.

    On the wire it is a NOOP of the kind DEK, which other registries pass over (docs/decisions/0010).
    """

    kek: str
    subject: Subject
    algorithm: str
    version: int


Key = (
    SchemaKey
    | ConfigKey
    | ModeKey
    | NoopKey
    | HighWaterKey
    | DeleteSubjectKey
    | ClearSubjectKey
    | ContextKey
    | AssociationKey
    | KekKey
    | DekKey
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A name inside a schema, and the subject and version it stands for."""

    name: str
    subject: str
    version: int


class SchemaValue(NamedTuple):
    """A version as stored: `text` is the schema text, `metadata` and `rule_set` are JSON objects kept as they came."""

    subject: Subject
    version: Version
    schema_id: SchemaId
    text: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    deleted: bool = False


# Every field of a configuration in the order in which it is written, and its type; values are kept as they came.
CONFIG_FIELDS: Mapping[str, type] = MappingProxyType(
    {
        "alias": str,
        "aliasForDeks": str,
        "normalize": bool,
        "validateFields": bool,
        "validateNewSchemas": bool,
        "validateRules": bool,
        "compatibilityLevel": str,
        "compatibilityPolicy": str,
        "compatibilityGroup": str,
        "defaultMetadata": dict,
        "overrideMetadata": dict,
        "defaultRuleSet": dict,
        "overrideRuleSet": dict,
    }
)


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A configuration: only fields that are set, by their names on the wire."""

    fields: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def get(self, name: str) -> Any:
        """Return a field's value, None when it is not set."""
        return self.fields.get(name)


@dataclass(frozen=True, slots=True)
class AssociationValue:
    """An association as stored: `lifecycle` is STRONG or WEAK, `created` in milliseconds since the epoch."""

    guid: str
    resource_id: str
    lifecycle: str
    frozen: bool
    created: int


@dataclass(frozen=True, slots=True)
class KekValue:
    """A KEK as stored: where its KMS has it, nothing of the key itself; `created` in milliseconds since the epoch.

    `shared`: the reference's way of letting the registry use the KMS, which this one has no access to.
    """

    kms_type: str
    kms_key_id: str
    kms_props: Mapping[str, str]
    doc: str | None
    shared: bool
    deleted: bool
    created: int


@dataclass(frozen=True, slots=True)
class DekValue:
    """A version of a DEK as stored: `material` is the key encrypted by its KEK, in base64, as a client gave it.

    `created` in milliseconds since the epoch: clients count the age of a key from it.
    """

    material: str | None
    deleted: bool
    created: int


# A SCHEMA, CONFIG, MODE, CONTEXT (its name), DELETE_SUBJECT (its version), high-water (its id), ASSOC, KEK or DEK
# value; None for a tombstone.
Value = SchemaValue | ConfigValue | AssociationValue | KekValue | DekValue | str | int | None


def context_of(subject: str) -> str:
    """Return the context of a qualified subject, the default context of a plain one."""
    if subject.startswith(":.") and (end := subject.find(":", 2)) > 0:
        return subject[1:end]
    return DEFAULT_CONTEXT


def qualified(subject: str, context: str) -> str:
    """Return a subject as seen from a context: a plain one belongs there, `:.:s` to the default one."""
    if subject.startswith(":.:"):
        return subject.removeprefix(":.:")
    plain = context == DEFAULT_CONTEXT or context_of(subject) != DEFAULT_CONTEXT
    return subject if plain else f":{context}:{subject}"
