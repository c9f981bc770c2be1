"""The driver `aws-kms`: AWS KMS, by botocore.

A key id is the full ARN of a key or an alias, which names the region. AWS's ciphertext names key and backing version,
so that keys may be rotated.

Settings: `access.key.id` with `secret.access.key`, else `profile`, else what botocore finds. With `role.arn`, beside
which `role.session.name` and `role.external.id` count, these credentials assume the role. A role of the environment
(AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME, AWS_ROLE_EXTERNAL_ID) is assumed likewise, unless AWS_WEB_IDENTITY_TOKEN_FILE is
set: then botocore assumes it by that token. An explicit `role.arn` is assumed in either case, as by Confluent's client
for Java; the one for Python ignores it beside a web identity. `aws.kms.endpoint` is another address of the service, and
botocore's AWS_ENDPOINT_URL works too.

The permissions are kms:Encrypt and kms:Decrypt. Source: the API of AWS KMS.
"""

import os
import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from strata.imports import require
from strata.serdes.encryption.ciphers import CipherError
from strata.serdes.encryption.key_ids import check_endpoint

if TYPE_CHECKING:
    from botocore.client import BaseClient
    from botocore.session import Session

__all__ = ["AwsKms"]

require("kms-aws", "the KMS type aws-kms", "botocore")

_ARN = re.compile(r"arn:aws[a-z-]*:kms:([a-z0-9-]+):[0-9]+:(key|alias)/[A-Za-z0-9/_-]+")
_TIMEOUT_S = 10.0
_SESSION = "confluent-encrypt"


class AwsKms:
    """Wraps data keys with keys of AWS KMS.

    Args:
        settings: the user's; see above.
        properties: those of the KEK, from the registry; not used.

    Raises:
        CipherError: If there are no credentials, or a setting cannot be used.
    """

    def __init__(self, settings: Mapping[str, object], properties: Mapping[str, str]) -> None:  # noqa: ARG002 - as drivers are
        self._settings = settings
        endpoint = settings.get("aws.kms.endpoint")
        self._endpoint = None if endpoint is None else check_endpoint(str(endpoint), "aws.kms.endpoint")
        self._session: Session | None = None
        self._clients: dict[str, BaseClient] = {}
        self._lock = threading.Lock()

    def wrap(self, key_id: str, material: bytes) -> bytes:
        """Encrypt a data key.

        Raises:
            CipherError: If AWS refuses or does not answer.
        """
        return self._call(key_id, "encrypt", "CiphertextBlob", Plaintext=material)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """Decrypt a data key.

        Raises:
            CipherError: If the key did not wrap it, or AWS refuses or does not answer.
        """
        return self._call(key_id, "decrypt", "Plaintext", CiphertextBlob=wrapped)

    def _call(self, key_id: str, action: str, result: str, **more: bytes) -> bytes:
        from botocore.exceptions import BotoCoreError, ClientError

        arn = _ARN.fullmatch(key_id)
        if arn is None:
            raise CipherError(f"the key {key_id}: expected the full ARN of a key or an alias of AWS KMS")
        try:
            answer = getattr(self._client(arn[1]), action)(KeyId=key_id, EncryptionContext={}, **more)
        except ClientError as error:
            said = error.response.get("Error", {})
            raise CipherError(
                f"AWS KMS refused to {action} with {key_id}: {said.get('Code')} {said.get('Message')}"
            ) from None
        except BotoCoreError as error:
            raise CipherError(f"AWS KMS in {arn[1]} cannot be used: {error}") from None
        return bytes(answer[result])

    def _client(self, region: str) -> "BaseClient":
        from botocore.config import Config

        with self._lock:
            if region not in self._clients:
                if self._session is None:
                    self._session = _session(self._settings, region)
                config = Config(
                    connect_timeout=_TIMEOUT_S,
                    read_timeout=_TIMEOUT_S,
                    retries={"total_max_attempts": 3, "mode": "standard"},
                )
                self._clients[region] = self._session.create_client(
                    "kms", region_name=region, endpoint_url=self._endpoint, config=config
                )
            return self._clients[region]


def _session(settings: Mapping[str, object], region: str) -> "Session":
    """Return a session with the credentials of the settings."""
    from botocore.session import Session

    def setting(name: str) -> str | None:
        value = settings.get(name)
        return str(value) if value else None

    session = Session(profile=setting("profile"))
    key, secret = setting("access.key.id"), setting("secret.access.key")
    if key and secret:
        session.set_credentials(key, secret)
    role = setting("role.arn")
    if role is None and not os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        role = os.environ.get("AWS_ROLE_ARN")
    return session if not role else _assuming(session, role, settings, region)


def _assuming(session: "Session", role: str, settings: Mapping[str, object], region: str) -> "Session":
    """Return a session whose credentials are those of a role, assumed with those of another session, and renewed."""
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials
    from botocore.session import Session

    def create_client(service: str, **options: object) -> "BaseClient":
        return session.create_client(service, region_name=region, **options)

    source = session.get_credentials()
    if source is None:
        raise CipherError(f"aws-kms: there are no credentials to assume the role {role} with")
    name = settings.get("role.session.name") or os.environ.get("AWS_ROLE_SESSION_NAME") or _SESSION
    external = settings.get("role.external.id") or os.environ.get("AWS_ROLE_EXTERNAL_ID")
    fetcher = AssumeRoleCredentialFetcher(
        client_creator=create_client,
        source_credentials=source,
        role_arn=role,
        extra_args={"RoleSessionName": name, **({"ExternalId": external} if external else {})},
    )
    assumed = Session()
    assumed._credentials = DeferredRefreshableCredentials(refresh_using=fetcher.fetch_credentials, method="assume-role")
    return assumed
