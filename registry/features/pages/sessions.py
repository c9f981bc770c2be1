"""Sessions of people in a browser: a signed cookie that says who they are, for the pages and for nothing else.

The server keeps nothing: every worker and, with `--node-secret`, every node reads the same cookie. A session of a user
of the auth file ends when the user is removed or gets another password, and has the user's present groups. Any other
session keeps the groups of its sign-in until it ends.

A form is accepted only with a token that belongs to the session, so another site cannot send it for the person.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, NamedTuple

from strata.registry.core.errors import RegistryError
from strata.registry.core.rights.authentication import Authenticator, KnownUser, KnownUsers
from strata.registry.core.rights.principal import ANONYMOUS, Principal
from strata.registry.http.asgi import Scope
from strata.registry.http.page_paths import PAGES, is_page

__all__ = ["COOKIE", "Session", "SessionAuthenticator", "Sessions", "TooManyGroups", "cookie_of"]

COOKIE = "strata_session"
_ALGORITHM = "HS256"
_PAGES = PAGES.encode()
_LONGEST = 3_800  # bytes; browsers keep cookies of 4096 with their names and attributes


class TooManyGroups(Exception):
    """A principal whose groups do not fit into a cookie."""


class Session(NamedTuple):
    """A session: its number, and who the person is; `ANONYMOUS` before the sign-in."""

    number: str
    principal: Principal


class Sessions:
    """Makes and reads the cookies of sessions.

    Args:
        secret: the secret of the node or of all nodes.
        users: returns the users of the auth file.
        seconds: how long a session lasts.
    """

    def __init__(self, secret: bytes, users: KnownUsers, seconds: float) -> None:
        self._key = hmac.digest(secret, b"strata: sessions of the pages", "sha256")
        self._users, self.seconds = users, seconds

    def begin(self, principal: Principal = ANONYMOUS) -> tuple[Session, str]:
        """Return a new session and its cookie.

        Raises:
            TooManyGroups: if the groups do not fit into a cookie.
        """
        number = secrets.token_urlsafe(16)
        content: dict[str, object] = {"number": number}
        if principal.user is not None:
            content |= {"user": principal.user, "mechanism": principal.mechanism}
            user = self._user(principal)
            content |= {"password": self._mark(user)} if user else {"groups": sorted(principal.groups)}
        cookie = self.sign(content, self.seconds)
        if len(cookie) > _LONGEST:
            raise TooManyGroups
        return Session(number, principal), cookie

    def read(self, headers: Mapping[bytes, bytes]) -> Session | None:
        """Return the session of a request; None if it has none, or one that has ended."""
        content = self.verify(cookie_of(headers, COOKIE))
        if not content or not isinstance(content.get("number"), str):
            return None
        principal = self._principal(content)
        return Session(content["number"], principal) if principal else None

    def form_token(self, session: Session) -> str:
        """Return the token that forms of a session send."""
        return hmac.digest(self._key, f"form {session.number} {session.principal.user}".encode(), "sha256").hex()

    def accepts(self, session: Session, token: str) -> bool:
        """Return whether a token belongs to a session."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode(errors="replace"))

    def sign(self, content: Mapping[str, object], seconds: float) -> str:
        """Return a cookie that holds some content, and is valid for some seconds."""
        import jwt

        return jwt.encode({**content, "exp": int(time.time() + seconds)}, self._key, _ALGORITHM)

    def verify(self, cookie: str) -> dict[str, Any]:
        """Return the content of a cookie; nothing if it is not ours, or has ended."""
        import jwt

        try:
            return jwt.decode(cookie, self._key, [_ALGORITHM], options={"require": ["exp"]}) if cookie else {}
        except (jwt.PyJWTError, ValueError):
            return {}

    def _principal(self, content: Mapping[str, Any]) -> Principal | None:
        if "user" not in content:
            return ANONYMOUS
        name, mechanism = content["user"], content["mechanism"]
        if "password" not in content:
            return Principal(name, frozenset(content["groups"]), mechanism)
        user = self._users(name)
        if user is None or not hmac.compare_digest(self._mark(user), content["password"]):
            return None
        return Principal(name, user.groups, mechanism)

    def _user(self, principal: Principal) -> KnownUser | None:
        return self._users(principal.user or "") if principal.mechanism == "basic" else None

    def _mark(self, user: KnownUser) -> str:
        """Return a text that changes with the password of a user, and says nothing about it."""
        return hmac.new(self._key, user.password.salt + user.password.digest, hashlib.sha256).hexdigest()


class SessionAuthenticator:
    """Says who sends a request: for a page the person of its session, if it has one; else as another authenticator.

    Args:
        inner: the other authenticator.
        sessions: the sessions.
    """

    def __init__(self, inner: Authenticator, sessions: Sessions) -> None:
        self._inner, self._sessions = inner, sessions

    async def authenticate(self, scope: Scope) -> Principal:
        """Return who sends a request; see `Authenticator`."""
        if scope["raw_path"].startswith(_PAGES) and is_page(scope["raw_path"].decode("latin-1")):
            headers = dict(scope["headers"])
            session = self._sessions.read(headers) if b"authorization" not in headers else None
            if session is not None and session.principal.user is not None:
                return session.principal
        return await self._inner.authenticate(scope)

    def address(self, scope: MutableMapping[str, object]) -> str:
        """Return the address of the client; empty if it is unknown."""
        return self._inner.address(scope)

    def unauthorized(self) -> RegistryError:
        """Return the error for an anonymous client."""
        return self._inner.unauthorized()


def cookie_of(headers: Mapping[bytes, bytes], name: str) -> str:
    """Return the value of a cookie of a request; empty if it has none."""
    try:
        cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(name)
    except CookieError:
        return ""
    return cookie.value if cookie else ""
