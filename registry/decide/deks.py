"""Decide data encryption keys (DEKs), which have versions per KEK, subject and algorithm (CSFLE).

A client generates a DEK, has its KMS encrypt it under the KEK, and stores the encrypted DEK here. A client with access
to the KEK can decrypt it; this service cannot.
"""

import unicodedata
from dataclasses import dataclass, replace

from strata.registry import errors
from strata.registry.decide.decision import Decision
from strata.registry.decide.keks import kek_of
from strata.registry.effective_settings import check_writable
from strata.registry.lookup import LATEST
from strata.storage.record_json import encode
from strata.storage.records import MAX_VERSION, DekKey, DekValue, Subject
from strata.storage.state import State

__all__ = [
    "AES256_GCM",
    "ALGORITHMS",
    "Dek",
    "DekRequest",
    "check_subject",
    "create_dek",
    "dek_of",
    "delete_deks",
    "undelete_deks",
]

AES256_GCM = "AES256_GCM"
ALGORITHMS = ("AES128_GCM", AES256_GCM, "AES256_SIV")
_MAX_SUBJECT = 4096


@dataclass(frozen=True, slots=True)
class DekRequest:
    """A version of a DEK to create.

    Attributes:
        kek: the name of its KEK.
        subject: its subject.
        algorithm: one of `ALGORITHMS`.
        version: its number, from 1.
        material: the encrypted key in base64.
        deleted: whether it is soft-deleted from the start, as in a copy of another registry.
        rewrap: whether to replace the existing version: the same key, encrypted again.
    """

    kek: str
    subject: Subject
    algorithm: str = AES256_GCM
    version: int = 1
    material: str | None = None
    deleted: bool = False
    rewrap: bool = False


@dataclass(frozen=True, slots=True)
class Dek:
    """A version of a DEK."""

    key: DekKey
    value: DekValue


def create_dek(state: State, request: DekRequest, now: int, most: int) -> Decision[Dek]:
    """Return a version of a DEK and the record that stores it; a soft-deleted version with the same key is restored.

    A rewrapped version keeps its creation time.

    Args:
        state: the State to decide on.
        request: the version.
        now: the creation time of a new version, in milliseconds since the epoch.
        most: how many versions of DEKs the registry may hold.

    Raises:
        RegistryError: 40370 without material under a shared KEK; 40470 if the KEK does not exist; 40971 if the version
            exists; 40972 if there are too many; 42205 if the subject is read-only; 42271 if a property is missing or
            invalid.
    """
    check_subject(request.subject)
    if not 1 <= request.version <= MAX_VERSION:
        raise errors.invalid_key("version")
    kek = kek_of(state, request.kek, include_deleted=request.deleted)
    check_writable(state, request.subject)
    key = DekKey(request.kek, request.subject, request.algorithm, request.version)
    value = DekValue(request.material, deleted=request.deleted, created=now)
    held = _held(state, key)
    if held:
        value = replace(value, created=held.value.created)
        same = value.material == held.value.material and value.deleted != held.value.deleted
        if not same and not request.rewrap:
            raise errors.key_exists(request.subject)
    if not request.material:
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
    found = _affected(state, kek, subject, algorithm, version)
    if not permanent:
        return _mark(found, deleted=True)
    if any(not dek.value.deleted for dek in found):
        raise errors.key_not_soft_deleted(subject)
    return Decision(None, [encode(dek.key) for dek in found])


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
    found = _affected(state, kek, subject, algorithm, version)
    if kek_of(state, kek, include_deleted=True).deleted:
        raise errors.key_soft_deleted(kek)
    return _mark(found, deleted=False)


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
        versions = _versions(state, kek, subject, algorithm, include_deleted=include_deleted)
        found = versions[-1] if versions else None
    else:
        found = _held(state, DekKey(kek, subject, algorithm, version))
    if found is None or (found.value.deleted and not include_deleted):
        raise errors.key_not_found(subject)
    return found


def _affected(state: State, kek: str, subject: Subject, algorithm: str, version: int | None) -> list[Dek]:
    one = dek_of(state, kek, subject, algorithm, LATEST if version is None else version, include_deleted=True)
    check_writable(state, subject)
    return _versions(state, kek, subject, algorithm, include_deleted=True) if version is None else [one]


def _versions(state: State, kek: str, subject: Subject, algorithm: str, *, include_deleted: bool) -> list[Dek]:
    versions = state.encryption_keys.versions(kek, subject, algorithm, include_deleted=include_deleted)
    return [Dek(key, value) for key, value in versions]


def _held(state: State, key: DekKey) -> Dek | None:
    value = state.encryption_keys.dek(key)
    return Dek(key, value) if value else None


def _mark(found: list[Dek], *, deleted: bool) -> Decision[None]:
    changed = [dek for dek in found if dek.value.deleted != deleted]
    return Decision(None, [encode(dek.key, replace(dek.value, deleted=deleted)) for dek in changed])


def check_subject(subject: str) -> None:
    """Reject an invalid subject of a DEK.

    Raises:
        RegistryError: 42271 if it is empty, too long or holds control characters.
    """
    if not 0 < len(subject) <= _MAX_SUBJECT or any(unicodedata.category(c) == "Cc" for c in subject):
        raise errors.invalid_key("subject")
