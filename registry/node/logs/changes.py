"""The log line of a change: who changed what, as the records in the log show it, without schema texts and keys."""

import logging
from collections.abc import Iterator, Mapping, Sequence

from strata.storage.log import Record
from strata.storage.record_json import decode_key, decode_value, plain_schema
from strata.storage.records import (
    AclKey,
    AssociationKey,
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DekKey,
    DeleteSubjectKey,
    ExporterKey,
    ExporterValue,
    ExportKey,
    KekKey,
    Key,
    LoweredKey,
    LoweredValue,
    ModeKey,
    SchemaKey,
    SchemaValue,
    Value,
)

__all__ = ["CHANGES", "EVENTS", "change_fields", "log_change"]

CHANGES: Mapping[str, str] = {
    "schema_register": "registered",
    "schema_delete": "deleted",
    "subject_delete": "deleted",
    "config_update": "set",
    "config_delete": "deleted",
    "mode_update": "set",
    "mode_delete": "deleted",
    "context_delete": "deleted",
    "highest_id_lower": "lowered",
    "association_update": "set",
    "association_delete": "deleted",
    "kek_update": "set",
    "kek_delete": "deleted",
    "dek_update": "set",
    "dek_delete": "deleted",
    "batch_apply": "wrote",
    "exporter_update": "set",
    "exporter_delete": "deleted",
    "acl_create": "added",
    "acl_delete": "removed",
    "change": "changed",
}
"""The events of changes, which are those of the audit, and the verb of their lines."""

_KEKS, _DEKS = "/dek-registry/v1/keks", "/dek-registry/v1/keks/{name}/deks"
EVENTS: Mapping[tuple[str, str | None], str] = {
    ("POST", "/subjects/{subject}/versions"): "schema_register",
    ("POST", "/subjects/{subject}/versions/{version}/tags"): "schema_register",
    ("DELETE", "/subjects/{subject}/versions/{version}"): "schema_delete",
    ("DELETE", "/subjects/{subject}"): "subject_delete",
    ("PUT", "/config"): "config_update",
    ("PUT", "/config/{subject}"): "config_update",
    ("DELETE", "/config"): "config_delete",
    ("DELETE", "/config/{subject}"): "config_delete",
    ("PUT", "/mode"): "mode_update",
    ("PUT", "/mode/{subject}"): "mode_update",
    ("DELETE", "/mode"): "mode_delete",
    ("DELETE", "/mode/{subject}"): "mode_delete",
    ("DELETE", "/contexts/{context}"): "context_delete",
    ("PUT", "/v1/highest-ids/{context}"): "highest_id_lower",
    ("POST", "/associations"): "association_update",
    ("PUT", "/associations/resources/{resource_id}"): "association_update",
    ("POST", "/associations:batchMutate"): "association_update",
    ("DELETE", "/associations/resources/{resource_id}"): "association_delete",
    ("POST", _KEKS): "kek_update",
    ("PUT", f"{_KEKS}/{{name}}"): "kek_update",
    ("POST", f"{_KEKS}/{{name}}/undelete"): "kek_update",
    ("DELETE", f"{_KEKS}/{{name}}"): "kek_delete",
    ("POST", _DEKS): "dek_update",
    ("POST", f"{_DEKS}/{{subject}}"): "dek_update",
    ("POST", f"{_DEKS}/{{subject}}/undelete"): "dek_update",
    ("POST", f"{_DEKS}/{{subject}}/versions/{{version}}/undelete"): "dek_update",
    ("DELETE", f"{_DEKS}/{{subject}}"): "dek_delete",
    ("DELETE", f"{_DEKS}/{{subject}}/versions/{{version}}"): "dek_delete",
    ("POST", "/v1/apply"): "batch_apply",
    ("POST", "/exporters"): "exporter_update",
    ("PUT", "/exporters/{exporter}"): "exporter_update",
    ("PUT", "/exporters/{exporter}/config"): "exporter_update",
    ("PUT", "/exporters/{exporter}/pause"): "exporter_update",
    ("PUT", "/exporters/{exporter}/resume"): "exporter_update",
    ("PUT", "/exporters/{exporter}/reset"): "exporter_update",
    ("DELETE", "/exporters/{exporter}"): "exporter_delete",
    ("POST", "/security/acls"): "acl_create",
    ("DELETE", "/security/acls"): "acl_delete",
}
"""The name of a change, by the route that makes it."""

_MOST_NAMED = 3
_MOST_DECODED = 100
_log = logging.getLogger("strata.changes")


def log_change(
    event: str, asked: Mapping[str, object], actor: str, address: str | None, facts: Mapping[str, object]
) -> None:
    """Log a change.

    Args:
        event: its name, of `CHANGES`.
        asked: the facts about the request, with its id.
        actor: who asked for it.
        address: the address of the client; None if it is unknown.
        facts: the fields of the change, from `change_fields`.
    """
    _log.info(
        "%(actor)s %(verb)s %(what)s, at offset %(offset)d",
        {
            "event": event,
            "actor": actor,
            "address": address,
            "verb": CHANGES[event],
            **facts,
            "route": asked["route"],
            "request_id": asked["request_id"],
            **({"trace_id": asked["trace_id"]} if asked.get("trace_id") else {}),
        },
    )


def change_fields(records: Sequence[Record], offset: int) -> dict[str, object]:
    """Return the fields that describe a change: what, subject, version, schema id, level or mode, offset, records.

    Args:
        records: the records that the log has.
        offset: the offset of the last of them.
    """
    items = [_decoded(record) for record in records[:_MOST_DECODED]]
    fields: dict[str, object] = {}
    for key, value in items:
        for name, item in _facts(key, value):
            fields.setdefault(name, item)
    words = [text for key, value in items if (text := _described(key, value))]
    named = ", ".join(words[:_MOST_NAMED])
    more = len(words) + len(records) - len(items) - _MOST_NAMED
    what = f"{named} and {more} more" if more > 0 else named or "nothing visible"
    return {"what": what, **fields, "offset": offset, "records": len(records)}


def _decoded(record: Record) -> tuple[Key, Value]:
    plain = plain_schema(record.key, record.value)  # most changes, in half of the time
    if plain is not None:
        return SchemaKey(plain.subject, plain.version), plain
    key = decode_key(record.key)
    return key, decode_value(key, record.value)


def _facts(key: Key, value: Value) -> Iterator[tuple[str, object]]:
    """Yield the fields of one record."""
    subject = getattr(key, "subject", None)
    if subject is not None:
        yield "subject", subject
    match key, value:
        case SchemaKey(), SchemaValue():
            yield "version", value.version
            yield "schema_id", value.schema_id
        case SchemaKey(), _:
            yield "version", key.version
        case ConfigKey(), ConfigValue() if level := value.get("compatibilityLevel"):
            yield "compatibility_level", level
        case ModeKey(), str():
            yield "mode", value
        case (KekKey(), _):
            yield "kek", key.name
        case (DekKey(), _):
            yield "kek", key.kek
            yield "version", key.version
        case _:
            pass


def _described(key: Key, value: Value) -> str:
    """Return one record in words; empty if it is of no interest."""
    match key:
        case SchemaKey(subject, version) if isinstance(value, SchemaValue):
            what = f"version {version} of {subject}"
            return f"{what} (it can be restored)" if value.deleted else f"{what} as schema {value.schema_id}"
        case SchemaKey(subject, version):
            return f"version {version} of {subject} for good"
        case DeleteSubjectKey(subject):
            return f"{subject} up to version {value} (it can be restored)" if value is not None else ""
        case ClearSubjectKey(subject):
            return f"the deleted versions of {subject or 'the registry'}" if value is not None else ""
        case ConfigKey(subject):
            settings = f": {_settings(value)}" if isinstance(value, ConfigValue) else ""
            return f"the configuration of {subject or 'the registry'}{settings}"
        case ModeKey(subject):
            return f"the mode of {subject or 'the registry'}{f': {value}' if value else ''}"
        case ContextKey(context):
            return f"the context {context}" if value is None else ""
        case AssociationKey():
            return f"the association of {key.resource_type} {key.resource_name} with {key.subject}"
        case KekKey(name):
            return f"the key encryption key {name}"
        case DekKey(kek, subject, algorithm, version):
            return f"version {version} of the data encryption key of {subject} ({algorithm}, {kek})"
        case _:
            return _described_whole(key, value)


def _described_whole(key: Key, value: Value) -> str:
    """Return one record about the registry as a whole in words; empty if it is of no interest."""
    match key:
        case ExporterKey(name):
            rests = isinstance(value, ExporterValue) and value.paused
            return f"the exporter {name}{' (paused)' if rests else ''}"
        case LoweredKey(context) if isinstance(value, LoweredValue):
            return f"the highest id of the context {context}: {value.highest}"
        case ExportKey(name):
            return f"the progress of the exporter {name}"
        case AclKey():
            return (
                f"the rule {key.permission} {key.operation} on {key.resource_type} {key.resource} "
                f"({key.pattern_type}) for {key.principal} from {key.host}"
            )
        case _:
            return ""


def _settings(value: ConfigValue) -> str:
    """Return a configuration in one line: values of plain fields, only the names of the others."""
    shown = [name if isinstance(item, Mapping) else f"{name}={item}" for name, item in value.fields.items()]
    return ", ".join(shown) or "nothing"
