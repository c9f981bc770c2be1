"""Hashes of passwords that cost next to nothing, where a test is not about their cost.

A hash of the registry's own takes 32 MiB and a tenth of a second, for each login that is not remembered.
"""

import hashlib

from strata.registry.features.access.passwords import PasswordHash

__all__ = ["cheap_hash"]


def cheap_hash(password: str) -> PasswordHash:
    """Return a hash of a password."""
    salt = b"salt" * 4
    digest = hashlib.scrypt(password.encode(), salt=salt, n=16, r=8, p=1, dklen=32)
    return PasswordHash("scrypt", salt, digest, log2_n=4, r=8, p=1)
