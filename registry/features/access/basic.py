"""Basic authentication: the name and password of a user of the auth file (RFC 7617).

Comparing a password takes some 100 ms and 32 MiB by design, so it runs in threads of its own, and few at a time.
"""

import asyncio
import base64
import binascii
from concurrent.futures import ThreadPoolExecutor

from strata.registry.core.rights.principal import Principal
from strata.registry.features.access.auth_file import AuthFile
from strata.registry.features.access.names import InvalidName, check_name
from strata.registry.features.access.passwords import MOST_PASSWORD_BYTES, PasswordHash, hash_password

__all__ = ["CHALLENGE", "InvalidPassword", "PasswordCheck", "parse_credentials"]

CHALLENGE = 'Basic realm="Strata", charset="UTF-8"'
_THREADS, _THREADS_FOR_KNOWN = 2, 1


class InvalidPassword(Exception):
    """Credentials that are malformed, or not those of a user; the message is for the service's own log."""


def parse_credentials(encoded: bytes) -> tuple[str, str]:
    """Return the name and the password of an `Authorization` header.

    Args:
        encoded: the header's value after `Basic `.

    Raises:
        InvalidPassword: if it is not a name and a password.
    """
    try:
        data = base64.b64decode(encoded, validate=True)
        name, colon, password = data.decode().partition(":")
        check_name(name)
    except (binascii.Error, UnicodeDecodeError, InvalidName):
        raise InvalidPassword("the Basic credentials are malformed") from None
    if not colon or len(data) > MOST_PASSWORD_BYTES:
        raise InvalidPassword("the Basic credentials are malformed")
    return name, password


class PasswordCheck:
    """Compares passwords with those of the auth file, off the event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="strata-passwords")
        self._known = ThreadPoolExecutor(_THREADS_FOR_KNOWN, thread_name_prefix="strata-known-passwords")
        self._decoy: PasswordHash | None = None

    async def principal(self, users: AuthFile, name: str, password: str, *, is_known: bool = False) -> Principal:
        """Return the principal of a name and password.

        An unknown name takes as long as a wrong password, so that names cannot be found out.

        Args:
            users: the users.
            name: the name.
            password: the password.
            is_known: whether the user has logged in from here lately, and does not wait behind those who have not.

        Raises:
            InvalidPassword: if there is no such user, or the password is wrong.
        """
        user = users.users.get(name)
        loop = asyncio.get_running_loop()
        matches = await loop.run_in_executor(
            self._known if is_known else self._threads, self._matches, user.password if user else None, users, password
        )
        if user is None or not matches:
            raise InvalidPassword(f"wrong password, or no such user: {name!r}")
        return Principal(user.name, user.groups, "basic")

    def close(self) -> None:
        """End the threads."""
        for threads in (self._threads, self._known):
            threads.shutdown(wait=False, cancel_futures=True)

    def _matches(self, own: PasswordHash | None, users: AuthFile, password: str) -> bool:
        if own is not None:
            return own.matches(password)
        self._stand_in(users).matches(password)
        return False

    def _stand_in(self, users: AuthFile) -> PasswordHash:
        """Return a hash that costs what that of most users costs."""
        some = next(iter(users.users.values()), None)
        if some is not None:
            return some.password
        self._decoy = self._decoy or hash_password("")
        return self._decoy
