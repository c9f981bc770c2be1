"""The JSON of the `_schemas` log's records, byte for byte as the reference writes it.

Rules of this file: pure functions between bytes and values. Compaction compares keys as bytes, so the order of the
properties in a key is part of the format. A decoder ignores unknown properties of a value and refuses unknown key
types. Every refusal is a `RecordError`, and `State` sets the record aside. Decoders also accept older forms (magic 0,
values without `schemaType`, `subject` or `deleted`); encoders write only the current form.
"""

import json
from collections.abc import Callable, Mapping
from operator import itemgetter
from sys import intern
from typing import Any, TypeVar

import orjson

from strata.storage.fingerprint import fingerprint
from strata.storage.log import Record
from strata.storage.records import (
    CONFIG_FIELDS,
    MAX_VERSION,
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
    KeyType,
    ModeKey,
    NoopKey,
    Reference,
    SchemaId,
    SchemaKey,
    SchemaValue,
    Subject,
    Value,
    Version,
)

__all__ = ["RecordError", "decode_key", "decode_value", "encode", "plain_schema"]

_TENANT = "default"
_SCHEMA_KEY = b'{"keytype":"SCHEMA",'
_PLAIN_FIELDS = itemgetter("subject", "version", "id", "schema")
_NOT_PLAIN = frozenset({"references", "metadata", "ruleSet"})
_T = TypeVar("_T")
_new = tuple.__new__  # see storage/fold.py


class RecordError(ValueError):
    """A record that cannot be read; the message says why."""


# --- to bytes


def encode(key: Key, value: Value = None) -> Record:
    """Encode a record.

    Args:
        key: The key.
        value: The value; None makes a tombstone, or is the only value of a key type without values.
    """
    return Record(_dump(_key_json(key)), _ENCODE_VALUE[type(key)](key, value))


def _dump(content: Mapping[str, Any]) -> bytes:
    # Not orjson: an integer beyond 64 bits in metadata must keep its digits.
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _key_json(key: Key) -> dict[str, Any]:
    match key:
        case SchemaKey(subject, version):
            return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        case ConfigKey(subject):
            return _scoped(KeyType.CONFIG, subject)
        case ModeKey(subject):
            return _scoped(KeyType.MODE, subject)
        case NoopKey():
            return {"keytype": "NOOP", "magic": 0}
        case HighWaterKey(context):
            return {"keytype": "NOOP", "context": context, "magic": 0}
        case DeleteSubjectKey(subject):
            return _scoped(KeyType.DELETE_SUBJECT, subject)
        case ClearSubjectKey(subject):
            return _scoped(KeyType.CLEAR_SUBJECT, subject)
        case ContextKey(context):
            return {"keytype": "CONTEXT", "tenant": _TENANT, "context": context, "magic": 0}
        case AssociationKey():
            return {"keytype": "ASSOC", "tenant": _TENANT, **_association_json(key), "magic": 0}
        case KekKey(name):
            return {"keytype": "NOOP", "kind": "KEK", "name": name, "magic": 0}
        case DekKey():
            return {"keytype": "NOOP", "kind": "DEK", **_dek_json(key), "magic": 0}


def _scoped(kind: KeyType, subject: str | None) -> dict[str, Any]:
    return {"keytype": kind.value, **({} if subject is None else {"subject": subject}), "magic": 0}


def _schema_bytes(_key: Key, value: Value) -> bytes | None:
    if not isinstance(value, SchemaValue):
        return None
    content: dict[str, Any] = {"subject": value.subject, "version": value.version, "id": value.schema_id}
    content["schemaType"] = value.schema_type
    if value.references:
        content["references"] = [{"name": r.name, "subject": r.subject, "version": r.version} for r in value.references]
    if value.metadata:
        content["metadata"] = value.metadata
    if value.rule_set:
        content["ruleSet"] = value.rule_set
    return _dump(content | {"schema": value.text, "deleted": value.deleted})


def _config_bytes(key: Key, value: Value) -> bytes | None:
    if not isinstance(value, ConfigValue):
        return None
    fields = {name: value.fields[name] for name in CONFIG_FIELDS if value.fields.get(name) is not None}
    return _dump(_subject_of(key) | fields)


def _mode_bytes(key: Key, value: Value) -> bytes | None:
    return None if value is None else _dump(_subject_of(key) | {"mode": value})


def _subject_of(key: Key) -> dict[str, Any]:
    subject = getattr(key, "subject", None)
    return {} if subject is None else {"subject": subject}


def _context_bytes(_key: Key, value: Value) -> bytes | None:
    return None if value is None else _dump({"tenant": _TENANT, "context": value})


def _association_json(key: AssociationKey) -> dict[str, Any]:
    return {
        "resourceName": key.resource_name,
        "resourceNamespace": key.resource_namespace,
        "resourceType": key.resource_type,
        "associationType": key.association_type,
        "subject": key.subject,
    }


def _association_bytes(key: Key, value: Value) -> bytes | None:
    if not isinstance(value, AssociationValue) or not isinstance(key, AssociationKey):
        return None
    return _dump(
        {
            "guid": value.guid,
            "tenant": _TENANT,
            "resourceName": key.resource_name,
            "resourceNamespace": key.resource_namespace,
            "resourceId": value.resource_id,
            "resourceType": key.resource_type,
            "associationType": key.association_type,
            "subject": key.subject,
            "lifecycle": value.lifecycle,
            "frozen": value.frozen,
            "createTs": value.created,
        }
    )


def _kek_bytes(key: Key, value: Value) -> bytes | None:
    if not isinstance(value, KekValue) or not isinstance(key, KekKey):
        return None
    content: dict[str, Any] = {"name": key.name, "kmsType": value.kms_type, "kmsKeyId": value.kms_key_id}
    if value.kms_props:
        content["kmsProps"] = dict(sorted(value.kms_props.items()))
    if value.doc is not None:
        content["doc"] = value.doc
    return _dump(content | {"shared": value.shared, "deleted": value.deleted, "createTs": value.created})


def _dek_json(key: DekKey) -> dict[str, Any]:
    return {"kekName": key.kek, "subject": key.subject, "algorithm": key.algorithm, "version": key.version}


def _dek_bytes(key: Key, value: Value) -> bytes | None:
    if not isinstance(value, DekValue) or not isinstance(key, DekKey):
        return None
    material = {} if value.material is None else {"encryptedKeyMaterial": value.material}
    return _dump(_dek_json(key) | material | {"deleted": value.deleted, "createTs": value.created})


_ENCODE_VALUE: Mapping[type, Callable[[Key, Value], bytes | None]] = {
    SchemaKey: _schema_bytes,
    ConfigKey: _config_bytes,
    ModeKey: _mode_bytes,
    NoopKey: lambda _key, _value: None,
    HighWaterKey: lambda key, value: _dump({"context": getattr(key, "context", None), "maxId": value}),
    DeleteSubjectKey: lambda key, value: _dump(_subject_of(key) | {"version": value}),
    ClearSubjectKey: lambda key, _value: _dump(_subject_of(key)),
    ContextKey: _context_bytes,
    AssociationKey: _association_bytes,
    KekKey: _kek_bytes,
    DekKey: _dek_bytes,
}


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
    kind = content.get("keytype")
    if not isinstance(kind, str) or kind not in _DECODE_KEY:
        raise RecordError(f"unknown key type {kind!r}")
    return _DECODE_KEY[kind](content)


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
        case ModeKey():
            return _typed(content, "mode", str)
        case DeleteSubjectKey():
            return _typed(content, "version", int)
        case HighWaterKey():
            high_water = _typed(content, "maxId", int)
            if not 0 <= high_water <= MAX_VERSION:
                raise RecordError(f"the schema id {high_water} is out of range")
            return high_water
        case ContextKey(context):
            return context
        case AssociationKey():
            return _association_value(content)
        case KekKey():
            return _kek_value(content)
        case DekKey():
            return _dek_value(content)


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


def _typed(content: Mapping[str, Any], name: str, kind: type[_T], default: _T | None = None) -> _T:
    value = content.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RecordError(f"expected {kind.__name__} as {name!r}, got {value!r}")
    return value


def _optional_subject(content: Mapping[str, Any]) -> Subject | None:
    return None if content.get("subject") is None else Subject(_typed(content, "subject", str))


def _noop(content: Mapping[str, Any]) -> Key:
    """Return the key of a NOOP, or of a Strata record that other registries read as a NOOP."""
    if content.get("context") is not None:
        return HighWaterKey(_typed(content, "context", str))
    kind = content.get("kind")
    if kind == "KEK":
        return KekKey(_typed(content, "name", str))
    if kind == "DEK":
        version = _typed(content, "version", int)
        if not 0 < version <= MAX_VERSION:
            raise RecordError(f"the version {version} is out of range")
        subject, algorithm = _typed(content, "subject", str), _typed(content, "algorithm", str)
        return DekKey(_typed(content, "kekName", str), Subject(subject), algorithm, version)
    return NoopKey()


_DECODE_KEY: Mapping[str, Callable[[Mapping[str, Any]], Key]] = {
    "SCHEMA": lambda c: SchemaKey(Subject(_typed(c, "subject", str)), Version(_typed(c, "version", int))),
    "CONFIG": lambda c: ConfigKey(_optional_subject(c)),
    "MODE": lambda c: ModeKey(_optional_subject(c)),
    "NOOP": _noop,
    "DELETE_SUBJECT": lambda c: DeleteSubjectKey(Subject(_typed(c, "subject", str))),
    "CLEAR_SUBJECT": lambda c: ClearSubjectKey(_optional_subject(c)),
    "CONTEXT": lambda c: ContextKey(_typed(c, "context", str)),
    "ASSOC": lambda c: AssociationKey(
        _typed(c, "resourceNamespace", str),
        _typed(c, "resourceName", str),
        _typed(c, "resourceType", str),
        _typed(c, "associationType", str),
        Subject(_typed(c, "subject", str)),
    ),
}


def _schema_value(key: SchemaKey, content: Mapping[str, Any]) -> SchemaValue:
    schema_id = _typed(content, "id", int)
    if not 0 <= schema_id <= MAX_VERSION:
        raise RecordError(f"the schema id {schema_id} is out of range")
    if not 0 < key.version <= MAX_VERSION:
        raise RecordError(f"the version {key.version} is out of range")
    return SchemaValue(
        key.subject,
        key.version,
        SchemaId(schema_id),
        _typed(content, "schema", str),
        _typed(content, "schemaType", str, "AVRO"),
        tuple(_reference(item) for item in _typed(content, "references", list, [])),
        content.get("metadata"),
        content.get("ruleSet"),
        deleted=_typed(content, "deleted", bool, default=False),
    )


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


def _association_value(content: Mapping[str, Any]) -> AssociationValue:
    return AssociationValue(
        _typed(content, "guid", str, ""),
        _typed(content, "resourceId", str),
        _typed(content, "lifecycle", str, "WEAK"),
        _typed(content, "frozen", bool, default=False),
        _typed(content, "createTs", int, 0),
    )


def _kek_value(content: Mapping[str, Any]) -> KekValue:
    props = _typed(content, "kmsProps", dict, {})
    if not all(isinstance(value, str) for value in props.values()):
        raise RecordError("expected only texts in 'kmsProps'")
    return KekValue(
        _typed(content, "kmsType", str),
        _typed(content, "kmsKeyId", str),
        props,
        None if content.get("doc") is None else _typed(content, "doc", str),
        _typed(content, "shared", bool, default=False),
        _typed(content, "deleted", bool, default=False),
        _typed(content, "createTs", int, 0),
    )


def _dek_value(content: Mapping[str, Any]) -> DekValue:
    material = content.get("encryptedKeyMaterial")
    return DekValue(
        None if material is None else _typed(content, "encryptedKeyMaterial", str),
        _typed(content, "deleted", bool, default=False),
        _typed(content, "createTs", int, 0),
    )


def _reference(item: Any) -> Reference:
    if not isinstance(item, dict):
        raise RecordError("a reference is not a JSON object")
    return Reference(_typed(item, "name", str), _typed(item, "subject", str), _typed(item, "version", int))
