"""The driver `hcvault`: the transit engine of HashiCorp Vault and OpenBao.

A key id is `https://HOST:PORT/MOUNT/keys/NAME`; the address is the key id's (see `key_ids`). A wrapped
key is the text `vault:vN:BASE64`, which names the version of the key, so that keys may be rotated.

Settings, else environment variables: `token.id` (VAULT_TOKEN); `approle.role.id` and `approle.secret.id`
(VAULT_APPROLE_ROLE_ID, VAULT_APPROLE_SECRET_ID), which win over a token and log in at the mount `approle`; `namespace`
(VAULT_NAMESPACE), else that of the KEK's properties; `ssl.ca.location` (VAULT_CACERT), `ssl.certificate.location`
(VAULT_CLIENT_CERT), `ssl.key.location` (VAULT_CLIENT_KEY).

Vault creates a key that does not exist if the policy allows `create`: grant `update` alone.

hvac is not used: it follows redirects, with the token, and bounds no answer.

Source: Vault's API for the transit engine and for AppRole.
"""

import base64
import os
import threading
import time
from collections.abc import Mapping

from strata.serdes.encryption.ciphers import CipherError
from strata.serdes.encryption.key_ids import vault_of
from strata.serdes.encryption.rest_kms import KmsRefusal, RestKms, bytes_of, text_of

__all__ = ["HcVault"]

_FORBIDDEN = 403
_RENEWED_AT = 0.8
"""The share of its lease after which a token is replaced."""

_FRONT = "vault:v"


def _setting(settings: Mapping[str, object], name: str, variable: str) -> str | None:
    value = settings.get(name)
    return str(value) if value else os.environ.get(variable) or None


class HcVault:
    """Wraps data keys with keys of a transit engine.

    Args:
        settings: the user's; see above.
        properties: those of the KEK, from the registry: `namespace`, if the user has set none.

    Raises:
        CipherError: If there are no credentials.
    """

    def __init__(self, settings: Mapping[str, object], properties: Mapping[str, str]) -> None:
        self._settings = settings
        self._token = _setting(settings, "token.id", "VAULT_TOKEN")
        self._role = _setting(settings, "approle.role.id", "VAULT_APPROLE_ROLE_ID")
        self._secret = _setting(settings, "approle.secret.id", "VAULT_APPROLE_SECRET_ID")
        if not (self._role and self._secret) and not self._token:
            raise CipherError(
                "hcvault needs the setting rule.executors._default_.param.token.id, or approle.role.id and "
                "approle.secret.id"
            )
        namespace = _setting(settings, "namespace", "VAULT_NAMESPACE") or properties.get("namespace")
        self._headers = {"X-Vault-Request": "true"} | ({"X-Vault-Namespace": namespace} if namespace else {})
        self._lock = threading.Lock()
        self._services: dict[str, RestKms] = {}
        self._logins: dict[str, tuple[str, float]] = {}

    def wrap(self, key_id: str, material: bytes) -> bytes:
        """Encrypt a data key with the newest version of a key.

        Raises:
            CipherError: If Vault refuses or does not answer.
        """
        answer = self._send("encrypt", key_id, {"plaintext": base64.b64encode(material).decode()})
        text = text_of(answer, "data", "ciphertext")
        if not text.startswith(_FRONT):
            raise CipherError(f"the answer of {key_id} is not a ciphertext of Vault")
        return text.encode()

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """Decrypt a data key.

        Raises:
            CipherError: If the key did not wrap it, or Vault refuses or does not answer.
        """
        if not wrapped.startswith(_FRONT.encode()) or not wrapped.isascii():
            raise CipherError("the wrapped data key is not a ciphertext of Vault")
        return bytes_of(text_of(self._send("decrypt", key_id, {"ciphertext": wrapped.decode()}), "data", "plaintext"))

    def _send(self, action: str, key_id: str, body: Mapping[str, str]) -> dict[str, object]:
        base, mount, name = vault_of(key_id)
        with self._lock:
            if base not in self._services:
                self._services[base] = RestKms(
                    "Vault",
                    base,
                    ca_file=_setting(self._settings, "ssl.ca.location", "VAULT_CACERT"),
                    cert_file=_setting(self._settings, "ssl.certificate.location", "VAULT_CLIENT_CERT"),
                    key_file=_setting(self._settings, "ssl.key.location", "VAULT_CLIENT_KEY"),
                )
            service = self._services[base]
        path, token = f"/v1/{mount}/{action}/{name}", self._token_for(base, service)
        try:
            return service.send("POST", path, body, {**self._headers, "X-Vault-Token": token})
        except KmsRefusal as refusal:
            if refusal.status != _FORBIDDEN or self._role is None:
                raise
        # The lease may have ended or the token may have been revoked: log in again, once.
        token = self._token_for(base, service, refused=token)
        return service.send("POST", path, body, {**self._headers, "X-Vault-Token": token})

    def _token_for(self, base: str, service: RestKms, *, refused: str | None = None) -> str:
        if not (self._role and self._secret):
            return self._token or ""
        with self._lock:  # one thread logs in for all
            token, until = self._logins.get(base, ("", 0.0))
            if token and token != refused and time.monotonic() < until:
                return token
            body = {"role_id": self._role, "secret_id": self._secret}
            answer = service.send("POST", "/v1/auth/approle/login", body, self._headers)
            token, lease = text_of(answer, "auth", "client_token"), answer["auth"].get("lease_duration")
            life = lease if isinstance(lease, int) and lease > 0 else float("inf")
            self._logins[base] = token, time.monotonic() + _RENEWED_AT * life
            return token
