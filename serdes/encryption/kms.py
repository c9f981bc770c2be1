"""Key management services: what wraps data keys, and the table of those that are there.

A driver `(settings, properties) -> Kms` is called once for each KEK. `settings` are those of the executor, which are
the user's; `properties` are those of the KEK, which the registry hands out: an address may come from them, no secret.
Another KMS is another row:

    conf={"rule.executors": {"ENCRYPT": lambda client, settings: FieldEncryption(
        client, settings, drivers={**DRIVERS, "my-kms": MyKms})}}

Rules of this file: a KMS sees data keys only, never data; what it cannot do is a CipherError without a secret in it.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from serdes.encryption.ciphers import CipherError, Gcm

__all__ = ["DRIVERS", "Kms", "KmsDriver", "LocalKms"]


class Kms(Protocol):
    """Holds keys that never leave it."""

    def wrap(self, key_id: str, material: bytes) -> bytes:
        """Encrypt a data key by the key with this id."""

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """The data key again; CipherError if it cannot be."""


KmsDriver = Callable[[Mapping[str, Any], Mapping[str, str]], Kms]


class LocalKms:
    """One key made of a secret that all clients share; key ids do not matter. For tests and small settings.

    Args:
        settings: `secret`, or else the environment variable LOCAL_SECRET; `old.secrets`, or else LOCAL_OLD_SECRETS,
            with commas between them: they unwrap what was wrapped before the secret was changed.
        properties: not looked at.
    """

    def __init__(self, settings: Mapping[str, Any], properties: Mapping[str, str]) -> None:  # noqa: ARG002 - as drivers are
        secret = settings.get("secret") or os.environ.get("LOCAL_SECRET")
        if not isinstance(secret, str) or not secret:
            raise CipherError(
                "local-kms needs the setting rule.executors._default_.param.secret, or the environment variable "
                "LOCAL_SECRET"
            )
        old = settings.get("old.secrets") or os.environ.get("LOCAL_OLD_SECRETS") or ""
        self._keys = [_local_key(one) for one in (secret, *filter(None, str(old).split(",")))]

    def wrap(self, key_id: str, material: bytes) -> bytes:  # noqa: ARG002 - there is one key
        """By the secret of now."""
        return self._keys[0].encrypt(material)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:  # noqa: ARG002 - there is one key
        """By the secret of now or an old one."""
        for key in self._keys:
            try:
                return key.decrypt(wrapped)
            except CipherError:
                continue
        raise CipherError("the data key was wrapped with another secret, or it was changed")


def _local_key(secret: str) -> Gcm:
    return Gcm(HKDF(SHA256(), length=16, salt=None, info=b"").derive(secret.encode()))


DRIVERS: Mapping[str, KmsDriver] = {"local-kms": LocalKms}
"""`encrypt.kms.type` → driver."""
