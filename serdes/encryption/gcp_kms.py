"""The driver `gcp-kms`: Google Cloud KMS, by its REST API; google-auth finds the credentials.

A key id is `projects/P/locations/L/keyRings/R/cryptoKeys/K`. Google's ciphertext names the version of the key, so that
keys may be rotated; a key id with a version wraps with that version.

Settings: `account.type` (`service_account`), `client.id`, `client.email`, `private.key.id`, `private.key` (PEM, whose
line ends may be written as two characters) and `token.uri`; without them Application Default Credentials.
`gcp.kms.endpoint` is another address of the service.

The permissions are cryptoKeyVersions.useToEncrypt and useToDecrypt. Source: the REST API v1 of Cloud KMS.
"""

import base64
import re
import threading
from collections.abc import Mapping
from typing import Any

from strata.imports import require
from strata.serdes.encryption.ciphers import CipherError
from strata.serdes.encryption.key_ids import check_endpoint
from strata.serdes.encryption.rest_kms import KmsRefusal, RestKms, bytes_of, text_of

__all__ = ["GcpKms"]

require("kms-gcp", "the KMS type gcp-kms", "google.auth")

_KEY = re.compile(r"(projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+)(/cryptoKeyVersions/\d+)?")
_NAME = re.compile(r"[A-Za-z0-9_.:/-]+")
_ENDPOINT = "https://cloudkms.googleapis.com"
_SCOPES = ["https://www.googleapis.com/auth/cloudkms"]
_TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
_ACCOUNT = ("client.id", "client.email", "private.key.id", "private.key")
_UNAUTHORIZED = 401


class GcpKms:
    """Wraps data keys with keys of Google Cloud KMS.

    Args:
        settings: the user's; see above.
        properties: those of the KEK, from the registry; not used.

    Raises:
        CipherError: If a setting cannot be used.
    """

    def __init__(self, settings: Mapping[str, object], properties: Mapping[str, str]) -> None:  # noqa: ARG002 - as drivers are
        self._settings = settings
        endpoint = settings.get("gcp.kms.endpoint")
        self._service = RestKms(
            "Google Cloud KMS", _ENDPOINT if endpoint is None else check_endpoint(str(endpoint), "gcp.kms.endpoint")
        )
        self._lock = threading.Lock()
        self._credentials: Any = None

    def wrap(self, key_id: str, material: bytes) -> bytes:
        """Encrypt a data key.

        Raises:
            CipherError: If Google refuses or does not answer.
        """
        body = {"plaintext": base64.b64encode(material).decode()}
        return bytes_of(text_of(self._send(f"/v1/{self._name(key_id)[0]}:encrypt", body), "ciphertext"))

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """Decrypt a data key.

        Raises:
            CipherError: If the key did not wrap it, or Google refuses or does not answer.
        """
        body = {"ciphertext": base64.b64encode(wrapped).decode()}
        return bytes_of(text_of(self._send(f"/v1/{self._name(key_id)[1]}:decrypt", body), "plaintext"))

    def _name(self, key_id: str) -> tuple[str, str]:
        """Return a key id with its version, if any, and without."""
        key = _KEY.fullmatch(key_id)
        if key is None or not _NAME.fullmatch(key_id) or "/../" in key_id or "/./" in key_id:
            raise CipherError(f"the key {key_id}: expected projects/P/locations/L/keyRings/R/cryptoKeys/K")
        return key[0], key[1]

    def _send(self, path: str, body: Mapping[str, str]) -> dict[str, object]:
        try:
            return self._service.send("POST", path, body, self._authorization(again=False))
        except KmsRefusal as refusal:
            if refusal.status != _UNAUTHORIZED:
                raise
        return self._service.send("POST", path, body, self._authorization(again=True))

    def _authorization(self, *, again: bool) -> dict[str, str]:
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport import urllib3 as transport
        from urllib3 import PoolManager

        with self._lock:  # one thread gets a token for all
            try:
                if self._credentials is None:
                    self._credentials = _credentials(self._settings)
                if again or not self._credentials.valid:
                    made: Any = transport  # has no types
                    self._credentials.refresh(made.Request(PoolManager()))
            except GoogleAuthError as error:
                raise CipherError(f"Google Cloud KMS: there are no usable credentials: {error}") from None
            return {"Authorization": f"Bearer {self._credentials.token}"}


def _credentials(settings: Mapping[str, object]) -> object:
    account = {name: settings.get(name) for name in _ACCOUNT}
    account_type = settings.get("account.type") or "service_account"
    if account_type != "service_account":
        raise CipherError(f"account.type: expected service_account, got {account_type}")
    if not all(account.values()):
        import google.auth

        return google.auth.default(scopes=_SCOPES)[0]
    from google.oauth2 import service_account

    info = {
        "type": "service_account",
        "client_id": account["client.id"],
        "client_email": account["client.email"],
        "private_key_id": account["private.key.id"],
        "private_key": str(account["private.key"]).replace("\\n", "\n"),
        "token_uri": check_endpoint(str(settings.get("token.uri") or _TOKEN_URI), "token.uri"),
    }
    made: Any = service_account.Credentials  # has no types
    try:
        return made.from_service_account_info(info, scopes=_SCOPES)
    except ValueError:
        raise CipherError("private.key: expected a private key in PEM") from None
