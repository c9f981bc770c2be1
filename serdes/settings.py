"""The settings of a registry client, as one picklable value.

Rules of this file: a bad setting is an error when the settings are made, and the error says what is allowed; secrets
never show in a repr.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from strata.serdes.errors import did_you_mean

__all__ = ["ClientSettings", "check_files", "split_userinfo"]

_NUMBERS = (
    "timeout",
    "retries",
    "wait",
    "backoff",
    "max_backoff",
    "cache_size",
    "missing_ttl",
    "pool_size",
    "max_answer_bytes",
)
_FILES = ("ca_file", "cert_file", "key_file", "token_ca_file")
_HEADER_VALUE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """All that a process needs to build a client.

    Attributes:
        urls: base addresses of the same registry, tried in turn; their paths are kept.
        username: for HTTP basic authentication, with `password`.
        password: the password of `username`.
        token: a bearer token, instead of username and password.
        token_url: the OAuth 2.0 token endpoint for client credentials, instead of a token; see `strata.serdes.oauth`.
        client_id: the OAuth client, with `client_secret`.
        client_secret: the secret of `client_id`.
        scope: the OAuth scope to ask for.
        token_ca_file: CA certificates for the token endpoint, instead of the system's.
        logical_cluster: sent with each request as `target-sr-cluster`; Confluent Cloud wants it along with tokens.
        identity_pool: sent with each request as `Confluent-Identity-Pool-Id`.
        timeout: seconds that one attempt may wait for a connection, and then for each piece of the answer.
        retries: how often a failed request is retried, over all addresses.
        wait: seconds for which a failed request is retried at least, even if `retries` are used up before.
        backoff: seconds before the first retry; doubled for each further one, with jitter.
        max_backoff: seconds of the longest wait, also when the registry asks for more by `Retry-After`.
        cache_size: how many schemas, and how many registrations, are cached.
        missing_ttl: seconds for which an unknown id is cached.
        pool_size: connections kept open to each address.
        max_answer_bytes: bytes of the longest answer that is read.
        ca_file: CA certificates for https, instead of the system's.
        cert_file: the client certificate for https.
        key_file: the key of `cert_file`.
        proxy: the URL of an HTTP proxy, for tokens too; it may contain credentials.
        glue_region: the AWS region whose Glue is asked for schema versions in frames of AWS Glue, with the credentials
            of the AWS tools; without it the registry is asked, into which they were migrated.

    Raises:
        ValueError: If a setting is out of range or settings contradict each other.
        TypeError: If a number is expected and something else given.
    """

    urls: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    token_ca_file: str | None = None
    logical_cluster: str | None = None
    identity_pool: str | None = None
    timeout: float = 30.0
    retries: int = 4
    wait: float | None = None
    backoff: float = 0.2
    max_backoff: float = 10.0
    cache_size: int = 1000
    missing_ttl: float = 10.0
    pool_size: int = 8
    max_answer_bytes: int = 64 * 1024 * 1024
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    proxy: str | None = field(default=None, repr=False)
    glue_region: str | None = None

    def __post_init__(self) -> None:
        if not self.urls:
            raise ValueError("urls: expected at least one URL")
        for name in _NUMBERS:
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number and (name, value) != ("wait", None):
                raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
        if any(split_userinfo(url)[1] for url in self.urls):
            # The repr shows urls, and so do Spark's query plans.
            raise ValueError("urls: expected no credentials; pass username and password, or use ClientSettings.of")
        _check_credentials(self)
        if self.proxy is not None:
            _check_proxy(self.proxy)
        for name in ("retries", "backoff", "max_backoff", "missing_ttl", "wait"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name}: expected 0 or more, got {getattr(self, name)}")
        for name in ("timeout", "cache_size", "pool_size", "max_answer_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}: expected more than 0, got {getattr(self, name)}")

    @classmethod
    def of(cls, url: "str | Sequence[str] | ClientSettings", **options: object) -> "ClientSettings":
        """Return settings from one URL, several URLs, one string of URLs with commas between them, or other settings.

        Args:
            url: the registry's address or addresses; credentials in them become `username` and `password`.
            **options: further fields of the settings; they replace those of other settings.

        Raises:
            ValueError: If a URL cannot be parsed, a setting is out of range or settings contradict each other.
            TypeError: If an option is unknown, or a number is expected and something else given.
        """
        for name in sorted(options.keys() - cls.__slots__):
            known = [one for one in cls.__slots__ if one != "urls"]
            raise TypeError(f"unknown option {name!r} of a client{did_you_mean(name, known)}")
        if isinstance(url, ClientSettings):
            return replace(url, **options)  # type: ignore[arg-type]
        given = url.split(",") if isinstance(url, str) else url
        urls = []
        for one in given:
            base, userinfo = split_userinfo(one.strip())
            urls.append(base)
            if userinfo is not None and options.get("username") is None:
                options["username"], options["password"] = userinfo
        return cls(urls=tuple(urls), **options)  # type: ignore[arg-type]

    @classmethod
    def from_conf(cls, conf: Mapping[str, Any]) -> "ClientSettings":
        """Return settings from a dict with the names of confluent-kafka's `SchemaRegistryClient`.

        Args:
            conf: such as `url`, `basic.auth.user.info` and `ssl.ca.location`; a value of None counts as missing.

        Raises:
            ValueError: If a setting is unknown, missing or of the wrong type; the message does not show its value.
        """
        given = dict(conf)
        source = given.pop("bearer.auth.credentials.source", None)
        needed = _BEARER_SOURCES.get(source)
        if needed is None:
            allowed = " or ".join(name for name in _BEARER_SOURCES if name)
            raise ValueError(f"unknown bearer.auth.credentials.source; expected {allowed}")
        if source is None and any(name.startswith("bearer.") for name in given):
            raise ValueError("bearer.auth settings need bearer.auth.credentials.source")
        missing = [name for name in ("url", *needed) if given.get(name) is None]
        unknown = sorted(given.keys() - _CONF.keys())
        if missing:
            raise ValueError(f"missing settings {', '.join(missing)}")
        if unknown:
            raise ValueError(f"unknown settings {', '.join(unknown)}; expected {', '.join(_CONF)}")
        options: dict[str, Any] = {}
        for name, value in given.items():
            if value is not None:
                options |= _read(name, value)
        return cls.of(options.pop("url"), **options)


def check_files(settings: ClientSettings) -> None:
    """Check that the files which settings name can be opened here; other processes may have other files.

    Raises:
        ValueError: If one cannot be opened.
    """
    for name in _FILES:
        path = getattr(settings, name)
        if path is None:
            continue
        try:
            Path(path).open("rb").close()
        except OSError as error:
            raise ValueError(f"{name}: cannot open {path}: {error.strerror}") from None


_Reader = Callable[[Any], dict[str, Any]]
"""Turns a value into fields of the settings; raises TypeError with the expected type."""


def _text(field_name: str) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, str):
            raise TypeError("a string")
        return {field_name: value}

    return read


def _number(field_name: str, kind: Callable[[float], float]) -> _Reader:
    def read(value: Any) -> dict[str, Any]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError("a number")
        return {field_name: kind(value)}

    return read


def _seconds(milliseconds: float) -> float:
    return milliseconds / 1000


def _user_info(value: Any) -> dict[str, Any]:
    if not isinstance(value, str) or ":" not in value:
        raise TypeError("username:password")
    username, _, password = value.partition(":")
    return {"username": username, "password": password}


def _identity_pool(value: Any) -> dict[str, Any]:
    pools = [value] if isinstance(value, str) else value
    if not isinstance(pools, list) or not all(isinstance(one, str) for one in pools):
        raise TypeError("a string or a list of strings")
    return {"identity_pool": ",".join(pools)}


_CONF: Mapping[str, _Reader] = {
    "url": _text("url"),
    "basic.auth.user.info": _user_info,
    "bearer.auth.token": _text("token"),
    "bearer.auth.issuer.endpoint.url": _text("token_url"),
    "bearer.auth.client.id": _text("client_id"),
    "bearer.auth.client.secret": _text("client_secret"),
    "bearer.auth.scope": _text("scope"),
    "bearer.auth.logical.cluster": _text("logical_cluster"),
    "bearer.auth.identity.pool.id": _identity_pool,
    "ssl.ca.location": _text("ca_file"),
    "ssl.certificate.location": _text("cert_file"),
    "ssl.key.location": _text("key_file"),
    "proxy": _text("proxy"),
    "timeout": _number("timeout", float),
    "cache.capacity": _number("cache_size", int),
    "max.retries": _number("retries", int),
    "retries.wait.ms": _number("backoff", _seconds),
    "retries.max.wait.ms": _number("max_backoff", _seconds),
}
"""The names of confluent-kafka's client (2.16) and what each sets."""


def _read(name: str, value: Any) -> dict[str, Any]:
    try:
        return _CONF[name](value)
    except TypeError as error:
        raise ValueError(f"{name}: expected {error}") from None  # without the value, which may be a secret


_BEARER_SOURCES: Mapping[str | None, tuple[str, ...]] = {
    None: (),
    "STATIC_TOKEN": ("bearer.auth.token",),
    "OAUTHBEARER": ("bearer.auth.issuer.endpoint.url", "bearer.auth.client.id", "bearer.auth.client.secret"),
}
"""Where a token comes from, and the settings that this needs."""


def _check_credentials(one: ClientSettings) -> None:
    if (one.username is None) != (one.password is None):
        raise ValueError("expected username and password together, got one of them")
    oauth = (one.token_url, one.client_id, one.client_secret)
    if any(oauth) and not all(oauth):
        raise ValueError("expected token_url, client_id and client_secret together, got some of them")
    if sum(given is not None for given in (one.username, one.token, one.token_url)) > 1:
        raise ValueError("expected one of username, token and token_url, got several")
    if one.token_url is None and (one.scope or one.token_ca_file):
        raise ValueError("scope and token_ca_file need a token_url")
    for name in ("token", "logical_cluster", "identity_pool"):
        value = getattr(one, name)
        if value is not None and not _HEADER_VALUE.fullmatch(value):  # a later error would show the value
            raise ValueError(f"{name} has a character that no HTTP header may contain, such as a space or a line break")
    if one.token_url is not None:
        _check_token_url(one.token_url)


def _check_proxy(url: str) -> None:
    parts = _parts(url)
    if parts is None or parts.path.strip("/") or parts.query:
        raise ValueError("proxy: expected a URL such as http://host:3128 or http://name:password@host:3128")


def _check_token_url(url: str) -> None:
    parts = _parts(url)
    if parts is None or parts.fragment:
        raise ValueError("token_url: expected a URL such as https://host/path")
    if parts.username is not None:
        raise ValueError("token_url: expected no credentials; pass client_id and client_secret")


def split_userinfo(url: str) -> tuple[str, tuple[str, str] | None]:
    """Split a registry URL into the base URL and the credentials in it.

    Returns:
        The URL without credentials and trailing slashes, and (username, password) or None.

    Raises:
        ValueError: If the URL is not an http(s) URL with a host and without query and fragment.
    """
    parts = _parts(url)
    if parts is None:
        raise ValueError(
            "the registry URL cannot be read: expected one such as http://host:8081 or https://host:8081/path"
        )
    if parts.query or parts.fragment:
        raise ValueError("invalid registry URL: expected no query and no fragment")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    netloc = host if parts.port is None else f"{host}:{parts.port}"
    base = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return base, None
    return base, (unquote(parts.username), unquote(parts.password or ""))


def _parts(url: str) -> SplitResult | None:
    """Return the parts of an http(s) URL with a host; None if the text is not one."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError:
        return None
    return parts if parts.scheme in ("http", "https") and parts.hostname else None
