"""The driver `azure-kms`: RSA keys of Azure Key Vault, by its REST API; azure-identity finds the credentials.

A key id is `https://VAULT.vault.azure.net/keys/NAME[/VERSION]`. A block of RSA does not name the version of its key. So
a wrapped key begins with `azure:v1:VERSION:`, as Confluent's clients of 2026 write it with the setting
`encrypt.azure.key.version.save`; "false" leaves it out, for older readers. A wrapped key without it is decrypted with
the version of the key id or the newest one, then with the others, newest first.

Settings: `tenant.id`, `client.id` and `client.secret`; without them azure-identity's default chain.

The permissions are keys/encrypt and keys/decrypt, and keys/list for wrapped keys without a version. Source: the REST
API 7.4 of Key Vault.
"""

import base64
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from strata.imports import require
from strata.serdes.encryption.ciphers import CipherError
from strata.serdes.encryption.key_ids import azure_domain
from strata.serdes.encryption.rest_kms import KmsRefusal, RestKms, bytes_of, text_of

__all__ = ["AzureKms"]

require("kms-azure", "the KMS type azure-kms", "azure.identity")

SAVE_VERSION = "encrypt.azure.key.version.save"
_KEY = re.compile(r"/keys/([A-Za-z0-9-]{1,127})(?:/([0-9a-f]{32}))?")
_FRONT = b"azure:v1:"
_SAVED = re.compile(rb"azure:v1:([0-9a-f]{32}):(.+)", re.DOTALL)
_API = "api-version=7.4"
_ALGORITHM = "RSA-OAEP-256"
_BAD_PARAMETER = 400
_MOST_VERSIONS = 100

Credential = Any
"""A credential of azure-identity: it has `get_token(scope)`, which caches."""


class AzureKms:
    """Wraps data keys with keys of Azure Key Vault.

    Args:
        settings: the user's; see above.
        properties: those of the KEK, from the registry: whether to save the version, if the user does not say.
        credential: makes the credential.

    Raises:
        CipherError: If a setting cannot be used.
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        properties: Mapping[str, str],
        *,
        credential: Callable[[Mapping[str, Any]], Credential] | None = None,
    ) -> None:
        self._settings = settings
        saves = settings.get(SAVE_VERSION, properties.get(SAVE_VERSION, "true"))
        self._saves = str(saves).lower() != "false"
        self._credential = (credential or _credential)(settings)
        self._lock = threading.Lock()
        self._services: dict[str, RestKms] = {}

    def wrap(self, key_id: str, material: bytes) -> bytes:
        """Encrypt a data key.

        Raises:
            CipherError: If Azure refuses or does not answer.
        """
        service, name, version = self._place(key_id)
        value = base64.urlsafe_b64encode(material).rstrip(b"=").decode()
        answer = self._use(service, name, version, "encrypt", value)
        block = bytes_of(text_of(answer, "value"), url_safe=True)
        if not self._saves:
            return block
        used = text_of(answer, "kid").rpartition("/")[2]
        if not re.fullmatch(r"[0-9a-f]{32}", used):
            raise CipherError(f"the answer of {key_id} does not name the version of the key")
        return _FRONT + used.encode() + b":" + block

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """Decrypt a data key.

        Raises:
            CipherError: If the key did not wrap it, or Azure refuses or does not answer.
        """
        service, name, version = self._place(key_id)
        saved = _SAVED.fullmatch(wrapped)
        if saved is not None:
            return self._opened(service, name, saved[1].decode(), saved[2])
        if wrapped.startswith(_FRONT):  # what follows would become a part of a URL
            raise CipherError("the wrapped data key names a version that is not one of Azure Key Vault")
        try:
            return self._opened(service, name, version, wrapped)
        except KmsRefusal as refusal:
            if refusal.status != _BAD_PARAMETER:
                raise
            for other in self._versions(service, name):
                try:
                    return self._opened(service, name, other, wrapped)
                except KmsRefusal:
                    continue
            raise

    def _place(self, key_id: str) -> tuple[RestKms, str, str]:
        """Return the vault of a key, its name, and its version, empty for the newest one."""
        parts = urlsplit(key_id)
        key = _KEY.fullmatch(parts.path)
        if key is None:
            raise CipherError(f"the key {key_id}: expected https://VAULT.vault.azure.net/keys/NAME[/VERSION]")
        base = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            service = self._services.get(base) or self._services.setdefault(base, RestKms("Azure Key Vault", base))
        return service, key[1], key[2] or ""

    def _opened(self, service: RestKms, name: str, version: str, block: bytes) -> bytes:
        value = base64.urlsafe_b64encode(block).rstrip(b"=").decode()
        return bytes_of(text_of(self._use(service, name, version, "decrypt", value), "value"), url_safe=True)

    def _use(self, service: RestKms, name: str, version: str, action: str, value: str) -> dict[str, object]:
        # Azure takes an empty version as the newest one, as its SDKs send it.
        return self._send(
            service, "POST", f"/keys/{name}/{version}/{action}?{_API}", {"alg": _ALGORITHM, "value": value}
        )

    def _versions(self, service: RestKms, name: str) -> Iterator[str]:
        """Yield the versions of a key, newest first."""
        versions: list[tuple[int, str]] = []
        path = f"/keys/{name}/versions?{_API}"
        for _ in range(_MOST_VERSIONS):
            page = self._send(service, "GET", path, None)
            for item in page.get("value") or ():
                version = str(item.get("kid", "")).rpartition("/")[2]
                if re.fullmatch(r"[0-9a-f]{32}", version):
                    versions.append((int((item.get("attributes") or {}).get("created") or 0), version))
            following = urlsplit(str(page.get("nextLink") or ""))
            if not following.path.startswith("/keys/") or len(versions) >= _MOST_VERSIONS:
                break
            path = f"{following.path}?{following.query}"  # of this vault, whatever host it names
        return iter([version for _, version in sorted(versions, reverse=True)][:_MOST_VERSIONS])

    def _send(self, service: RestKms, method: str, path: str, body: Mapping[str, str] | None) -> dict[str, Any]:
        from azure.core.exceptions import AzureError

        service_type = "managedhsm" if ".managedhsm." in service.name else "vault"
        try:
            token = self._credential.get_token(f"https://{service_type}.{azure_domain()}/.default").token
        except AzureError as error:
            raise CipherError(f"Azure Key Vault: there are no usable credentials: {error}") from None
        return service.send(method, path, body, {"Authorization": f"Bearer {token}"})


def _credential(settings: Mapping[str, object]) -> Credential:
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    tenant, client, secret = (settings.get(name) for name in ("tenant.id", "client.id", "client.secret"))
    if tenant and client and secret:
        return ClientSecretCredential(str(tenant), str(client), str(secret))
    return DefaultAzureCredential()
