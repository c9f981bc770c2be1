"""The public keys of an identity provider: where they are, and the fetching of them.

Keys are asked for again when they are five minutes old, and when a token names one that is not known, but then not more
than once in ten seconds: anyone can invent names of keys. While the provider is silent the last keys stay in use for an
hour. Fetching blocks, so it runs in a thread; size and time of an answer are bounded, and redirects are not followed.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import orjson

from strata.imports import deferred
from strata.registry.node.hosts import is_loopback
from strata.storage.addresses import without_password

if TYPE_CHECKING:
    import urllib3
else:
    urllib3 = deferred("urllib3")

__all__ = ["Fetch", "InvalidProvider", "KeysUnavailable", "ProviderKeys", "UnknownKey", "check_url", "fetch_json"]

Fetch = Callable[[str], object]
"""Returns the JSON at a URL, or raises `KeysUnavailable`."""

_FRESH_S = 300.0
_USABLE_S = 3600.0
_UNKNOWN_S = 10.0
_FAILED_S = 2.0
_MOST_KEYS = 200
_MOST_BYTES = 256 << 10
_CONNECT_S, _TOTAL_S = 5.0, 10.0
_WELL_KNOWN = "/.well-known/openid-configuration"
_log = logging.getLogger("strata.access")


class InvalidProvider(ValueError):
    """A URL of an identity provider that cannot be used; the message says what is expected."""


class KeysUnavailable(Exception):
    """The keys cannot be read; the message is for the service's own log."""


class UnknownKey(Exception):
    """A key that the provider has not published.

    Args:
        wait_s: for how long the provider is not asked again, in seconds; 0 if it has just been asked.
    """

    def __init__(self, wait_s: float) -> None:
        super().__init__("the token is signed with an unknown key")
        self.wait_s = wait_s


def check_url(url: str, *, allow_http: bool) -> str:
    """Return the URL of an identity provider, if it can be trusted to be that.

    Args:
        url: the URL.
        allow_http: whether `http://` is allowed on loopback.

    Raises:
        InvalidProvider: if it cannot.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        fits = bool(host) and parts.port != 0 and not parts.username and not parts.fragment
    except ValueError:
        fits = False
    if not fits:
        raise InvalidProvider(f"expected a URL such as https://id.example.com, got {without_password(url)!r}")
    if parts.scheme == "https" or (parts.scheme == "http" and allow_http and is_loopback(host)):
        return url
    raise InvalidProvider(
        f"expected https://, since anyone on the way could change the keys; got {without_password(url)!r}"
    )


class ProviderKeys:
    """The keys of one provider.

    Args:
        issuer: the issuer, from whose discovery document the URL of the keys comes.
        jwks_url: the URL of the keys; None to discover it.
        fetch: returns the JSON at a URL, and may block.
        changed: is called when the keys change.
        allow_http: whether `http://` is allowed on loopback.
        now: the clock, in seconds.
    """

    def __init__(
        self,
        issuer: str,
        jwks_url: str | None,
        fetch: Fetch,
        changed: Callable[[], None] = lambda: None,
        *,
        allow_http: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._issuer, self._jwks_url, self._fetch = issuer, jwks_url, fetch
        self._changed = changed
        self._allow_http, self._now = allow_http, now
        self._keys: list[Mapping[str, object]] = []
        self._read_at = self._asked_at = float("-inf")
        self._failed = False
        self._asking: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, key_type: str, algorithm: str) -> Mapping[str, object]:
        """Return a key.

        Args:
            kid: the name of the key; without one there must be only one key of that algorithm.
            key_type: the type of the key, such as `RSA`.
            algorithm: the algorithm, such as `RS256`.

        Returns:
            The key as a JSON Web Key.

        Raises:
            KeysUnavailable: if the provider does not answer, and no keys are known.
            UnknownKey: if it has no such key.
        """
        age = self._now() - self._read_at
        if age > _USABLE_S:
            await self._ask(_FAILED_S)
            if self._now() - self._read_at > _USABLE_S:
                raise KeysUnavailable(f"the identity provider {self._issuer} does not answer")
        elif age > _FRESH_S and self._is_due(_FAILED_S):
            self._begin()
        if known := self._known(kid, key_type, algorithm):
            return known
        if kid is None:
            raise UnknownKey(0.0)
        asked = await self._ask(_UNKNOWN_S)
        if known := self._known(kid, key_type, algorithm):
            return known
        if self._failed:
            raise KeysUnavailable(f"the identity provider {self._issuer} does not answer")
        raise UnknownKey(0.0 if asked else max(0.0, self._asked_at + _UNKNOWN_S - self._now()))

    def _known(self, kid: str | None, key_type: str, algorithm: str) -> Mapping[str, object] | None:
        keys = [key for key in self._keys if key.get("kty") == key_type]
        if kid is not None:
            return next((key for key in keys if key.get("kid") == kid), None)
        keys = [key for key in keys if key.get("alg", algorithm) == algorithm]
        return keys[0] if len(keys) == 1 else None

    def _is_due(self, interval_s: float) -> bool:
        return self._now() - self._asked_at >= (_FAILED_S if self._failed else interval_s)

    async def _ask(self, interval_s: float) -> bool:
        """Ask for the keys, unless that was tried too lately; return whether it was."""
        if self._asking is None and not self._is_due(interval_s):
            return False
        await asyncio.shield(self._asking or self._begin())
        return True

    def _begin(self) -> asyncio.Task[None]:
        if self._asking is None:
            self._asked_at = self._now()
            self._asking = asyncio.create_task(self._refresh())
        return self._asking

    async def _refresh(self) -> None:
        try:
            keys = await asyncio.wait_for(asyncio.to_thread(self._read), 3 * _TOTAL_S)
        except (KeysUnavailable, InvalidProvider, TimeoutError) as error:
            self._failed = True
            _log.error(
                "the keys of the identity provider %(issuer)s cannot be read: %(reason)s",
                {"event": "provider_keys_unreadable", "issuer": self._issuer, "reason": str(error)},
            )
            return
        except Exception:  # noqa: BLE001 - tokens of the keys that are known must go on
            self._failed = True
            _log.exception(
                "the keys of the identity provider %(issuer)s cannot be read",
                {"event": "provider_keys_broken", "issuer": self._issuer},
            )
            return
        finally:
            self._asking = None
        self._failed, self._read_at = False, self._now()
        if keys != self._keys:
            self._keys = keys
            self._changed()
            _log.info(
                "read %(keys)d keys of the identity provider %(issuer)s",
                {"event": "provider_keys_read", "issuer": self._issuer, "keys": len(keys)},
            )

    def _read(self) -> list[Mapping[str, object]]:
        url = self._jwks_url
        if url is None:
            configuration = self._fetch(self._issuer.rstrip("/") + _WELL_KNOWN)
            if not isinstance(configuration, dict) or configuration.get("issuer") != self._issuer:
                raise KeysUnavailable("its discovery document names another issuer")
            url = check_url(str(configuration.get("jwks_uri")), allow_http=self._allow_http)
        content = self._fetch(url)
        keys = content.get("keys") if isinstance(content, dict) else None
        if not isinstance(keys, list) or len(keys) > _MOST_KEYS:
            raise KeysUnavailable(f"expected a JSON Web Key Set of at most {_MOST_KEYS} keys at {url}")
        return [key for key in keys if isinstance(key, dict) and key.get("use", "sig") == "sig"]


def fetch_json(url: str, ca_file: str | None = None) -> object:
    """Return the JSON at a URL; blocks.

    Args:
        url: the URL.
        ca_file: a file with certificates of authorities; None for those of the system.

    Raises:
        KeysUnavailable: if it cannot be read, is too large, or takes too long.
    """
    ends_at = time.monotonic() + _TOTAL_S
    timeout = urllib3.Timeout(connect=_CONNECT_S, read=_CONNECT_S)
    data = bytearray()
    try:
        with urllib3.PoolManager(1, retries=False, timeout=timeout, ca_certs=ca_file) as pool:
            response = pool.request("GET", url, redirect=False, preload_content=False)
            if response.status != 200:
                raise KeysUnavailable(f"{url} answered {response.status}")
            while chunk := response.read1(_MOST_BYTES):
                data += chunk
                if len(data) > _MOST_BYTES or time.monotonic() > ends_at:
                    raise KeysUnavailable(f"the answer of {url} is too long, or takes too long")
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise KeysUnavailable(f"the answer of {url} is not JSON") from None
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise KeysUnavailable(f"{url}: {error}") from None
