"""Encrypts one text with AES-256-GCM; apart, because a node without exporters starts without cryptography."""

import base64
import hashlib
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["Sealing"]

_PURPOSE = b"strata exporter credentials 1"
_MARK = "AES256_GCM:"
_NONCE = 12


class Sealing:
    """Encrypts texts, each for one place.

    Args:
        secret: what the key is made from.
    """

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(hashlib.sha256(_PURPOSE + secret).digest())

    def seal(self, text: str, place: bytes) -> str:
        """Return a text encrypted for a place."""
        nonce = secrets.token_bytes(_NONCE)
        return _MARK + base64.b64encode(nonce + self._cipher.encrypt(nonce, text.encode(), place)).decode()

    def open(self, sealed: str, place: bytes) -> str | None:
        """Return an encrypted text; None if it was encrypted with another secret or for another place."""
        try:
            data = base64.b64decode(sealed.removeprefix(_MARK), validate=True)
            return self._cipher.decrypt(data[:_NONCE], data[_NONCE:], place).decode()
        except (ValueError, InvalidTag):
            return None
