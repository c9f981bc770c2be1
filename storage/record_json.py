"""The JSON of the `_schemas` log's records, byte for byte as the reference writes it.

Rules of this file: pure functions between bytes and values. Compaction compares keys as bytes, so the order of the
properties in a key is part of the format. A decoder ignores unknown properties of a value and refuses unknown key
types. Every refusal is a `RecordError`, and `State` sets the record aside. Decoders also accept older forms (magic 0,
values without `schemaType`, `subject` or `deleted`); encoders write only the current form.
"""

import json
from collections.abc import Mapping, Sequence
from operator import itemgetter
from sys import intern
from types import EllipsisType, MappingProxyType
from typing import Any, NamedTuple, TypeVar

import orjson

from strata.storage.fingerprint import fingerprint
from strata.storage.log import Record
from strata.storage.records import (
    CONFIG_FIELDS,
    MAX_VERSION,
    AclKey,
    AclValue,
    AssociationKey,
    AssociationValue,
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DekKey,
    DekValue,
    DeleteSubjectKey,
    HighWaterKey,
    KekKey,
    KekValue,
    Key,
    ModeKey,
    NoopKey,
    Reference,
    SchemaKey,
    SchemaValue,
    Value,
)

__all__ = [
    "RecordError",
    "decode_key",
    "decode_value",
    "encode",
    "from_properties",
    "plain_schema",
    "properties_of",
]

_TENANT = "default"
_SCHEMA_KEY = b'{"keytype":"SCHEMA",'
_PLAIN_FIELDS = itemgetter("subject", "version", "id", "schema")
_NOT_PLAIN = frozenset({"references", "metadata", "ruleSet"})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_T = TypeVar("_T")
_new = tuple.__new__  # see storage/fold.py


class RecordError(ValueError):
    """A record that cannot be read; the message says why."""


class _Property(NamedTuple):
    """A property of a key, value or reference; without `default` it is required."""

    attribute: str
    name: str
    kind: type
    default: Any = ...


def _same(name: str, kind: type = str, default: Any = ...) -> _Property:
    return _Property(name, name, kind, default)


_DELETED, _CREATED = _same("deleted", bool, default=False), _Property("created", "createTs", int, 0)
# The properties of each type in the order in which they are written; compaction compares the bytes of keys.
_PROPERTIES: Mapping[type, Sequence[_Property]] = {
    SchemaKey: (_same("subject"), _same("version", int)),
    ConfigKey: (_same("subject", default=None),),
    ModeKey: (_same("subject", default=None),),
    NoopKey: (),
    HighWaterKey: (_same("context"),),
    DeleteSubjectKey: (_same("subject"),),
    ClearSubjectKey: (_same("subject", default=None),),
    ContextKey: (_same("context"),),
    AssociationKey: (
        _Property("resource_name", "resourceName", str),
        _Property("resource_namespace", "resourceNamespace", str),
        _Property("resource_type", "resourceType", str),
        _Property("association_type", "associationType", str),
        _same("subject"),
    ),
    AssociationValue: (
        _same("guid", default=""),
        _Property("resource_id", "resourceId", str),
        _same("lifecycle", default="WEAK"),
        _same("frozen", bool, default=False),
        _CREATED,
    ),
    KekKey: (_same("name"),),
    KekValue: (
        _Property("kms_type", "kmsType", str),
        _Property("kms_key_id", "kmsKeyId", str),
        _Property("kms_props", "kmsProps", dict, MappingProxyType({})),
        _same("doc", default=None),
        _same("shared", bool, default=False),
        _DELETED,
        _CREATED,
    ),
    DekKey: (_Property("kek", "kekName", str), _same("subject"), _same("algorithm"), _same("version", int)),
    DekValue: (_Property("material", "encryptedKeyMaterial", str, None), _DELETED, _CREATED),
    SchemaValue: (
        _same("subject"),
        _same("version", int),
        _Property("schema_id", "id", int),
        _Property("schema_type", "schemaType", str, "AVRO"),
        _same("references", list, ()),
        _same("metadata", object, None),
        _Property("rule_set", "ruleSet", object, None),
        _Property("text", "schema", str),
        _DELETED,
    ),
    AclKey: (
        _same("principal"),
        _same("host"),
        _Property("resource_type", "resourceType", str),
        _same("resource"),
        _Property("pattern_type", "patternType", str),
        _same("operation"),
        _same("permission"),
    ),
    AclValue: (_CREATED,),
    Reference: (_same("name"), _same("subject"), _same("version", int)),
}


def properties_of(item: Key | Value | Reference) -> dict[str, Any]:
    """Return the properties of a key, value or reference by their names on the wire, without absent and empty ones."""
    found: dict[str, Any] = {}
    for attribute, name, kind, _ in _PROPERTIES[type(item)]:
        value = getattr(item, attribute)
        if kind is dict:
            value = dict(sorted(value.items()))
        elif kind is list:
            value = [{"name": r.name, "subject": r.subject, "version": r.version} for r in value]
        if value or isinstance(value, str | int):
            found[name] = value
    return found


def from_properties(kind: type[_T], content: Mapping[str, Any]) -> _T:
    """Return a key, value or reference from its properties by their names on the wire.

    Raises:
        RecordError: A property is missing or of the wrong type.
    """
    found: dict[str, Any] = {}
    for attribute, name, type_, default in _PROPERTIES[kind]:
        value = content.get(name)
        found[attribute] = value if type(value) is type_ else _typed(content, name, type_, default)
    if "references" in found:
        found["references"] = tuple(map(_reference, found["references"]))
    return kind(**found)


# --- to bytes

# What begins the key of a type; its properties and `magic` follow.
_HEADS: Mapping[type, Mapping[str, Any]] = {
    SchemaKey: {"keytype": "SCHEMA"},
    ConfigKey: {"keytype": "CONFIG"},
    ModeKey: {"keytype": "MODE"},
    NoopKey: {"keytype": "NOOP"},
    HighWaterKey: {"keytype": "NOOP"},
    DeleteSubjectKey: {"keytype": "DELETE_SUBJECT"},
    ClearSubjectKey: {"keytype": "CLEAR_SUBJECT"},
    ContextKey: {"keytype": "CONTEXT", "tenant": _TENANT},
    AssociationKey: {"keytype": "ASSOC", "tenant": _TENANT},
    KekKey: {"keytype": "NOOP", "kind": "KEK"},
    DekKey: {"keytype": "NOOP", "kind": "DEK"},
    AclKey: {"keytype": "NOOP", "kind": "ACL"},
}


def encode(key: Key, value: Value = None) -> Record:
    """Encode a record.

    Args:
        key: The key.
        value: The value; None makes a tombstone, or is the only value of a key type without values.
    """
    properties = properties_of(key)
    head = {**_HEADS[type(key)], **properties, "magic": 1 if isinstance(key, SchemaKey) else 0}
    content = _value_json(key, properties, value)
    return Record(_dump(head), None if content is None else _dump(content))


def _dump(content: Mapping[str, Any]) -> bytes:
    # Not orjson: an integer beyond 64 bits in metadata must keep its digits.
    return _ENCODER.encode(content).encode()


def _value_json(key: Key, properties: Mapping[str, Any], value: Value) -> Mapping[str, Any] | None:
    match key, value:
        case ClearSubjectKey(), _:
            return properties
        case NoopKey(), _:
            return None
        case _, None:
            return None
        case _, SchemaValue():
            return properties_of(value)
        case _, ConfigValue():
            fields = {name: value.fields[name] for name in CONFIG_FIELDS if value.fields.get(name) is not None}
            return {**properties, **fields}
        case _, AssociationValue():
            content = {"tenant": _TENANT, **properties, **properties_of(value)}
            return {name: content[name] for name in _ASSOCIATION_ORDER}
        case _, KekValue() | DekValue() | AclValue():
            return {**properties, **properties_of(value)}
        case ContextKey(), _:
            return {"tenant": _TENANT, "context": value}
        case _:
            return {**properties, _SINGLE[type(key)][0]: value}


# The only property of a value that is not a class of its own.
_SINGLE: Mapping[type, tuple[str, type]] = {
    ModeKey: ("mode", str),
    DeleteSubjectKey: ("version", int),
    HighWaterKey: ("maxId", int),
}
_ASSOCIATION_ORDER = (
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


# --- from bytes


def plain_schema(key: bytes | None, value: bytes | None) -> SchemaValue | None:
    """Decode a SCHEMA record of the usual form, or return None for any other record.

    A fast path past `decode_key` and `decode_value` for most records of a replay: a schema without references, metadata
    or rules, whose key and value agree.
    """
    if key is None or value is None or not key.startswith(_SCHEMA_KEY):
        return None
    try:
        content = orjson.loads(value)
        subject, version, schema_id, text = _PLAIN_FIELDS(content)
    except (ValueError, KeyError, TypeError):
        return None
    schema_type, deleted = content.get("schemaType", "AVRO"), content.get("deleted", False)
    if (
        not (type(subject) is type(text) is type(schema_type) is str)
        or not (type(version) is type(schema_id) is int and type(deleted) is bool)
        or not 0 <= schema_id <= MAX_VERSION
        or not 0 < version <= MAX_VERSION
        or not _NOT_PLAIN.isdisjoint(content)
        # Only names that JSON does not escape, so that comparing the key's bytes replaces decoding it.
        or not subject.isprintable()
        or '"' in subject
        or "\\" in subject
        or key != f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'.encode()
    ):
        return None
    # Few names occur many times; keep one copy of each.
    return _new(SchemaValue, (intern(subject), version, schema_id, text, intern(schema_type), (), None, None, deleted))


def decode_key(data: bytes | None) -> Key:
    """Decode a key.

    Raises:
        RecordError: The key is missing, not a JSON object, of an unknown type, or has a property of the wrong type.
    """
    if data is None:
        raise RecordError("the record has no key")
    content = _load(data, "key")
    name = content.get("keytype")
    if not isinstance(name, str) or name not in _KEYS:
        raise RecordError(f"unknown key type {name!r}")
    kind = _noop(content) if name == "NOOP" else _KEYS[name]
    key = from_properties(kind, content)
    if isinstance(key, DekKey):
        _check_version(key.version)
    return key


def decode_value(key: Key, data: bytes | None) -> Value:
    """Decode the value under a key; return None for a tombstone.

    Raises:
        RecordError: The value is not a JSON object, or a property is missing or of the wrong type.
    """
    if data is None or isinstance(key, NoopKey | ClearSubjectKey):
        return None
    content = _load(data, "value")
    match key:
        case SchemaKey():
            return _schema_value(key, content)
        case ConfigKey():
            return _config_value(content)
        case ContextKey(context):
            return context
        case AssociationKey():
            return from_properties(AssociationValue, content)
        case KekKey():
            kek = from_properties(KekValue, content)
            if not all(isinstance(value, str) for value in kek.kms_props.values()):
                raise RecordError("expected only texts in 'kmsProps'")
            return kek
        case DekKey():
            return from_properties(DekValue, content)
        case AclKey():
            return from_properties(AclValue, content)
        case _:
            value: str | int = _typed(content, *_SINGLE[type(key)])
            if isinstance(value, int) and isinstance(key, HighWaterKey):
                _check_id(value)
            return value


def _load(data: bytes, what: str) -> dict[str, Any]:
    try:
        content = orjson.loads(data)
    except ValueError:
        try:
            content = json.loads(data)  # accepts integers beyond 64 bits, which orjson refuses
            json.dumps(content, ensure_ascii=False).encode()  # refuse a lone surrogate, which no answer could hold
        except (ValueError, RecursionError) as error:
            raise RecordError(f"the {what} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise RecordError(f"the {what} is not a JSON object")
    return content


def _typed(content: Mapping[str, Any], name: str, kind: type[_T], default: _T | EllipsisType = ...) -> _T:
    value = content.get(name)
    if value is None and not isinstance(default, EllipsisType):
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RecordError(f"expected {kind.__name__} as {name!r}, got {value!r}")
    return value


def _check_id(schema_id: int) -> None:
    if not 0 <= schema_id <= MAX_VERSION:
        raise RecordError(f"the schema id {schema_id} is out of range")


def _check_version(version: int) -> None:
    if not 0 < version <= MAX_VERSION:
        raise RecordError(f"the version {version} is out of range")


def _noop(content: Mapping[str, Any]) -> type[Key]:
    """Return the type of a NOOP's key, which other registries read as a NOOP even if it is a Strata record."""
    if content.get("context") is not None:
        return HighWaterKey
    kind = content.get("kind")
    return _KINDS.get(kind, NoopKey) if isinstance(kind, str) else NoopKey


_KINDS: Mapping[str, type[Key]] = {head["kind"]: kind for kind, head in _HEADS.items() if "kind" in head}
_KEYS: Mapping[str, type[Key]] = {head["keytype"]: kind for kind, head in _HEADS.items()}


def _schema_value(key: SchemaKey, content: Mapping[str, Any]) -> SchemaValue:
    # The key decides: some old values lack the subject and version, or have other ones.
    value = from_properties(SchemaValue, {**content, "subject": key.subject, "version": key.version})
    _check_id(value.schema_id)
    _check_version(key.version)
    return value


def _config_value(content: Mapping[str, Any]) -> ConfigValue:
    fields: dict[str, Any] = {
        name: _typed(content, name, kind) for name, kind in CONFIG_FIELDS.items() if content.get(name) is not None
    }
    for layer in ("default", "override"):
        try:
            # Metadata or rules without a fingerprint could not become part of a schema.
            fingerprint("", (), fields.get(f"{layer}Metadata"), fields.get(f"{layer}RuleSet"))
        except (AttributeError, TypeError, ValueError) as error:
            raise RecordError(f"invalid {layer} metadata or rule set: {error}") from None
    return ConfigValue(fields)


def _reference(item: Any) -> Reference:
    if not isinstance(item, dict):
        raise RecordError("a reference is not a JSON object")
    return from_properties(Reference, item)
