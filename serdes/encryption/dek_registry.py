"""A client of the DEK registry: key encryption keys (KEK) by name, data encryption keys (DEK) by subject.

Rules of this file: each call sends one request and caches nothing; an unknown key is None.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, Unpack

from strata.http.paths import segment
from strata.serdes.client import RegistryClient, context_of
from strata.serdes.errors import ErrorCode, RegistryError
from strata.serdes.requests import RequestParts

__all__ = ["LATEST", "Dek", "DekRegistry", "Kek"]

LATEST = -1
"""The version number of the newest version."""

T = TypeVar("T")

_HIGHEST_VERSION = 2**31 - 1
_LATEST_TS = 2**53
_LONGEST_KEY = 64 * 1024  # cloud KMSs wrap a key into some hundred bytes
_KEKS = "/dek-registry/v1/keks"


@dataclass(frozen=True, slots=True)
class Kek:
    """A key encryption key: its place in a KMS, not the key itself.

    Attributes:
        name: the name, unique in a context.
        kms_type: the type of the KMS that holds it.
        kms_key_id: its id there.
        properties: settings of the KMS, from the registry.
        shared: whether the registry may use the key and makes the data keys.
    """

    name: str
    kms_type: str
    kms_key_id: str
    properties: tuple[tuple[str, str], ...] = ()
    shared: bool = False

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "Kek":
        """Parse an answer.

        Raises:
            LookupError: If a property is missing; `RegistryClient.ask` turns built-in errors into SerdeError.
        """
        properties = {str(name): str(value) for name, value in (answer.get("kmsProps") or {}).items()}
        return cls(
            str(answer["name"]),
            str(answer["kmsType"]),
            str(answer["kmsKeyId"]),
            tuple(sorted(properties.items())),
            answer.get("shared") is True,
        )


@dataclass(frozen=True, slots=True)
class Dek:
    """A version of a subject's data encryption key.

    Attributes:
        version: from 1.
        algorithm: the cipher that it is for.
        wrapped: the key, encrypted with its KEK.
        material: the plain key, if the registry may use the KEK.
        created_at: Unix time in seconds.
    """

    version: int
    algorithm: str
    wrapped: bytes | None = field(repr=False)
    material: bytes | None = field(repr=False)
    created_at: float

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> "Dek":
        """Parse an answer.

        Raises:
            LookupError: If a property is missing; `RegistryClient.ask` turns built-in errors into SerdeError.
            ValueError: If a number is out of range, or a key is too long or not base64.
        """
        return cls(
            _number(answer["version"], 1, _HIGHEST_VERSION),
            str(answer.get("algorithm") or "AES256_GCM"),
            _bytes(answer.get("encryptedKeyMaterial")),
            _bytes(answer.get("keyMaterial")),
            _number(answer.get("ts") or 0, 0, _LATEST_TS) / 1000,
        )


class DekRegistry:
    """The DEK routes of a registry.

    All methods raise `RegistryError` if the registry rejects a request for another reason than the one described, and
    `RegistryUnavailable` if it gives no usable answer after all retries.

    Args:
        client: the registry.
    """

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    def find_kek(self, name: str, subject: str) -> Kek | None:
        """Return the KEK with a name in the context of a subject; None if it is unknown.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        return self._ask(Kek.from_answer, "GET", f"{_KEKS}/{segment(name)}", query=_context(subject))

    def add_kek(self, kek: Kek, subject: str) -> Kek | None:
        """Add a KEK in the context of a subject; return None if it exists.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        body = {"name": kek.name, "kmsType": kek.kms_type, "kmsKeyId": kek.kms_key_id, "shared": kek.shared}
        return self._ask(Kek.from_answer, "POST", _KEKS, query=_context(subject), body=body)

    def find_dek(self, kek: str, subject: str, algorithm: str, version: int, *, deleted: bool) -> Dek | None:
        """Return a version of a subject's data key; None if it is unknown.

        Args:
            kek: the name of the KEK.
            subject: the subject.
            algorithm: the cipher.
            version: the version, or `LATEST`.
            deleted: whether to find soft-deleted versions too.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        query = {"algorithm": algorithm, "deleted": "true" if deleted else "false"}
        path = f"{_KEKS}/{segment(kek)}/deks/{segment(subject)}/versions/{version}"
        return self._ask(Dek.from_answer, "GET", path, query=query)

    def add_dek(self, kek: str, subject: str, algorithm: str, version: int, wrapped: bytes | None) -> Dek | None:
        """Add a version of a subject's data key; return None if it exists.

        Args:
            kek: the name of the KEK.
            subject: the subject.
            algorithm: the cipher.
            version: the version.
            wrapped: the wrapped key; None lets the registry make one, with a shared KEK.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        body: dict[str, object] = {"subject": subject, "version": version, "algorithm": algorithm}
        if wrapped is not None:
            body["encryptedKeyMaterial"] = base64.b64encode(wrapped).decode()
        path = f"{_KEKS}/{segment(kek)}/deks"
        try:
            return self._ask(Dek.from_answer, "POST", f"{path}/{segment(subject)}", body=body)
        except RegistryError as error:
            if error.status != 405:
                raise
            return self._ask(Dek.from_answer, "POST", path, body=body)  # an older registry without that route

    def subjects(self, kek: str) -> list[str]:
        """Return the subjects that have data keys under a KEK; empty if the KEK is unknown.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        return self._ask(_texts, "GET", f"{_KEKS}/{segment(kek)}/deks") or []

    def versions(self, kek: str, subject: str, algorithm: str) -> list[int]:
        """Return the versions of a subject's data key, soft-deleted ones left out.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        path = f"{_KEKS}/{segment(kek)}/deks/{segment(subject)}/versions"
        return self._ask(_numbers, "GET", path, query={"algorithm": algorithm}) or []

    def rewrap(self, kek: str, subject: str, dek: Dek, wrapped: bytes) -> None:
        """Replace the material of a version: the same key, wrapped again.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If the registry gives no usable answer after all retries.
        """
        body = {
            "subject": subject,
            "version": dek.version,
            "algorithm": dek.algorithm,
            "encryptedKeyMaterial": base64.b64encode(wrapped).decode(),
        }
        path = f"{_KEKS}/{segment(kek)}/deks/{segment(subject)}"
        self._client.ask(Dek.from_answer, "POST", path, query={"rewrap": "true"}, body=body)

    def _ask(self, read: Callable[[Any], T], method: str, path: str, **more: Unpack[RequestParts]) -> T | None:
        """Return the answer as `read` understands it; None for an unknown key (GET) or one that exists (POST)."""
        try:
            return self._client.ask(read, method, path, **more)
        except RegistryError as error:
            if (error.error_code != ErrorCode.KEY_NOT_FOUND) if method == "GET" else (error.status != 409):
                raise
            return None


def _context(subject: str) -> dict[str, str]:
    context = context_of(subject).strip(":")
    return {} if context in ("", ".") else {"context": context}


def _bytes(text: str | None) -> bytes | None:
    if not text:
        return None
    if len(text) > _LONGEST_KEY:
        raise ValueError("the key is too long")
    return base64.b64decode(text, validate=True)


def _texts(answer: Iterable[object]) -> list[str]:
    return [str(item) for item in answer]


def _numbers(answer: Iterable[object]) -> list[int]:
    return [_number(item, 1, _HIGHEST_VERSION) for item in answer]


def _number(value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError("the number is out of range")
    return value
