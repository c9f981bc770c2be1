"""Key management services (KMS), which wrap data keys, and the table of drivers.

A driver `(settings, properties) -> Kms` is called once for each KEK. `settings` are the executor's, from the user;
`properties` are the KEK's, from the registry: an address may come from them, a secret may not. To add a KMS, add a
driver:

    conf={"rule.executors": {"ENCRYPT": lambda client, settings: FieldEncryption(
        client, settings, drivers={**DRIVERS, "my-kms": MyKms})}}

Rules of this file: a KMS sees data keys only, never data; its failures are CipherErrors without secrets.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from strata.serdes.encryption.ciphers import CipherError, Gcm

__all__ = ["DRIVERS", "Kms", "KmsDriver", "LocalKms"]


class Kms(Protocol):
    """A service whose keys never leave it."""

    def wrap(self, key_id: str, material: bytes) -> bytes:
        """Encrypt a data key with the key that has this id.

        Raises:
            CipherError: If the service cannot do it.
        """

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """Decrypt a data key.

        Raises:
            CipherError: If the key with this id did not wrap it, or the service cannot decrypt it.
        """


KmsDriver = Callable[[Mapping[str, Any], Mapping[str, str]], Kms]


class LocalKms:
    """A key derived from a secret that all clients share; it ignores key ids. For tests and small deployments.

    Args:
        settings: `secret`, else the environment variable LOCAL_SECRET; `old.secrets`, else LOCAL_OLD_SECRETS, separated
            by commas, which unwrap keys from before the secret was changed.
        properties: not used.

    Raises:
        CipherError: If there is no secret.
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
        """Encrypt a data key with the current secret."""
        return self._keys[0].encrypt(material)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:  # noqa: ARG002 - there is one key
        """Decrypt a data key with the current secret or an old one.

        Raises:
            CipherError: If no secret fits.
        """
        for key in self._keys:
            try:
                return key.decrypt(wrapped)
            except CipherError:
                continue
        raise CipherError("the wrapped data key was changed, or wrapped with another secret")


def _local_key(secret: str) -> Gcm:
    return Gcm(HKDF(SHA256(), length=16, salt=None, info=b"").derive(secret.encode()))


DRIVERS: Mapping[str, KmsDriver] = {"local-kms": LocalKms}
"""The drivers by `encrypt.kms.type`."""
