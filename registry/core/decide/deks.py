"""Decide data encryption keys (DEKs), which have versions per KEK, subject and algorithm (CSFLE).

A client generates a DEK, has its KMS encrypt it under the KEK, and stores the encrypted DEK here. A client with access
to the KEK can decrypt it; this service cannot.
"""

import unicodedata
from dataclasses import replace

from strata.registry.core import errors
from strata.registry.core.decide.decision import Decision
from strata.registry.core.decide.keks import kek_of
from strata.registry.core.effective_settings import check_writable
from strata.registry.core.lookup import LATEST
from strata.storage.encryption_keys import Dek
from strata.storage.record_json import encode
from strata.storage.records import MAX_VERSION, DekKey, Subject
from strata.storage.state import State

__all__ = [
    "AES256_GCM",
    "ALGORITHMS",
    "check_subject",
    "create_dek",
    "dek_of",
    "delete_deks",
    "undelete_deks",
]

AES256_GCM = "AES256_GCM"
ALGORITHMS = ("AES128_GCM", AES256_GCM, "AES256_SIV")
_MAX_SUBJECT = 4096


def create_dek(state: State, wanted: Dek, now: int, most: int, *, rewrap: bool) -> Decision[Dek]:
    """Return a version of a DEK and the record that stores it; a soft-deleted version with the same key is restored.

    A rewrapped version keeps its creation time.

    Args:
        state: the State to decide on.
        wanted: the version; its creation time does not count.
        now: the creation time of a new version, in milliseconds since the epoch.
        most: how many versions of DEKs the registry may hold.
        rewrap: whether to replace the existing version: the same key, encrypted again.

    Raises:
        RegistryError: 40370 without material under a shared KEK; 40470 if the KEK does not exist; 40971 if the version
            exists; 40972 if there are too many; 42205 if the subject is read-only; 42271 if a property is missing or
            invalid.
    """
    key, value = wanted
    check_subject(key.subject)
    if not 1 <= key.version <= MAX_VERSION:
        raise errors.invalid_key("version")
    kek = kek_of(state, key.kek, include_deleted=value.deleted)
    check_writable(state, key.subject)
    held = state.encryption_keys.dek(key)
    value = replace(value, created=held.value.created if held else now)
    if held and not rewrap and value != replace(held.value, deleted=not held.value.deleted):
        raise errors.key_exists(key.subject)
    if not value.material:
        raise errors.no_key_management() if kek.shared else errors.invalid_key("encryptedKeyMaterial")
    if not held and state.encryption_keys.dek_count >= most:
        raise errors.too_many_keys(most)
    return Decision(Dek(key, value), [encode(key, value)])


def delete_deks(
    state: State, kek: str, subject: Subject, algorithm: str, version: int | None, *, permanent: bool
) -> Decision[None]:
    """Return the records that delete versions of a DEK; none for a version that is already soft-deleted.

    Args:
        state: the State to decide on.
        kek: the name of the KEK.
        subject: the subject of the DEK.
        algorithm: the algorithm of the DEK.
        version: the version; None means all.
        permanent: whether to hard-delete versions that are soft-deleted.

    Raises:
        RegistryError: 40470 if there is no such DEK; 40471 if it must be soft-deleted first; 42205 if the subject is
            read-only; 42271 if a name is invalid.
    """
    deks = _affected(state, kek, subject, algorithm, version)
    if not permanent:
        return _mark(deks, deleted=True)
    if any(not dek.value.deleted for dek in deks):
        raise errors.key_not_soft_deleted(subject)
    return Decision(None, [encode(dek.key) for dek in deks])


def undelete_deks(state: State, kek: str, subject: Subject, algorithm: str, version: int | None) -> Decision[None]:
    """Return the records that undo the soft deletion of versions of a DEK.

    Args:
        state: the State to decide on.
        kek: the name of the KEK.
        subject: the subject of the DEK.
        algorithm: the algorithm of the DEK.
        version: the version; None means all.

    Raises:
        RegistryError: 40470 if there is no such DEK; 40472 if the KEK is soft-deleted; 42205 if the subject is
            read-only; 42271 if a name is invalid.
    """
    deks = _affected(state, kek, subject, algorithm, version)
    if kek_of(state, kek, include_deleted=True).deleted:
        raise errors.key_soft_deleted(kek)
    return _mark(deks, deleted=False)


def dek_of(state: State, kek: str, subject: Subject, algorithm: str, version: int, *, include_deleted: bool) -> Dek:
    """Return a version of a DEK.

    Args:
        state: the State to search.
        kek: the name of the KEK.
        subject: the subject of the DEK.
        algorithm: the algorithm of the DEK.
        version: the version; `LATEST` means the latest visible one.
        include_deleted: whether soft-deleted keys are visible.

    Raises:
        RegistryError: 40470 if there is no such DEK or KEK; 42271 if a name is invalid.
    """
    check_subject(subject)
    kek_of(state, kek, include_deleted=include_deleted)
    if version == LATEST:
        versions = state.encryption_keys.versions(kek, subject, algorithm, include_deleted=include_deleted)
        dek = versions[-1] if versions else None
    else:
        dek = state.encryption_keys.dek(DekKey(kek, subject, algorithm, version))
    if dek is None or (dek.value.deleted and not include_deleted):
        raise errors.key_not_found(subject)
    return dek


def _affected(state: State, kek: str, subject: Subject, algorithm: str, version: int | None) -> list[Dek]:
    dek = dek_of(state, kek, subject, algorithm, LATEST if version is None else version, include_deleted=True)
    check_writable(state, subject)
    keys = state.encryption_keys
    return keys.versions(kek, subject, algorithm, include_deleted=True) if version is None else [dek]


def _mark(deks: list[Dek], *, deleted: bool) -> Decision[None]:
    changed = [dek for dek in deks if dek.value.deleted != deleted]
    return Decision(None, [encode(dek.key, replace(dek.value, deleted=deleted)) for dek in changed])


def check_subject(subject: str) -> None:
    """Reject an invalid subject of a DEK.

    Raises:
        RegistryError: 42271 if it is empty, too long or holds control characters.
    """
    if not 0 < len(subject) <= _MAX_SUBJECT or any(unicodedata.category(c) == "Cc" for c in subject):
        raise errors.invalid_key("subject")
