"""Key management services (KMS), which wrap data keys, and the table of drivers.

A driver `(settings, properties) -> Kms` is called once for each KEK. `settings` are the executor's, from the user;
`properties` are the KEK's, from the registry, and never win over the user's. Key ids come from the registry too: every
use of one passes `key_ids.check_key_id` first. To add a KMS, add a driver:

    conf={"rule.executors": {"ENCRYPT": lambda client, settings: FieldEncryption(
        client, settings, drivers={**DRIVERS, "my-kms": MyKms})}}

Rules of this file: a KMS sees data keys only, never data; its failures are CipherErrors without secrets.
"""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from strata.serdes.encryption.ciphers import CipherError, Gcm
from strata.serdes.encryption.dek_registry import Kek
from strata.serdes.encryption.key_ids import check_key_id

__all__ = ["ALTERNATES", "DRIVERS", "Kms", "KmsDriver", "LocalKms", "Service", "driver_of"]

ALTERNATES = "encrypt.alternate.kms.key.ids"
"""The setting, or else the property of a KEK, with further ids of its key, separated by commas."""


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
_LOCAL = "local-kms"


class LocalKms:
    """A key derived from a secret that all clients share; it ignores key ids. For tests and small deployments.

    Args:
        settings: `secret`, else the environment variable LOCAL_SECRET; `old.secrets`, else LOCAL_OLD_SECRETS, separated
            by commas, which unwrap keys from before the secret was changed.
        properties: not used.

    Raises:
        CipherError: If there is no secret.
    """

    def __init__(self, settings: Mapping[str, object], properties: Mapping[str, str]) -> None:  # noqa: ARG002 - as drivers are
        secret = settings.get("secret") or os.environ.get("LOCAL_SECRET")
        if not isinstance(secret, str) or not secret:
            raise CipherError(
                "local-kms needs the setting rule.executors._default_.param.secret, or the environment variable "
                "LOCAL_SECRET"
            )
        old = settings.get("old.secrets") or os.environ.get("LOCAL_OLD_SECRETS") or ""
        self._keys = [_local_key(text) for text in (secret, *filter(None, str(old).split(",")))]

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


def _later(module: str, name: str) -> KmsDriver:
    """Return the driver of a module, which is imported on its first use: it may need an extra."""

    def driver(settings: Mapping[str, object], properties: Mapping[str, str]) -> Kms:
        try:
            make: KmsDriver = getattr(import_module(f"strata.serdes.encryption.{module}"), name)
        except ImportError as error:  # the message of MissingExtra names the extra
            raise CipherError(str(error)) from None
        return make(settings, properties)

    return driver


DRIVERS: Mapping[str, KmsDriver] = {
    "aws-kms": _later("aws_kms", "AwsKms"),
    "azure-kms": _later("azure_kms", "AzureKms"),
    "gcp-kms": _later("gcp_kms", "GcpKms"),
    "hcvault": _later("hcvault", "HcVault"),
    _LOCAL: LocalKms,
}
"""The drivers by `encrypt.kms.type`."""


def driver_of(kms_type: str, drivers: Mapping[str, KmsDriver]) -> KmsDriver:
    """Return the driver of a type.

    Raises:
        CipherError: If there is none.
    """
    driver = drivers.get(kms_type)
    if driver is None:
        raise CipherError(f"no driver for the KMS type {kms_type}; expected {', '.join(drivers)}")
    return driver


class Service:
    """The KMS of one KEK: it uses the id of its key and the alternate ones in turn, if the settings allow them.

    Args:
        kek: the KEK.
        settings: the executor's, from the user; they win over the KEK's properties.
        drivers: the drivers by KMS type.

    Raises:
        CipherError: If there is no driver, or it lacks settings.
    """

    def __init__(self, kek: Kek, settings: Mapping[str, object], drivers: Mapping[str, KmsDriver]) -> None:
        properties = dict(kek.properties)
        self._kms = driver_of(kek.kms_type, drivers)(settings, properties)
        self._kms_type, self._settings = kek.kms_type, settings
        others = str(settings.get(ALTERNATES) or properties.get(ALTERNATES) or "")
        self._key_ids = [kek.kms_key_id, *filter(None, (key_id.strip() for key_id in others.split(",")))]

    def wrap(self, material: bytes) -> bytes:
        """Encrypt a data key.

        Raises:
            CipherError: If no key id is allowed, or the KMS fails with each.
        """
        return self._first(self._kms.wrap, material)

    def unwrap(self, wrapped: bytes) -> bytes:
        """Decrypt a data key.

        Raises:
            CipherError: If no key id is allowed, or the KMS fails with each.
        """
        return self._first(self._kms.unwrap, wrapped)

    def check(self) -> None:
        """Check that the KEK's own key id may be used.

        Raises:
            CipherError: If it may not.
        """
        self._check(self._key_ids[0])

    def _check(self, key_id: str) -> None:
        if self._kms_type != _LOCAL:  # which ignores key ids
            check_key_id(self._kms_type, key_id, self._settings)

    def _first(self, call: Callable[[str, bytes], bytes], data: bytes) -> bytes:
        reasons = []
        for key_id in self._key_ids:
            try:
                self._check(key_id)
                return call(key_id, data)
            except CipherError as error:
                reasons.append(str(error))
        raise CipherError("; ".join(reasons))
