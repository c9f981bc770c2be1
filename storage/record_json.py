"""The JSON of the `_schemas` log's records, byte for byte as the reference writes it.

Rules of this file: pure functions between bytes and values. Compaction compares keys as bytes, so the order of the
properties in a key is part of the format. A decoder ignores unknown properties of a value and refuses unknown key
types. Every refusal is a `RecordError`, and `State` sets the record aside. Decoders also accept older forms (magic 0,
values without `schemaType`, `subject` or `deleted`); encoders write only the current form.
"""

import json
from collections.abc import Mapping
from operator import itemgetter
from sys import intern
from types import EllipsisType
from typing import Any, TypeVar

import orjson

from strata.storage import records
from strata.storage.log import Record
from strata.storage.record_tables import ASSOCIATION_ORDER, HEADS, PROPERTIES, SINGLE, TENANT, VALUES
from strata.storage.records import CONFIG_FIELDS, MAX_VERSION, Reference, SchemaValue, fingerprint

__all__ = [
    "RecordError",
    "decode_key",
    "decode_value",
    "encode",
    "from_properties",
    "is_tombstone",
    "plain_schema",
    "properties_of",
]

# Besides null: Karapace deletes with an empty value, and restores one from its backups as JSON.
_NO_VALUE = frozenset({b"", b"null", b'""'})
_SCHEMA_KEY = b'{"keytype":"SCHEMA",'
_PLAIN_FIELDS = itemgetter("subject", "version", "id", "schema")
_NOT_PLAIN = frozenset({"references", "metadata", "ruleSet"})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_T = TypeVar("_T")
_new = tuple.__new__  # see storage/fold.py


class RecordError(ValueError):
    """A record that cannot be read; the message says why."""


def properties_of(item: records.Key | records.Value | Reference) -> dict[str, object]:
    """Return the properties of a key, value or reference by their names on the wire, without absent and empty ones."""
    properties: dict[str, object] = {}
    for attribute, name, value_type, _ in PROPERTIES[type(item)]:
        value = getattr(item, attribute)
        if value_type is dict:
            value = dict(sorted(value.items()))
        elif value_type is tuple:
            value = list(value)
        elif value_type is list:
            value = [{"name": r.name, "subject": r.subject, "version": r.version} for r in value]
        if value or isinstance(value, str | int):
            properties[name] = value
    return properties


def from_properties(record_type: type[_T], content: Mapping[str, object]) -> _T:
    """Return a key, value or reference from its properties by their names on the wire.

    Raises:
        RecordError: A property is missing or of the wrong type.
    """
    attributes: dict[str, Any] = {}
    for attribute, name, type_, default in PROPERTIES[record_type]:
        value = content.get(name)
        if type_ is tuple:
            attributes[attribute] = _texts(content, name, default)
        else:
            attributes[attribute] = value if type(value) is type_ else _typed(content, name, type_, default)
    if "references" in attributes:
        attributes["references"] = tuple(map(_reference, attributes["references"]))
    return record_type(**attributes)


# --- to bytes


def encode(key: records.Key, value: records.Value = None) -> Record:
    """Encode a record.

    Args:
        key: The key.
        value: The value; None makes a tombstone, or is the only value of a key type without values.
    """
    properties = properties_of(key)
    head = {**HEADS[type(key)], **properties, "magic": 1 if isinstance(key, records.SchemaKey) else 0}
    content = _value_json(key, properties, value)
    return Record(_dump(head), None if content is None else _dump(content))


def _dump(content: Mapping[str, object]) -> bytes:
    # Not orjson: an integer beyond 64 bits in metadata must keep its digits.
    return _ENCODER.encode(content).encode()


def _value_json(
    key: records.Key, properties: Mapping[str, object], value: records.Value
) -> Mapping[str, object] | None:
    match key, value:
        case records.ClearSubjectKey(), _:
            return properties
        case records.NoopKey(), _:
            return None
        case _, None:
            return None
        case _, SchemaValue():
            return properties_of(value)
        case _, records.ConfigValue():
            fields = {name: value.fields[name] for name in CONFIG_FIELDS if value.fields.get(name) is not None}
            return {**properties, **fields}
        case _, records.AssociationValue():
            content = {"tenant": TENANT, **properties, **properties_of(value)}
            return {name: content[name] for name in ASSOCIATION_ORDER}
        case _ if type(key) in VALUES:
            return {**properties, **properties_of(value)}
        case records.ContextKey(), _:
            return {"tenant": TENANT, "context": value}
        case _:
            return {**properties, SINGLE[type(key)][0]: value}


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


def decode_key(data: bytes | None) -> records.Key:
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
    record_type = _noop(content) if name == "NOOP" else _KEYS[name]
    key = from_properties(record_type, content)
    if isinstance(key, records.DekKey):
        _check_version(key.version)
    return key


def is_tombstone(data: bytes | None) -> bool:
    """Return whether a record with this value deletes its key."""
    return data is None or data in _NO_VALUE


def decode_value(key: records.Key, data: bytes | None) -> records.Value:
    """Decode the value under a key; return None for a tombstone.

    Raises:
        RecordError: The value is not a JSON object, or a property is missing or of the wrong type.
    """
    if data is None or is_tombstone(data) or isinstance(key, records.NoopKey | records.ClearSubjectKey):
        return None
    content = _load(data, "value")
    match key:
        case records.SchemaKey():
            return _schema_value(key, content)
        case records.ConfigKey():
            return _config_value(content)
        case records.ContextKey(context):
            return context
        case _ if (record_type := VALUES.get(type(key))) is not None:
            whole: records.Value = from_properties(record_type, content)
            _check_texts(whole)
            if isinstance(whole, records.LoweredValue):
                _check_id(whole.highest)
            return whole
        case _:
            value: str | int = _typed(content, *SINGLE[type(key)])
            if isinstance(value, int) and isinstance(key, records.HighWaterKey):
                _check_id(value)
            return value


def _load(data: bytes, what: str) -> dict[str, object]:
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


def _typed(content: Mapping[str, object], name: str, type_: type[_T], default: _T | EllipsisType = ...) -> _T:
    value = content.get(name)
    if value is None and not isinstance(default, EllipsisType):
        return default
    if not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
        raise RecordError(f"expected {type_.__name__} as {name!r}, got {value!r}")
    return value


def _texts(content: Mapping[str, object], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    texts = tuple(_typed(content, name, list, default))
    if not all(isinstance(item, str) for item in texts):
        raise RecordError(f"expected only texts in {name!r}")
    return texts


def _check_texts(value: object) -> None:
    """Reject a value with a map of other things than texts."""
    for attribute, name, value_type, _ in PROPERTIES[type(value)]:
        if value_type is dict and not all(isinstance(item, str) for item in getattr(value, attribute).values()):
            raise RecordError(f"expected only texts in {name!r}")


def _check_id(schema_id: int) -> None:
    if not 0 <= schema_id <= MAX_VERSION:
        raise RecordError(f"the schema id {schema_id} is out of range")


def _check_version(version: int) -> None:
    if not 0 < version <= MAX_VERSION:
        raise RecordError(f"the version {version} is out of range")


def _noop(content: Mapping[str, object]) -> type[records.Key]:
    """Return the type of a NOOP's key, which other registries read as a NOOP even if it is a Strata record."""
    kind = content.get("kind")
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    return records.NoopKey if content.get("context") is None else records.HighWaterKey


_KINDS: Mapping[str, type[records.Key]] = {head["kind"]: kind for kind, head in HEADS.items() if "kind" in head}
_KEYS: Mapping[str, type[records.Key]] = {head["keytype"]: kind for kind, head in HEADS.items()}


def _schema_value(key: records.SchemaKey, content: Mapping[str, object]) -> SchemaValue:
    # The key decides: some old values lack the subject and version, or have other ones.
    value = from_properties(SchemaValue, {**content, "subject": key.subject, "version": key.version})
    _check_id(value.schema_id)
    _check_version(key.version)
    return value


def _config_value(content: Mapping[str, object]) -> records.ConfigValue:
    fields: dict[str, Any] = {
        name: _typed(content, name, value_type)
        for name, value_type in CONFIG_FIELDS.items()
        if content.get(name) is not None
    }
    for layer in ("default", "override"):
        try:
            # Metadata or rules without a fingerprint could not become part of a schema.
            fingerprint("", (), fields.get(f"{layer}Metadata"), fields.get(f"{layer}RuleSet"))
        except (AttributeError, TypeError, ValueError) as error:
            raise RecordError(f"invalid {layer} metadata or rule set: {error}") from None
    return records.ConfigValue(fields)


def _reference(item: object) -> Reference:
    if not isinstance(item, dict):
        raise RecordError("a reference is not a JSON object")
    return from_properties(Reference, item)
