"""Password hashes: how they are written, read and compared.

New hashes are scrypt, in the PHC string format: `$scrypt$ln=15,r=8,p=1$SALT$HASH`. The four forms of Karapace's auth
file are read as well. Every comparison takes the same time whether or not the password is right.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

__all__ = ["MOST_PASSWORD_BYTES", "InvalidHash", "PasswordHash", "hash_password", "karapace_hash", "parse_hash"]

MOST_PASSWORD_BYTES = 1024
"""The longest password, as UTF-8."""

_LOG2_N, _R, _P = 15, 8, 1  # 32 MiB and some 100 ms
_SALT_BYTES, _HASH_BYTES = 16, 32
_MOST_MEMORY, _MOST_P = 128 << 20, 4  # a hash in a file decides how much memory and time a comparison takes
_LEAST_SALT, _LEAST_HASH = 8, 16  # a hash of a few bytes would match many passwords
_MOST_TEXT = 1024
_PBKDF2_ROUNDS = 5000
_FORM = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)")


class InvalidHash(ValueError):
    """A password hash that cannot be read; the message says what is expected, without the hash."""


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """The hash of one password.

    Attributes:
        algorithm: `scrypt`, or the digest of a PBKDF2 hash: `sha1`, `sha256` or `sha512`.
        salt: the salt.
        digest: the hash.
        log2_n: for scrypt, the binary logarithm of the cost.
        r: for scrypt, the block size.
        p: for scrypt, the parallelism.
    """

    algorithm: str
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)
    log2_n: int = _LOG2_N
    r: int = _R
    p: int = _P

    def matches(self, password: str) -> bool:
        """Return whether a password is the one of this hash; blocks for as long as hashing takes."""
        return hmac.compare_digest(self._digest_of(password), self.digest)

    def __str__(self) -> str:
        """Return an scrypt hash in the form that `parse_hash` reads."""
        salt, digest = (base64.b64encode(part).decode().rstrip("=") for part in (self.salt, self.digest))
        return f"$scrypt$ln={self.log2_n},r={self.r},p={self.p}${salt}${digest}"

    def _digest_of(self, password: str) -> bytes:
        data, size = password.encode(), len(self.digest)
        if self.algorithm != "scrypt":
            return hashlib.pbkdf2_hmac(self.algorithm, data, self.salt, _PBKDF2_ROUNDS, size)
        cost = 1 << self.log2_n
        most = 128 * self.r * (cost + self.p + 2)  # what OpenSSL needs; its own limit is 32 MiB
        return hashlib.scrypt(data, salt=self.salt, n=cost, r=self.r, p=self.p, maxmem=most, dklen=size)


def hash_password(password: str) -> PasswordHash:
    """Return a new hash of a password, with a random salt; blocks for as long as hashing takes."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return PasswordHash("scrypt", salt, PasswordHash("scrypt", salt, bytes(_HASH_BYTES))._digest_of(password))


def parse_hash(text: str) -> PasswordHash:
    """Return the hash of its text.

    Args:
        text: `$scrypt$ln=15,r=8,p=1$SALT$HASH`, with salt and hash in base64 without padding.

    Raises:
        InvalidHash: if it is not one, or would take too much memory to compare.
    """
    match = _FORM.fullmatch(text) if len(text) <= _MOST_TEXT else None
    if match is None:
        raise InvalidHash("expected $scrypt$ln=15,r=8,p=1$SALT$HASH, as `strata user add` writes it")
    log2_n, r, p = (int(number) for number in match.groups()[:3])
    if min(log2_n, r, p) < 1 or p > _MOST_P or 128 * r << log2_n > _MOST_MEMORY:
        raise InvalidHash(f"expected ln and r that take at most {_MOST_MEMORY} bytes, and p from 1 to {_MOST_P}")
    salt, digest = (_decoded(part + "=" * (-len(part) % 4)) for part in match.groups()[3:])
    if len(salt) < _LEAST_SALT or len(digest) < _LEAST_HASH:
        raise InvalidHash(f"expected a salt of at least {_LEAST_SALT} bytes and a hash of at least {_LEAST_HASH}")
    return PasswordHash("scrypt", salt, digest, log2_n, r, p)


def karapace_hash(algorithm: str, salt: str, text: str) -> PasswordHash:
    """Return the hash of a user in Karapace's auth file.

    PBKDF2 has 5000 rounds and the length of its digest; scrypt has n=16384, r=8, p=1 and 64 bytes
    (`src/karapace/core/auth.py` of Karapace 6).

    Args:
        algorithm: `sha1`, `sha256`, `sha512` or `scrypt`.
        salt: the salt, whose UTF-8 form counts.
        text: the hash in base64.

    Raises:
        InvalidHash: if it is not one.
    """
    sizes = {"sha1": 20, "sha256": 32, "sha512": 64, "scrypt": 64}
    if algorithm not in sizes:
        raise InvalidHash(f"expected one of the algorithms {', '.join(sizes)}, got {algorithm!r}")
    digest = _decoded(text)
    if len(digest) != sizes[algorithm]:
        raise InvalidHash(f"expected {sizes[algorithm]} bytes in base64 for {algorithm}, got {len(digest)}")
    return PasswordHash(algorithm, salt.encode(), digest, log2_n=14)


def _decoded(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True) if len(text) <= _MOST_TEXT else b""
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise InvalidHash("expected base64")
    return data
