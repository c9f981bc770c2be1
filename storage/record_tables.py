"""The tables of the `_schemas` log's records: how each key begins, and the properties of each type in their order.

Rules of this file: data only; `record_json.py` reads and writes by it. Compaction compares keys as bytes, so the order
of the properties in a key is part of the format.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from strata.storage import records
from strata.storage.records import Reference, SchemaValue

__all__ = ["ASSOCIATION_ORDER", "HEADS", "PROPERTIES", "SINGLE", "TENANT", "VALUES", "Property"]

TENANT = "default"


class Property(NamedTuple):
    """A property of a key, value or reference; without `default` it is required."""

    attribute: str
    name: str
    kind: type
    default: Any = ...


def _same(name: str, kind: type = str, default: object = ...) -> Property:
    return Property(name, name, kind, default)


_DELETED, _CREATED = _same("deleted", bool, default=False), Property("created", "createTs", int, 0)
# The properties of each type in the order in which they are written; compaction compares the bytes of keys.
PROPERTIES: Mapping[type, Sequence[Property]] = {
    records.SchemaKey: (_same("subject"), _same("version", int)),
    records.ConfigKey: (_same("subject", default=None),),
    records.ModeKey: (_same("subject", default=None),),
    records.NoopKey: (),
    records.HighWaterKey: (_same("context"),),
    records.DeleteSubjectKey: (_same("subject"),),
    records.ClearSubjectKey: (_same("subject", default=None),),
    records.ContextKey: (_same("context"),),
    records.AssociationKey: (
        Property("resource_name", "resourceName", str),
        Property("resource_namespace", "resourceNamespace", str),
        Property("resource_type", "resourceType", str),
        Property("association_type", "associationType", str),
        _same("subject"),
    ),
    records.AssociationValue: (
        _same("guid", default=""),
        Property("resource_id", "resourceId", str),
        _same("lifecycle", default="WEAK"),
        _same("frozen", bool, default=False),
        _CREATED,
    ),
    records.KekKey: (_same("name"),),
    records.KekValue: (
        Property("kms_type", "kmsType", str),
        Property("kms_key_id", "kmsKeyId", str),
        Property("kms_props", "kmsProps", dict, MappingProxyType({})),
        _same("doc", default=None),
        _same("shared", bool, default=False),
        _DELETED,
        _CREATED,
    ),
    records.DekKey: (Property("kek", "kekName", str), _same("subject"), _same("algorithm"), _same("version", int)),
    records.DekValue: (Property("material", "encryptedKeyMaterial", str, None), _DELETED, _CREATED),
    SchemaValue: (
        _same("subject"),
        _same("version", int),
        Property("schema_id", "id", int),
        Property("schema_type", "schemaType", str, "AVRO"),
        _same("references", list, ()),
        _same("metadata", object, None),
        Property("rule_set", "ruleSet", object, None),
        Property("text", "schema", str),
        _DELETED,
    ),
    records.AclKey: (
        _same("principal"),
        _same("host"),
        Property("resource_type", "resourceType", str),
        _same("resource"),
        Property("pattern_type", "patternType", str),
        _same("operation"),
        _same("permission"),
    ),
    records.AclValue: (_CREATED,),
    records.StandbyKey: (_same("scope"),),
    records.StandbyValue: (
        _same("source"),
        _same("position", int, -1),
        Property("copied_at", "copiedAt", int, 0),
        Property("promoted_at", "promotedAt", int, 0),
        _same("subjects", default=""),
        _same("contexts", default=""),
    ),
    records.LoweredKey: (_same("context"),),
    records.LoweredValue: (Property("highest", "maxId", int), _same("count", int)),
    records.ExporterKey: (_same("name"),),
    records.ExporterValue: (
        _same("subjects", tuple, ()),
        Property("context_type", "contextType", str),
        _same("context", default=""),
        Property("subject_format", "subjectRenameFormat", str, ""),
        Property("kek_format", "kekRenameFormat", str, ""),
        _same("config", dict, MappingProxyType({})),
        _same("paused", bool, default=False),
    ),
    records.ExportKey: (_same("name"),),
    records.ExportValue: (
        _same("state"),
        _same("offset", int, -1),
        _same("ts", int, 0),
        _same("trace", default=""),
        _same("owner", default=""),
        _same("beat", int, 0),
    ),
    Reference: (_same("name"), _same("subject"), _same("version", int)),
}

# What begins the key of a type; its properties and `magic` follow.
HEADS: Mapping[type, Mapping[str, str]] = {
    records.SchemaKey: {"keytype": "SCHEMA"},
    records.ConfigKey: {"keytype": "CONFIG"},
    records.ModeKey: {"keytype": "MODE"},
    records.NoopKey: {"keytype": "NOOP"},
    records.HighWaterKey: {"keytype": "NOOP"},
    records.DeleteSubjectKey: {"keytype": "DELETE_SUBJECT"},
    records.ClearSubjectKey: {"keytype": "CLEAR_SUBJECT"},
    records.ContextKey: {"keytype": "CONTEXT", "tenant": TENANT},
    records.AssociationKey: {"keytype": "ASSOC", "tenant": TENANT},
    records.KekKey: {"keytype": "NOOP", "kind": "KEK"},
    records.DekKey: {"keytype": "NOOP", "kind": "DEK"},
    records.AclKey: {"keytype": "NOOP", "kind": "ACL"},
    records.StandbyKey: {"keytype": "NOOP", "kind": "STANDBY"},
    records.LoweredKey: {"keytype": "NOOP", "kind": "LOWERED"},
    records.ExporterKey: {"keytype": "NOOP", "kind": "EXPORTER"},
    records.ExportKey: {"keytype": "NOOP", "kind": "EXPORT"},
}

# The only property of a value that is not a class of its own.
SINGLE: Mapping[type, tuple[str, type]] = {
    records.ModeKey: ("mode", str),
    records.DeleteSubjectKey: ("version", int),
    records.HighWaterKey: ("maxId", int),
}
ASSOCIATION_ORDER = (
    "guid",
    "tenant",
    "resourceName",
    "resourceNamespace",
    "resourceId",
    "resourceType",
    "associationType",
    "subject",
    "lifecycle",
    "frozen",
    "createTs",
)

# The values that are classes of their own, besides those of versions, configurations and contexts.
VALUES: Mapping[type, type] = {
    records.AssociationKey: records.AssociationValue,
    records.KekKey: records.KekValue,
    records.DekKey: records.DekValue,
    records.AclKey: records.AclValue,
    records.StandbyKey: records.StandbyValue,
    records.LoweredKey: records.LoweredValue,
    records.ExporterKey: records.ExporterValue,
    records.ExportKey: records.ExportValue,
}
