"""Finds out who sends a request, by the mechanisms that the settings switch on.

| the request has | mechanism |
| --- | --- |
| `Authorization: Basic` or `Bearer`, and that one is on | it; if the credentials are invalid, the answer is 401 |
| a user named by a trusted proxy | proxy |
| `Authorization` of another kind | the answer is 401 |
| a client certificate, and mTLS is on | mTLS; if it names no user, the answer is 401 |
| none of these | the principal is `Anonymous` |

Valid credentials are remembered until they are not used for five minutes (`remembered.py`). They are checked again when
the auth file or the keys of the identity provider change, and when a token or certificate ends.

Checks of passwords wait in two queues: one for users who have logged in from their address lately, and one for all
others, which guesses may fill.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from strata.registry.core import errors
from strata.registry.core.errors import RegistryError, TooManyRequests, Unauthorized
from strata.registry.core.rights.principal import ANONYMOUS, Principal
from strata.registry.features.access.auth_file import AuthFile
from strata.registry.features.access.basic import CHALLENGE, InvalidPassword, PasswordCheck, parse_credentials
from strata.registry.features.access.identity_keys import Fetch, KeysUnavailable, ProviderKeys, UnknownKey, fetch_json
from strata.registry.features.access.options import IdentityOptions, OidcOptions
from strata.registry.features.access.proxy import InvalidProxyHeader
from strata.registry.features.access.throttle import Throttle
from strata.registry.features.access.watched_file import WatchedFile
from strata.registry.http.asgi import Scope
from strata.registry.node.buckets import Buckets

if TYPE_CHECKING:
    from strata.registry.features.access.bearer import TokenCheck
    from strata.registry.features.access.code_flow import CodeFlow
import math
import secrets
from hashlib import blake2b

__all__ = ["Authenticator", "Remembered", "certificates_of"]

_MOST_CHECKS = 128  # of passwords, waiting or running; as many again of users who have logged in from there lately
_MOST_DELAYED = 256  # answers
_BEARER = 'Bearer realm="Strata"'
_TOO_MANY = "Too many failed logins; try again later"
_LONGEST_REASON = 300
_log = logging.getLogger("strata.access")

_Sleep = Callable[[float], Awaitable[None]]
_KEEP_S = 300.0
_MOST = 10_000


class Remembered:
    """The principals of credentials that were valid a moment ago, so that a password is not hashed for each request.

    Use extends the time for which they are kept: all are forgotten when what they were checked against changes, and a
    token or certificate has an end of its own. They are kept under a hash with a key that the process has drawn:
    neither the memory of the process nor the time of a look-up says what they are.

    Attributes:
        generation: rises when all of them are dropped.

    Args:
        now: the clock, in seconds.
        most: how many to keep; the oldest are dropped first.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, *, most: int = _MOST) -> None:
        self._now, self._most = now, most
        self._keyed = blake2b(key=secrets.token_bytes(32), digest_size=32)
        # The principal, until when it is kept without use, and until when at most.
        self._found: dict[bytes, tuple[Principal, float, float]] = {}
        self.generation = 0

    def key(self, credentials: bytes) -> bytes:
        """Return the hash under which credentials are kept."""
        hashed = self._keyed.copy()  # half the time of a new one
        hashed.update(credentials)
        return hashed.digest()

    def get(self, credentials: bytes) -> Principal | None:
        """Return the principal of credentials that are still valid."""
        key = self.key(credentials)
        remembered = self._found.get(key)
        if remembered is None:
            return None
        principal, until, end = remembered
        now = self._now()
        if until <= now:
            return None
        if until - now < _KEEP_S / 2 and until < end:
            # In its new place it is among the last to be dropped.
            del self._found[key]
            self._found[key] = principal, min(now + _KEEP_S, end), end
        return principal

    def put(self, credentials: bytes, principal: Principal, generation: int, *, seconds: float = math.inf) -> None:
        """Keep credentials for five minutes, and longer if they are used.

        Args:
            credentials: what the client has sent.
            principal: whom it names.
            generation: the generation when the check began; if another has begun, nothing is kept.
            seconds: for how long at most.
        """
        if generation != self.generation:
            return
        while len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        now = self._now()
        self._found[self.key(credentials)] = principal, now + min(seconds, _KEEP_S), now + seconds

    def clear(self) -> None:
        """Drop all credentials, because what they were checked against has changed."""
        self._found.clear()
        self.generation += 1


class Authenticator:
    """Finds out who sends a request.

    Args:
        options: the mechanisms that are on.
        fetch: returns the JSON at a URL of the identity provider, and may block.
        sleep: delays an answer, given the seconds.
        buckets: where failed logins are counted; by default a table of its own.
        now: the clock for what is remembered, in seconds.

    Raises:
        AuthFileError: if the auth file cannot be used.
    """

    def __init__(
        self,
        options: IdentityOptions,
        *,
        fetch: Fetch | None = None,
        sleep: _Sleep = asyncio.sleep,
        buckets: Buckets | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._remembered, self._certificates = Remembered(now), Remembered(now)
        forget = self._remembered.clear
        self.file = WatchedFile(options.auth_file, forget) if options.auth_file else None
        """The auth file in force; None without one."""
        self._passwords = PasswordCheck()
        self._throttle = Throttle(buckets or Buckets())
        self._sleep, self._delayed = sleep, 0
        self._checks: dict[tuple[bytes, int], asyncio.Task[Principal]] = {}
        self._waiting = Counter[bool]()
        self._schemes: dict[bytes, Callable[[bytes, bytes, str], Awaitable[Principal]]] = {}
        self._challenges: list[str] = []
        if self.file:
            self._schemes[b"basic"] = partial(self._basic, self.file)
            self._challenges.append(CHALLENGE)
        if options.oidc:
            self._tokens, self._keys = _token_check(options.oidc, fetch, forget)
            self._schemes[b"bearer"] = self._bearer
            self._challenges.append(_BEARER)

    def code_flow(self) -> "CodeFlow | None":
        """Return how people sign in to the pages by the identity provider; None if they cannot."""
        oidc, flow = self._options.oidc, self._options.code_flow
        if oidc is None or flow is None:
            return None
        from strata.registry.features.access.code_flow import CodeFlow

        return CodeFlow(oidc, flow, self._keys)

    @property
    def is_on(self) -> bool:
        """Whether any mechanism is on."""
        return self._options.is_on

    def unauthorized(self, reason: str = "there are no credentials", told: str = "") -> Unauthorized:
        """Return the error that asks for credentials.

        Args:
            reason: why, for the service's own log.
            told: what is wrong with a token, for the client.
        """
        detail = f', error="invalid_token", error_description="{told}"' if told else ""
        challenges = [challenge + detail if challenge is _BEARER else challenge for challenge in self._challenges]
        return Unauthorized(challenges, reason)

    def address(self, scope: Scope) -> str:
        """Return the address of the client, behind trusted proxies too; empty if it is not known."""
        return self._options.proxies.address(scope)

    async def watch(self) -> None:
        """Read the auth file when it changes, until cancelled."""
        if self.file:
            await self.file.watch()

    def close(self) -> None:
        """End the threads."""
        self._passwords.close()

    async def authenticate(self, scope: Scope) -> Principal:
        """Return who sends a request.

        Args:
            scope: the ASGI scope of the request.

        Raises:
            RegistryError: 401 if the credentials are invalid, 429 after too many of them, 50303 if the keys of the
                identity provider cannot be read.
        """
        authorizations = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(authorizations) == 1 and (principal := self._remembered.get(authorizations[0])):
            return principal
        return await self._identify(scope, authorizations)

    async def _identify(self, scope: Scope, authorizations: Sequence[bytes]) -> Principal:
        """Return who sends a request whose credentials are not remembered."""
        if authorizations:
            scheme, _, credentials = authorizations[0].partition(b" ")
            check = self._schemes.get(scheme.lower())
            if check is not None:
                if len(authorizations) > 1:
                    raise self._refused(scope, "there are several Authorization headers")
                return await check(authorizations[0], credentials.strip(), self.address(scope))
        try:
            named = self._options.proxies.principal(scope)
        except InvalidProxyHeader as error:
            raise self._refused(scope, str(error)) from None
        if named is not None:
            return named
        if authorizations:
            raise self._refused(scope, "the scheme of the Authorization header is not enabled")
        chain = certificates_of(scope) if self._options.mapping else ()
        return self._certificate(scope, chain[0]) if chain else ANONYMOUS

    async def _basic(self, file: WatchedFile, header: bytes, credentials: bytes, address: str) -> Principal:
        """Return the principal of a name and password; the same credentials are checked once at a time."""
        try:
            name, password = parse_credentials(credentials)
        except InvalidPassword as error:
            raise await self._refused_token(address, str(error)) from None
        generation = self._remembered.generation
        key = self._remembered.key(header), generation
        running = self._checks.get(key)
        if running is None:
            is_known = self._throttle.knows(address, name)
            if self._waiting[is_known] >= _MOST_CHECKS:
                raise TooManyRequests("Too many logins at the same time; try again later", 1)
            if wait_s := self._throttle.begin(address, name):
                raise TooManyRequests(_TOO_MANY, wait_s)
            check = self._checked(file.content, generation, header, name, password, address, is_known=is_known)
            running = self._checks[key] = asyncio.create_task(check)
            self._waiting[is_known] += 1
            running.add_done_callback(partial(self._end_check, key, is_known))
        try:
            return await asyncio.shield(running)
        except InvalidPassword as error:
            await self._delay(self._throttle.delay_s(address, name))
            raise self._logged(address, str(error)) from None

    async def _checked(
        self, users: AuthFile, generation: int, header: bytes, name: str, password: str, address: str,
        *, is_known: bool,
    ) -> Principal:  # fmt: skip
        principal = await self._passwords.principal(users, name, password, is_known=is_known)
        self._throttle.succeed(address, name)
        self._remembered.put(header, principal, generation)
        return principal

    def _end_check(self, key: tuple[bytes, int], is_known: bool, check: asyncio.Task[Principal]) -> None:
        del self._checks[key]
        self._waiting[is_known] -= 1
        if not check.cancelled():
            check.exception()  # seen, even if every client has gone

    async def _bearer(self, header: bytes, token: bytes, address: str) -> Principal:
        from strata.registry.features.access.bearer import InvalidToken

        try:
            principal, ends_at = await self._tokens.principal(token)
        except InvalidToken as error:
            if error.told:  # the issuer has signed it, so it is not a guess
                raise self._logged(address, str(error), error.told) from None
            raise await self._refused_token(address, str(error)) from None
        except UnknownKey as error:
            if error.wait_s:
                raise TooManyRequests("The token's key is not known yet; try again later", error.wait_s) from None
            raise await self._refused_token(address, str(error)) from None
        except KeysUnavailable as error:
            _log.error("%(reason)s", {"event": "provider_keys_missing", "reason": str(error)})
            raise errors.identity_provider_silent() from None
        # Nothing was awaited since the key was found, so it is one of the present generation.
        self._remembered.put(header, principal, self._remembered.generation, seconds=ends_at - time.time())
        return principal

    def _certificate(self, scope: Scope, pem: str) -> Principal:
        from strata.registry.features.access.mtls import InvalidCertificate, principal_of

        key = pem.encode()
        if certificate := self._certificates.get(key):
            return certificate
        assert self._options.mapping  # noqa: S101 - the caller has checked it
        try:
            principal, ends_at = principal_of(pem, self._options.mapping)
        except InvalidCertificate as error:
            raise self._refused(scope, str(error)) from None
        self._certificates.put(key, principal, self._certificates.generation, seconds=ends_at - time.time())
        return principal

    # --- refusals

    def _refused(self, scope: Scope, reason: str) -> RegistryError:
        return self._logged(self.address(scope), reason)

    def _logged(self, address: str, reason: str, told: str = "") -> RegistryError:
        _log.info(
            "login failed from %(address)s: %(reason)s",
            {"event": "login_failed", "address": address or "an unknown address", "reason": reason[:_LONGEST_REASON]},
        )
        return self.unauthorized(reason, told)

    async def _refused_token(self, address: str, reason: str) -> RegistryError:
        """Return the error for credentials that cost nothing to check, after a delay if there were many of them."""
        wait_s, delay_s = self._throttle.fail_token(address)
        if wait_s:
            return TooManyRequests(_TOO_MANY, wait_s)
        await self._delay(delay_s)
        return self._logged(address, reason)

    async def _delay(self, seconds: float) -> None:
        """Delay an answer, unless too many wait already."""
        if seconds and self._delayed < _MOST_DELAYED:
            self._delayed += 1
            try:
                await self._sleep(seconds)
            finally:
                self._delayed -= 1


def _token_check(
    oidc: OidcOptions, fetch: Fetch | None, changed: Callable[[], None]
) -> tuple["TokenCheck", ProviderKeys]:
    from strata.registry.features.access.bearer import TokenCheck

    keys = ProviderKeys(
        oidc.rules.issuer,
        oidc.jwks_url,
        fetch or partial(fetch_json, ca_file=oidc.ca_file),
        changed,
        allow_http=oidc.allow_http,
    )
    return TokenCheck(oidc.rules, keys), keys


def certificates_of(scope: Scope) -> tuple[str, ...]:
    """Return the certificates of the client, its own first, in the form of the ASGI TLS extension."""
    tls = (scope.get("extensions") or {}).get("tls") or {}
    return tuple(tls.get("client_cert_chain") or ())
