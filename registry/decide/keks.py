"""Decide key encryption keys (KEKs): names for keys that a key management service (KMS) keeps.

Only clients talk to the KMS. What is stored says where it is and which key is meant, and nothing that gives access:
properties that hold credentials are left out (docs/decisions/0010).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from registry import errors
from registry.effective import mode_in_force
from registry.writer import Decision
from storage.record_json import encode
from storage.records import DEFAULT_CONTEXT, KekKey, KekValue
from storage.state import State

__all__ = [
    "Kek",
    "KekRequest",
    "check_kek_name",
    "create_kek",
    "delete_kek",
    "kek_of",
    "undelete_kek",
    "update_kek",
    "without_credentials",
]

_MAX_NAME = 64
# Kinds of KMS that go by several names, and the one that clients compare with.
_KMS_FAMILIES = ("aws", "azure", "gcp")
# Properties with which the drivers of the reference's clients log in.
_CREDENTIALS = frozenset(
    {"approle.secret.id", "client.secret", "private.key", "secret", "secret.access.key", "token.id"}
)
_CREDENTIAL_ENDINGS = ("password", "secret")


@dataclass(frozen=True, slots=True)
class KekRequest:
    """A KEK to make; `deleted`: soft-deleted from the start, as in a copy of another registry."""

    name: str
    kms_type: str | None
    kms_key_id: str | None
    kms_props: Mapping[str, str]
    doc: str | None = None
    shared: bool = False
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Kek:
    """A KEK as it stands now."""

    name: str
    value: KekValue


def create_kek(state: State, request: KekRequest, now: int, most: int) -> Decision[Kek]:
    """Return a KEK and the record that makes it; one that was soft-deleted comes back if nothing else differs.

    `now` is in milliseconds since the epoch; `most` is how many KEKs there may be.

    Raises:
        RegistryError: 40370 for a shared one, 40971, 40972, 42205, 42271.
    """
    check_kek_name(request.name)
    if not request.kms_key_id:
        raise errors.invalid_key("kmsKeyId")
    if not request.kms_type:
        raise errors.invalid_key("kmsType")
    if request.shared:
        raise errors.no_key_management()
    _check_writable(state)
    kms_type, props = _family(request.kms_type), without_credentials(request.kms_props)
    value = KekValue(
        kms_type, request.kms_key_id, props, request.doc, shared=False, deleted=request.deleted, created=now
    )
    held = state.encryption_keys.keks.get(request.name)
    if held:
        value = replace(value, created=held.created)
        if value != replace(held, deleted=value.deleted) or value.deleted == held.deleted:
            raise errors.key_exists(request.name)
    elif len(state.encryption_keys.keks) >= most:
        raise errors.too_many_keys(most)
    return _stored(request.name, value)


def update_kek(state: State, name: str, change: Mapping[str, Any]) -> Decision[Kek]:
    """Return a KEK with other `kmsProps`, `doc` or `shared`: what the change does not name stays, null clears.

    Raises:
        RegistryError: 40370 when it is to be shared, 40470, 42205, 42271.
    """
    held = kek_of(state, name, include_deleted=False)
    shared = bool(change.get("shared")) if "shared" in change else held.shared
    if shared and not held.shared:
        raise errors.no_key_management()
    _check_writable(state)
    props = without_credentials(change["kmsProps"] or {}) if "kmsProps" in change else held.kms_props
    value = replace(held, kms_props=props, doc=change.get("doc", held.doc), shared=shared)
    return Decision(Kek(name, held)) if value == held else _stored(name, value)


def delete_kek(state: State, name: str, *, permanent: bool) -> Decision[None]:
    """Return the record that deletes a KEK, none when it is soft-deleted already.

    Raises:
        RegistryError: 40470, 40471, 42205, 42271, 42272 while there are DEKs under it (`permanent`: soft-deleted too).
    """
    held = kek_of(state, name, include_deleted=True)
    _check_writable(state)
    if any(state.encryption_keys.subjects(name, include_deleted=permanent)):
        raise errors.key_referenced(name)
    if permanent:
        if not held.deleted:
            raise errors.key_not_soft_deleted(name)
        return Decision(None, [encode(KekKey(name))])
    return _marked(name, held, deleted=True)


def undelete_kek(state: State, name: str) -> Decision[None]:
    """Return the record that takes a soft deletion back, none when there was none.

    Raises:
        RegistryError: 40470, 42205, 42271.
    """
    held = kek_of(state, name, include_deleted=True)
    _check_writable(state)
    return _marked(name, held, deleted=False)


def kek_of(state: State, name: str, *, include_deleted: bool) -> KekValue:
    """Return a KEK.

    Raises:
        RegistryError: 40470, 42271 for a name that none can have.
    """
    check_kek_name(name)
    held = state.encryption_keys.kek(name, include_deleted=include_deleted)
    if held is None:
        raise errors.key_not_found(name)
    return held


def check_kek_name(name: str) -> None:
    """Refuse a name that does not begin with a letter or `_`, and go on with those, digits and `-`.

    Raises:
        RegistryError: 42271.
    """
    if (
        not 0 < len(name) <= _MAX_NAME
        or not (name[0].isalpha() or name[0] == "_")
        or not all(c.isalpha() or c.isdecimal() or c in "_-" for c in name)
    ):
        raise errors.invalid_key("name")


def without_credentials(props: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a KMS without those that give access to it, sorted."""
    return {
        name: value
        for name, value in sorted(props.items())
        if name.lower() not in _CREDENTIALS and not name.lower().endswith(_CREDENTIAL_ENDINGS)
    }


def _family(kms_type: str) -> str:
    family = next((name for name in _KMS_FAMILIES if kms_type.lower().startswith(name)), None)
    return f"{family}-kms" if family else kms_type


def _stored(name: str, value: KekValue) -> Decision[Kek]:
    return Decision(Kek(name, value), [encode(KekKey(name), value)])


def _marked(name: str, held: KekValue, *, deleted: bool) -> Decision[None]:
    return Decision(None, [] if held.deleted == deleted else _stored(name, replace(held, deleted=deleted)).records)


def _check_writable(state: State) -> None:
    if mode_in_force(state, None).is_read_only:
        raise errors.read_only("", DEFAULT_CONTEXT)
