"""The records of the `_schemas` log as typed keys and values; `record_json.py` encodes and decodes them.

A schema is identified by its fingerprint: an MD5 digest whose 16 bytes, printed as a UUID, are its GUID. The reference
fixes which bytes enter it, and in which order (storage/README.md): the schema text, each reference, then metadata and
rule set if present. The digest does not cover the schema type. MD5 serves here as a name, not for security.
"""

import hashlib
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, NewType, TypedDict

from strata.storage.exporter_records import ExporterKey, ExporterValue, ExportKey, ExportValue

__all__ = [
    "CONFIG_FIELDS",
    "DEFAULT_CONTEXT",
    "MAX_VERSION",
    "AclKey",
    "AclValue",
    "AssociationKey",
    "AssociationValue",
    "ClearSubjectKey",
    "ConfigKey",
    "ConfigValue",
    "ContextKey",
    "DekKey",
    "DekValue",
    "DeleteSubjectKey",
    "ExportKey",
    "ExportValue",
    "ExporterKey",
    "ExporterValue",
    "HighWaterKey",
    "KekKey",
    "KekValue",
    "Key",
    "LoweredKey",
    "LoweredValue",
    "Metadata",
    "ModeKey",
    "NoopKey",
    "Phase",
    "Reference",
    "Rule",
    "RuleSet",
    "SchemaId",
    "SchemaKey",
    "SchemaValue",
    "StandbyKey",
    "StandbyValue",
    "Subject",
    "Value",
    "Version",
    "context_of",
    "fingerprint",
    "guid_of",
    "qualified",
]

SchemaId = NewType("SchemaId", int)
Version = NewType("Version", int)
Subject = NewType("Subject", str)

DEFAULT_CONTEXT = "."
MAX_VERSION = 2**31 - 1
_PRESENT = b"\x01"
_TextName = Literal["name", "doc", "kind", "mode", "type"]
_PHASES: Final[tuple["Phase", ...]] = ("migrationRules", "domainRules", "encodingRules")
_RULE_TEXTS: Final[tuple[_TextName, ...]] = ("name", "doc", "kind", "mode", "type")
_EMPTY = hashlib.md5(usedforsecurity=False)  # a copy takes half the time of a new one
_CHUNK = 2047  # bytes; hashlib releases the interpreter lock for more, and waiting to get it back takes far longer


@dataclass(frozen=True, slots=True)
class SchemaKey:
    """One version of a subject."""

    subject: Subject
    version: Version


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """The configuration of a subject, or of the registry if `subject` is None."""

    subject: Subject | None


@dataclass(frozen=True, slots=True)
class ModeKey:
    """The mode of a subject, or of the registry if `subject` is None."""

    subject: Subject | None


@dataclass(frozen=True, slots=True)
class NoopKey:
    """A record that changes nothing."""


@dataclass(frozen=True, slots=True)
class HighWaterKey:
    """The highest schema id ever assigned in a context.

    Ids are never reused, not even after a hard delete whose tombstones compaction has dropped. So a hard delete of the
    highest id leaves this record. On the wire it is a NOOP with a context, which other registries ignore.
    """

    context: str


@dataclass(frozen=True, slots=True)
class LoweredKey:
    """The last time that an administrator lowered the highest schema id of a context.

    A key of its own, so that no later `HighWaterKey` supersedes it: compaction may drop it only for a later lowering.
    On the wire it is a NOOP of the kind LOWERED, which other registries ignore (docs/decisions/0003).
    """

    context: str


@dataclass(frozen=True, slots=True)
class DeleteSubjectKey:
    """The soft delete of every version of a subject up to the one in the value."""

    subject: Subject


@dataclass(frozen=True, slots=True)
class ClearSubjectKey:
    """The removal of all soft-deleted versions of a subject or a context, or of the registry if `subject` is None."""

    subject: Subject | None


@dataclass(frozen=True, slots=True)
class ContextKey:
    """The existence of a context; the value repeats its name."""

    context: str


@dataclass(frozen=True, slots=True, order=True)
class AssociationKey:
    """An association: the subject that holds the key schemas or value schemas of a resource (a topic)."""

    resource_namespace: str
    resource_name: str
    resource_type: str
    association_type: str
    subject: Subject


@dataclass(frozen=True, slots=True)
class KekKey:
    """The name of a key encryption key (KEK), which a key management service (KMS) keeps and alone can use.

    On the wire it is a NOOP of the kind KEK, which other registries ignore (docs/decisions/0010).
    """

    name: str


@dataclass(frozen=True, slots=True, order=True)
class DekKey:
    """A version of a data encryption key (DEK), which encrypts fields of a subject's records (CSFLE).

    On the wire it is a NOOP of the kind DEK, which other registries ignore (docs/decisions/0010).
    """

    kek: str
    subject: Subject
    algorithm: str
    version: int


@dataclass(frozen=True, slots=True, order=True)
class AclKey:
    """A rule of access, whose words the registry checks and reads (registry/core/rights/rules.py).

    On the wire it is a NOOP of the kind ACL, which other registries ignore (docs/decisions/0010).
    """

    principal: str
    host: str
    resource_type: str
    resource: str
    pattern_type: str
    operation: str
    permission: str


@dataclass(frozen=True, slots=True)
class StandbyKey:
    """A part of this registry that is a copy of another one: a context with those below it; `.` means everything.

    On the wire it is a NOOP of the kind STANDBY, which other registries ignore (docs/decisions/0026).
    """

    scope: str


Key = (
    SchemaKey
    | ConfigKey
    | ModeKey
    | NoopKey
    | HighWaterKey
    | LoweredKey
    | DeleteSubjectKey
    | ClearSubjectKey
    | ContextKey
    | AssociationKey
    | KekKey
    | DekKey
    | AclKey
    | StandbyKey
    | ExporterKey
    | ExportKey
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a schema, and the subject and version that it refers to."""

    name: str
    subject: str
    version: int


class Metadata(TypedDict, total=False):
    """The metadata of a schema as received; computing a fingerprint fails for any other shape."""

    tags: Mapping[str, Sequence[str]] | None
    properties: Mapping[str, str] | None
    sensitive: Sequence[str] | None


class Rule(TypedDict, total=False):
    """A rule of a rule set as received."""

    name: str | None
    doc: str | None
    kind: str | None
    mode: str | None
    type: str | None
    tags: Sequence[str] | None
    params: Mapping[str, str] | None
    expr: str | None
    onSuccess: str | None
    onFailure: str | None
    disabled: bool | None


class RuleSet(TypedDict, total=False):
    """The rules of a schema as received, by the phase in which they run."""

    migrationRules: Sequence[Rule] | None
    domainRules: Sequence[Rule] | None
    encodingRules: Sequence[Rule] | None
    enableAt: str | None


Phase = Literal["migrationRules", "domainRules", "encodingRules"]
"""The name of a phase in a rule set."""


class SchemaValue(NamedTuple):
    """A version as stored; `text` is the schema text, `metadata` and `rule_set` are JSON objects as received."""

    subject: Subject
    version: Version
    schema_id: SchemaId
    text: str
    schema_type: str = "AVRO"
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    deleted: bool = False


# Every field of a configuration in the order in which it is written, with its type; values are kept as received.
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
    """A configuration: the fields that are set, by their names on the wire."""

    fields: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def get(self, name: str) -> object:
        """Return a field's value, or None if it is not set."""
        return self.fields.get(name)


@dataclass(frozen=True, slots=True)
class AssociationValue:
    """An association as stored; `lifecycle` is STRONG or WEAK, `created` is in milliseconds since the epoch."""

    guid: str
    resource_id: str
    lifecycle: str
    frozen: bool
    created: int


@dataclass(frozen=True, slots=True)
class KekValue:
    """A KEK as stored: its location in the KMS, without key material; `created` is in milliseconds since the epoch.

    `shared` lets the reference's registry use the KMS for this KEK; Strata only stores it, and has no access to a KMS.
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
    """A version of a DEK as stored; `material` is the key encrypted by its KEK, in base64, as the client sent it.

    `created` is in milliseconds since the epoch; clients compute the age of a key from it.
    """

    material: str | None
    deleted: bool
    created: int


@dataclass(frozen=True, slots=True)
class AclValue:
    """What is stored with a rule of access; `created` is in milliseconds since the epoch."""

    created: int


@dataclass(frozen=True, slots=True)
class LoweredValue:
    """The highest id of a context after it was lowered; `count` says how often, so no two such records are equal."""

    highest: int
    count: int


@dataclass(frozen=True, slots=True)
class StandbyValue:
    """How far a copy has come; times are in milliseconds since the epoch, 0 if it has not happened.

    Attributes:
        source: the registry that is copied, without a password.
        position: the offset in the source's log up to which the copy is complete; -1 if the source is not a log.
        copied_at: when the source was read for the last change that was copied completely.
        promoted_at: when the copy became a registry of its own.
        subjects: the subjects that were chosen, separated by commas; empty for all.
        contexts: the contexts that were chosen, likewise.
    """

    source: str
    position: int = -1
    copied_at: int = 0
    promoted_at: int = 0
    subjects: str = ""
    contexts: str = ""


# The value of a SCHEMA, CONFIG, MODE, CONTEXT (a name), DELETE_SUBJECT (a version), high-water (an id), ASSOC, KEK,
# DEK, ACL, STANDBY, LOWERED, EXPORTER or EXPORT record; None for a tombstone.
Value = (
    SchemaValue
    | ConfigValue
    | AssociationValue
    | KekValue
    | DekValue
    | AclValue
    | StandbyValue
    | LoweredValue
    | ExporterValue
    | ExportValue
    | str
    | int
    | None
)


def context_of(subject: str) -> str:
    """Return the context of a qualified subject, or the default context for an unqualified one."""
    if subject.startswith(":.") and (end := subject.find(":", 2)) > 0:
        return subject[1:end]
    return DEFAULT_CONTEXT


def qualified(subject: str, context: str) -> str:
    """Qualify a subject that is named in a context.

    An unqualified subject belongs to that context, and `:.:s` to the default context. `:.c`, a context without its
    closing colon, is `:.c:`.
    """
    if subject.startswith(":.") and ":" not in subject[2:]:
        subject += ":"
    if subject.startswith(":.:"):
        return subject.removeprefix(":.:")
    plain = context == DEFAULT_CONTEXT or context_of(subject) != DEFAULT_CONTEXT
    return subject if plain else f":{context}:{subject}"


def fingerprint(
    text: str,
    references: Sequence[tuple[str, str, int]] = (),
    metadata: Metadata | None = None,
    rule_set: RuleSet | None = None,
) -> bytes:
    """Return the 16-byte digest of a schema text with its references, metadata and rules.

    Args:
        text: The schema text as stored.
        references: (name, subject, version) triples in their stored order.
        metadata: The JSON object with `tags`, `properties`, `sensitive`.
        rule_set: The JSON object with `migrationRules`, `domainRules`, `encodingRules`, `enableAt`.

    Raises:
        AttributeError, TypeError, ValueError: The metadata or rule set has the wrong shape, or a text cannot be
            encoded.
        struct.error: A version does not fit into 32 bits.
    """
    content = text.encode()
    digest = _EMPTY.copy()
    if len(content) <= _CHUNK:
        digest.update(content)
    else:
        for start in range(0, len(content), _CHUNK):
            digest.update(content[start : start + _CHUNK])
    if not (references or metadata or rule_set):
        return digest.digest()
    for name, subject, version in references:
        digest.update(name.encode() + subject.encode() + struct.pack(">i", version))
    if metadata:
        digest.update(_PRESENT)
        for part in _metadata_parts(metadata):
            digest.update(part.encode())
    if rule_set:
        digest.update(_PRESENT)
        for rule in (rule for phase in _PHASES for rule in rule_set.get(phase) or ()):
            _update_rule(digest, rule)
        digest.update((rule_set.get("enableAt") or "").encode())
    return digest.digest()


def guid_of(digest: bytes) -> str:
    """Return the GUID of a 16-byte fingerprint, the identity of its content in every context: printed as a UUID."""
    text = digest.hex()  # a UUID object would take five times as long
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _metadata_parts(metadata: Metadata) -> Iterable[str]:
    for key, values in sorted((metadata.get("tags") or {}).items()):
        yield key
        yield from sorted(values)
    for key, value in sorted((metadata.get("properties") or {}).items()):
        yield key
        yield value
    yield from sorted(metadata.get("sensitive") or ())


def _update_rule(digest: "hashlib._Hash", rule: Rule) -> None:
    for name in _RULE_TEXTS:
        digest.update((rule.get(name) or "").encode())
    for tag in sorted(rule.get("tags") or ()):
        digest.update(tag.encode())
    for key, value in sorted((rule.get("params") or {}).items()):
        digest.update(key.encode() + value.encode())
    for text in (rule.get("expr"), rule.get("onSuccess"), rule.get("onFailure")):
        digest.update((text or "").encode())
    if rule.get("disabled"):
        digest.update(_PRESENT)
