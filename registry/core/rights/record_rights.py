"""The rights that each record of the log needs: the last check of a write, whatever route and name led to it.

The first check is that of the route (`needs.py`). A record that undoes another needs less than it would alone: deleting
a subject also takes away its configuration. One operation of each row suffices.
"""

from collections.abc import Iterator

from strata.registry.core.rights.rules import Operation, ResourceType
from strata.storage.log import Record
from strata.storage.record_json import decode_key, decode_value
from strata.storage.records import (
    AclKey,
    AssociationKey,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DekKey,
    DekValue,
    DeleteSubjectKey,
    ExporterKey,
    ExportKey,
    KekKey,
    KekValue,
    LoweredKey,
    ModeKey,
    SchemaKey,
    SchemaValue,
    Value,
)

__all__ = ["rights_of"]

_Needed = tuple[tuple[Operation, ...], ResourceType, str]
_WRITE, _DELETE, _ALTER = (Operation.WRITE,), (Operation.DELETE,), (Operation.ALTER_CONFIGS,)
_SUBJECT, _KEK, _REGISTRY = ResourceType.SUBJECT, ResourceType.KEK, ResourceType.REGISTRY


def rights_of(record: Record) -> Iterator[_Needed]:
    """Yield what a record needs: operations of which one suffices, and the type and name of the resource."""
    key = decode_key(record.key)
    value = decode_value(key, record.value)
    match key:
        case SchemaKey(subject, _):
            yield _DELETE if _is_gone(value) else _WRITE, _SUBJECT, subject
        case DeleteSubjectKey(subject) | ClearSubjectKey(subject):
            yield _DELETE, _SUBJECT, subject or ""
        case ConfigKey(subject) | ModeKey(subject):
            yield (*_ALTER, *_DELETE) if value is None else _ALTER, _SUBJECT, subject or ""
        case AssociationKey():
            yield _DELETE if value is None else _WRITE, _SUBJECT, key.subject
        case KekKey(name):
            yield _of_key(value), _KEK, name
        case DekKey():
            yield _of_key(value), _KEK, key.kek
            yield _of_key(value), _SUBJECT, key.subject
        case ContextKey() if value is None:
            yield _DELETE, _REGISTRY, ""
        case AclKey() | ExporterKey() | ExportKey() | LoweredKey():
            yield (Operation.ALTER,), ResourceType.CLUSTER, ""


def _of_key(value: Value) -> tuple[Operation, ...]:
    """Return the operations for a key: those who delete it may also undelete it."""
    return _DELETE if _is_gone(value) else (*_WRITE, *_DELETE)


def _is_gone(value: Value) -> bool:
    return value is None or (isinstance(value, SchemaValue | KekValue | DekValue) and value.deleted)
