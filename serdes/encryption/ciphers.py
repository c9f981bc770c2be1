"""The ciphers of data keys, and the encoding of key material: bytes in, bytes out.

Key material is what Tink writes for a key: a protobuf message with the key as its only field (the version, 0, is left
out). A ciphertext is what Tink writes without a prefix: nonce, text and tag for GCM, synthetic nonce and text for SIV.
There is no associated data, which is one empty component for SIV (RFC 5297).

Rules of this file: no error shows a byte of its input.
"""

import os
from abc import ABC, abstractmethod
from binascii import b2a_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import urandom

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV

__all__ = ["ALGORITHMS", "Cipher", "CipherError", "Gcm", "cipher_of", "new_material"]

_NONCE = 12
_NONCES = 256
_TAG = 16
_NO_DATA = [b""]


class CipherError(ValueError):
    """The bytes are not a ciphertext of this key, or a key cannot be used."""


class Cipher(ABC):
    """A cipher with one key."""

    @abstractmethod
    def encrypt(self, plain: bytes) -> bytes:
        """Return the ciphertext."""

    def encrypt_text(self, text: str) -> str:
        """Return the ciphertext of a text in base64."""
        return b2a_base64(self.encrypt(text.encode()), newline=False).decode()

    @abstractmethod
    def decrypt(self, ciphertext: bytes) -> bytes:
        """Return the plaintext.

        Raises:
            CipherError: If another key wrote the ciphertext, or it was changed.
        """


_nonces: list[bytes] = []
"""Random nonces that no value has yet: a system call for each of them costs more than the cipher."""


def _more_nonces() -> bytes:
    """Fetch nonces for many values, and return one of them."""
    block = urandom(_NONCE * _NONCES)
    first, *others = (block[start : start + _NONCE] for start in range(0, len(block), _NONCE))
    _nonces.extend(others)
    return first


if hasattr(os, "register_at_fork"):  # a nonce must not occur in two processes
    os.register_at_fork(after_in_child=_nonces.clear)


class Gcm(Cipher):
    """AES-GCM with a random nonce in front: equal plaintexts give different ciphertexts.

    Args:
        key: 16 or 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._aes = AESGCM(key)
        self._seal = self._aes.encrypt

    def encrypt(self, plain: bytes) -> bytes:
        """Return nonce, text and tag."""
        try:
            nonce = _nonces.pop()
        except IndexError:
            nonce = _more_nonces()
        return nonce + self._seal(nonce, plain, None)

    def encrypt_text(self, text: str) -> str:
        """Return nonce, text and tag in base64: `encrypt` written out, since calls take as long as the cipher."""
        try:
            nonce = _nonces.pop()
        except IndexError:
            nonce = _more_nonces()
        return b2a_base64(nonce + self._seal(nonce, text.encode(), None), newline=False).decode()

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Return the plaintext.

        Raises:
            CipherError: If another key wrote the ciphertext, or it was changed.
        """
        return _opened(
            ciphertext, _NONCE + _TAG, lambda: self._aes.decrypt(ciphertext[:_NONCE], ciphertext[_NONCE:], None)
        )


class Siv(Cipher):
    """AES-SIV, deterministic: equal plaintexts give equal ciphertexts under one key, so they can be searched for.

    Args:
        key: 64 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._aes = AESSIV(key)

    def encrypt(self, plain: bytes) -> bytes:
        """Return synthetic nonce and text."""
        return self._aes.encrypt(plain, _NO_DATA)

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Return the plaintext.

        Raises:
            CipherError: If another key wrote the ciphertext, or it was changed.
        """
        return _opened(ciphertext, _TAG, lambda: self._aes.decrypt(ciphertext, _NO_DATA))


def _opened(ciphertext: bytes, least: int, decrypt: Callable[[], bytes]) -> bytes:
    if len(ciphertext) < least:
        raise CipherError("the ciphertext is too short")
    try:
        return decrypt()
    except InvalidTag:
        raise CipherError("the ciphertext was changed, or encrypted with another key") from None


@dataclass(frozen=True, slots=True)
class _Algorithm:
    front: bytes  # the protobuf tag of the key's field and its length
    length: int
    cipher: Callable[[bytes], Cipher]


ALGORITHMS: Mapping[str, _Algorithm] = {
    "AES128_GCM": _Algorithm(b"\x1a\x10", 16, Gcm),  # AesGcmKey: key_value is field 3
    "AES256_GCM": _Algorithm(b"\x1a\x20", 32, Gcm),
    "AES256_SIV": _Algorithm(b"\x12\x40", 64, Siv),  # AesSivKey: key_value is field 2
}
"""The values of `encrypt.dek.algorithm`."""


def new_material(algorithm: str) -> bytes:
    """Return the material of a new random key.

    Args:
        algorithm: a key of `ALGORITHMS`.
    """
    cipher = ALGORITHMS[algorithm]
    return cipher.front + urandom(cipher.length)


def cipher_of(algorithm: str, material: bytes) -> Cipher:
    """Return the cipher for some key material.

    Args:
        algorithm: a key of `ALGORITHMS`.
        material: the key as Tink writes it.

    Raises:
        CipherError: If the material is not a key of this algorithm.
    """
    cipher = ALGORITHMS[algorithm]
    key = material.removeprefix(cipher.front)
    if not material.startswith(cipher.front) or len(key) != cipher.length:
        raise CipherError(f"the data key is not a key of {algorithm}")
    return cipher.cipher(key)
