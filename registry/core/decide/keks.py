"""Decide key encryption keys (KEKs) for CSFLE: names for keys in a key management service (KMS).

Only clients talk to the KMS. The registry stores which KMS and which key, and nothing that gives access: it removes
properties that hold credentials (docs/decisions/0010).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypedDict

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.effective_settings import check_writable
from strata.storage.record_json import encode
from strata.storage.records import KekKey, KekValue
from strata.storage.state import State

__all__ = [
    "Kek",
    "KekFields",
    "check_kek_name",
    "create_kek",
    "delete_kek",
    "kek_of",
    "undelete_kek",
    "update_kek",
    "without_credentials",
]

_MAX_NAME = 64
# A KMS type that begins with one of these is stored as `aws-kms` etc., the name that clients compare with.
_KMS_FAMILIES = ("aws", "azure", "gcp")
# Properties that hold credentials for the KMS drivers of the reference's clients.
_CREDENTIALS = frozenset(
    {"approle.secret.id", "client.secret", "private.key", "secret", "secret.access.key", "token.id"}
)
_CREDENTIAL_ENDINGS = ("password", "secret")


class Kek(NamedTuple):
    """A KEK."""

    name: str
    value: KekValue


def create_kek(state: State, wanted: Kek, now: int, most: int) -> Decision[Kek]:
    """Return a KEK and the record that stores it; a soft-deleted KEK with the same properties is restored.

    Args:
        state: the State to decide on.
        wanted: the KEK; its creation time does not count.
        now: the creation time of a new KEK, in milliseconds since the epoch.
        most: how many KEKs the registry may hold.

    Raises:
        RegistryError: 40370 if it is shared; 40971 if the name exists; 40972 if there are too many; 42205 if the
            registry is read-only; 42271 if a property is missing or invalid.
    """
    name, value = wanted
    check_kek_name(name)
    if not value.kms_key_id:
        raise errors.invalid_key("kmsKeyId")
    if not value.kms_type:
        raise errors.invalid_key("kmsType")
    if value.shared:
        raise errors.no_key_management()
    check_writable(state, None)
    held = state.encryption_keys.keks.get(name)
    props, created = without_credentials(value.kms_props), held.created if held else now
    value = replace(value, kms_type=_family(value.kms_type), kms_props=props, created=created)
    if held and value != replace(held, deleted=not held.deleted):
        raise errors.key_exists(name)
    if not held and len(state.encryption_keys.keks) >= most:
        raise errors.too_many_keys(most)
    return _put(name, value)


class KekFields(TypedDict, total=False):
    """The changed properties of a KEK; an absent one keeps its value, null removes it."""

    kmsProps: Mapping[str, str] | None
    doc: str | None
    shared: bool | None


def update_kek(state: State, name: str, change: KekFields) -> Decision[Kek]:
    """Return a KEK with changed `kmsProps`, `doc` or `shared`, and the record that stores it.

    Args:
        state: the State to decide on.
        name: the name of the KEK.
        change: the changed properties; an absent one keeps its value, null removes it.

    Raises:
        RegistryError: 40370 if it would become shared; 40470 if it does not exist; 42205 if the registry is read-only;
            42271 if the name is invalid.
    """
    held = kek_of(state, name, include_deleted=False)
    shared = bool(change.get("shared")) if "shared" in change else held.shared
    if shared and not held.shared:
        raise errors.no_key_management()
    check_writable(state, None)
    props = without_credentials(change["kmsProps"] or {}) if "kmsProps" in change else held.kms_props
    value = replace(held, kms_props=props, doc=change.get("doc", held.doc), shared=shared)
    return Decision(Kek(name, held)) if value == held else _put(name, value)


def delete_kek(state: State, name: str, *, permanent: bool) -> Decision[None]:
    """Return the record that deletes a KEK, none if it is already soft-deleted.

    Args:
        state: the State to decide on.
        name: the name of the KEK.
        permanent: whether to hard-delete; soft-deleted DEKs then also count as references.

    Raises:
        RegistryError: 40470 if it does not exist; 40471 if it must be soft-deleted first; 42205 if the registry is
            read-only; 42271 if the name is invalid; 42272 if there are DEKs under it.
    """
    held = kek_of(state, name, include_deleted=True)
    check_writable(state, None)
    if any(state.encryption_keys.subjects(name, include_deleted=permanent)):
        raise errors.key_referenced(name)
    if permanent:
        if not held.deleted:
            raise errors.key_not_soft_deleted(name)
        return Decision(None, [encode(KekKey(name))])
    return _mark(name, held, deleted=True)


def undelete_kek(state: State, name: str) -> Decision[None]:
    """Return the record that undoes the soft deletion of a KEK, none if it is not soft-deleted.

    Raises:
        RegistryError: 40470 if it does not exist; 42205 if the registry is read-only; 42271 if the name is invalid.
    """
    held = kek_of(state, name, include_deleted=True)
    check_writable(state, None)
    return _mark(name, held, deleted=False)


def kek_of(state: State, name: str, *, include_deleted: bool) -> KekValue:
    """Return a KEK.

    Raises:
        RegistryError: 40470 if it does not exist; 42271 if the name is invalid.
    """
    check_kek_name(name)
    held = state.encryption_keys.kek(name, include_deleted=include_deleted)
    if held is None:
        raise errors.key_not_found(name)
    return held


def check_kek_name(name: str) -> None:
    """Reject a name unless it has at most 64 letters, digits, `_` and `-`, and begins with a letter or `_`.

    Raises:
        RegistryError: 42271 if the name is invalid.
    """
    if (
        not 0 < len(name) <= _MAX_NAME
        or not (name[0].isalpha() or name[0] == "_")
        or not all(c.isalpha() or c.isdecimal() or c in "_-" for c in name)
    ):
        raise errors.invalid_key("name")


def without_credentials(props: Mapping[str, str]) -> dict[str, str]:
    """Return KMS properties, sorted by name, without those that hold credentials."""
    return {
        name: value
        for name, value in sorted(props.items())
        if name.lower() not in _CREDENTIALS and not name.lower().endswith(_CREDENTIAL_ENDINGS)
    }


def _family(kms_type: str) -> str:
    family = next((name for name in _KMS_FAMILIES if kms_type.lower().startswith(name)), None)
    return f"{family}-kms" if family else kms_type


def _put(name: str, value: KekValue) -> Decision[Kek]:
    return Decision(Kek(name, value), [encode(KekKey(name), value)])


def _mark(name: str, held: KekValue, *, deleted: bool) -> Decision[None]:
    return Decision(None, [] if held.deleted == deleted else _put(name, replace(held, deleted=deleted)).records)
