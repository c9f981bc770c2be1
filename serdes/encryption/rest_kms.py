"""HTTP to a KMS: one JSON object out, one in, over `strata.http`, which follows no redirects and bounds answers.

Rules of this file: no error shows a token, a key or a ciphertext.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from strata.http.client import Client
from strata.http.errors import HttpFailure
from strata.http.settings import HttpSettings
from strata.serdes.encryption.ciphers import CipherError

__all__ = ["KmsRefusal", "RestKms", "bytes_of", "text_of"]

_TIMEOUT_S = 10.0
_RETRIES = 2
_MOST_BYTES = 1 << 20
_LONGEST_REASON = 300


class KmsRefusal(CipherError):
    """A KMS answered with an error.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class RestKms:
    """The HTTP API of one KMS, safe to share between threads.

    Args:
        name: the name of the service, for messages.
        base: its base URL.
        **files: `ca_file`, `cert_file` and `key_file` for https.

    Raises:
        CipherError: If a file cannot be used.
    """

    def __init__(self, name: str, base: str, **files: str | None) -> None:
        self.name = f"{name} at {base}"
        try:
            settings = HttpSettings(
                urls=(base,),
                timeout=_TIMEOUT_S,
                retries=_RETRIES,
                max_answer_bytes=_MOST_BYTES,
                **files,  # type: ignore[arg-type]
            )
            self._client = Client(settings, {"Accept": "application/json"})
        except ValueError as error:
            raise CipherError(f"{name}: {error}") from None

    def send(
        self, method: str, path: str, body: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Send a request and return the JSON object of the answer.

        Raises:
            KmsRefusal: If the service answers with an error.
            CipherError: If it does not answer, or with something else than a JSON object.
        """
        data = None if body is None else json.dumps(body).encode()
        more = {**(headers or {}), **({} if data is None else {"Content-Type": "application/json"})}
        try:
            answer = self._client.send(method, path, data, headers=more)
        except HttpFailure as error:
            raise CipherError(f"{self.name}: {error}") from None
        try:
            content = json.loads(answer.data) if answer.data else {}
        except (ValueError, RecursionError):
            content = None
        if not 200 <= answer.status < 300:
            raise KmsRefusal(answer.status, f"{self.name} answered {answer.status}: {_reason(content)}")
        if not isinstance(content, dict):
            raise CipherError(f"{self.name} did not answer with a JSON object")
        return content


def text_of(answer: Mapping[str, object], *path: str) -> str:
    """Return a text inside an answer.

    Raises:
        CipherError: If there is none.
    """
    value: object = answer
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, str) or not value:
        raise CipherError(f"the answer of the KMS has no {'.'.join(path)}")
    return value


def bytes_of(text: str, *, url_safe: bool = False) -> bytes:
    """Return the bytes of a base64 text.

    Raises:
        CipherError: If it is not base64.
    """
    try:
        if url_safe:
            return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise CipherError("the answer of the KMS is not base64") from None


def _reason(content: object) -> str:
    """Return what a service says about an error: Vault's list, or the message of Azure and Google."""
    if isinstance(content, dict):
        errors, error = content.get("errors"), content.get("error")
        if isinstance(errors, list):
            return "; ".join(map(str, errors))[:_LONGEST_REASON].replace("\n", " ")
        if isinstance(error, dict):
            code = error.get("status") or error.get("code")
            return f"{code}: {error.get('message')}"[:_LONGEST_REASON]
    return "no reason given"
