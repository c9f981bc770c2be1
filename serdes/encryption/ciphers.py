"""The ciphers of data keys, and the form of their material: pure, bytes in and bytes out.

The material of a key is what Tink writes for it, a protobuf message of one field that holds the key (its version, 0, is
left out); a ciphertext is what Tink writes without a prefix: for GCM nonce, text and tag, for SIV the synthetic nonce
and the text. No associated data is given, which for SIV is one empty component (RFC 5297).

Rules of this file: no error shows a byte of what it is about.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

__all__ = ["ALGORITHMS", "Cipher", "CipherError", "Gcm", "cipher_of", "new_material"]

_NONCE = 12
_TAG = 16
_NO_DATA = [b""]


class CipherError(ValueError):
    """Bytes that are no ciphertext of this key, or a key that is none."""


class Cipher(Protocol):
    """One key."""

    def encrypt(self, plain: bytes) -> bytes:
        """The ciphertext."""

    def decrypt(self, ciphertext: bytes) -> bytes:
        """The plaintext; CipherError if another key wrote it, or it was changed."""


class Gcm:
    """AES-GCM with a random nonce in front: the same text never looks the same."""

    def __init__(self, key: bytes) -> None:
        self._aes = AESGCM(key)

    def encrypt(self, plain: bytes) -> bytes:
        """Nonce, text, tag."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aes.encrypt(nonce, plain, None)

    def decrypt(self, ciphertext: bytes) -> bytes:
        """The plaintext, or CipherError."""
        if len(ciphertext) < _NONCE + _TAG:
            raise CipherError("it is too short to be a ciphertext")
        try:
            return self._aes.decrypt(ciphertext[:_NONCE], ciphertext[_NONCE:], None)
        except InvalidTag:
            raise CipherError("another key wrote it, or it was changed") from None


class Siv:
    """AES-SIV, deterministic: the same text looks the same under the same key, and so can be looked for."""

    def __init__(self, key: bytes) -> None:
        self._aes = AESSIV(key)

    def encrypt(self, plain: bytes) -> bytes:
        """Synthetic nonce, text."""
        return self._aes.encrypt(plain, _NO_DATA)

    def decrypt(self, ciphertext: bytes) -> bytes:
        """The plaintext, or CipherError."""
        if len(ciphertext) < _TAG:
            raise CipherError("it is too short to be a ciphertext")
        try:
            return self._aes.decrypt(ciphertext, _NO_DATA)
        except InvalidTag:
            raise CipherError("another key wrote it, or it was changed") from None


@dataclass(frozen=True, slots=True)
class _Algorithm:
    front: bytes  # the protobuf tag of the key's field, and its length
    length: int
    cipher: Callable[[bytes], Cipher]


ALGORITHMS: Mapping[str, _Algorithm] = {
    "AES128_GCM": _Algorithm(b"\x1a\x10", 16, Gcm),  # AesGcmKey: key_value is field 3
    "AES256_GCM": _Algorithm(b"\x1a\x20", 32, Gcm),
    "AES256_SIV": _Algorithm(b"\x12\x40", 64, Siv),  # AesSivKey: key_value is field 2
}
"""The names of `encrypt.dek.algorithm`."""


def new_material(algorithm: str) -> bytes:
    """The material of a new random key."""
    kind = ALGORITHMS[algorithm]
    return kind.front + os.urandom(kind.length)


def cipher_of(algorithm: str, material: bytes) -> Cipher:
    """The key in some material; CipherError if that is not of this algorithm."""
    kind = ALGORITHMS[algorithm]
    key = material.removeprefix(kind.front)
    if not material.startswith(kind.front) or len(key) != kind.length:
        raise CipherError(f"the data key is not one of {algorithm}")
    return kind.cipher(key)
