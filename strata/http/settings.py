"""The settings of the HTTP client, as one picklable value of plain fields.

Rules of this file: a bad setting is an error when the settings are made, and the error says what is allowed; secrets
never show in a repr. Names of other products' settings belong to the callers.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

__all__ = ["HttpSettings", "check_files", "check_numbers", "split_userinfo"]

_FILES = ("ca_file", "cert_file", "key_file", "token_ca_file")
_FROM_ZERO = ("retries", "backoff", "max_backoff", "wait")
_POSITIVE = ("timeout", "pool_size", "max_answer_bytes", "max_answer_seconds")
_HEADER_VALUE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """All that a process needs to reach one registry.

    Attributes:
        urls: base addresses of the same registry, tried in turn; their paths are kept.
        username: for HTTP basic authentication, with `password`.
        password: the password of `username`.
        token: a bearer token, instead of username and password.
        token_url: the OAuth 2.0 token endpoint for client credentials, instead of a token; see `strata.http.tokens`.
        client_id: the OAuth client, with `client_secret`.
        client_secret: the secret of `client_id`.
        scope: the OAuth scope to ask for.
        authorize: returns the headers with credentials for one attempt, instead of a token; any thread may call it.
        token_ca_file: CA certificates for the token endpoint, instead of the system's.
        logical_cluster: sent with each request as `target-sr-cluster`; Confluent Cloud wants it along with tokens.
        identity_pool: sent with each request as `Confluent-Identity-Pool-Id`.
        timeout: seconds that one attempt may wait for a connection, and then for each piece of the answer.
        retries: how often a failed request is retried, over all addresses.
        wait: seconds for which a failed request is retried at least, even if `retries` are used up before.
        backoff: seconds before the first retry; doubled for each further one, with jitter.
        max_backoff: seconds of the longest wait, also when the registry asks for more by `Retry-After`.
        pool_size: connections kept open to each address.
        max_answer_bytes: bytes of the longest answer that is read, after decompression.
        max_answer_seconds: seconds that an answer may take as a whole, from its first byte.
        ca_file: CA certificates for https, instead of the system's.
        ca_data: the same as text in PEM, for the token endpoint too.
        cert_file: the client certificate for https.
        key_file: the key of `cert_file`.
        key_password: the password of an encrypted `key_file`.
        proxy: the URL of an HTTP proxy, for tokens too; it may contain credentials.

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
    authorize: Callable[[], Mapping[str, str]] | None = field(default=None, repr=False)
    token_ca_file: str | None = None
    logical_cluster: str | None = None
    identity_pool: str | None = None
    timeout: float = 30.0
    retries: int = 4
    wait: float | None = None
    backoff: float = 0.2
    max_backoff: float = 10.0
    pool_size: int = 8
    max_answer_bytes: int = 64 * 1024 * 1024
    max_answer_seconds: float = 300.0
    ca_file: str | None = None
    ca_data: str | None = field(default=None, repr=False)
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    proxy: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.urls:
            raise ValueError("urls: expected at least one URL")
        check_numbers(self, from_zero=_FROM_ZERO, positive=_POSITIVE)
        if any(split_userinfo(url)[1] for url in self.urls):
            # The repr shows urls, and so do Spark's query plans.
            raise ValueError("urls: expected no credentials; pass username and password, or use ClientSettings.of")
        _check_credentials(self)
        if self.proxy is not None:
            _check_proxy(self.proxy)


def check_numbers(settings: HttpSettings, *, from_zero: Iterable[str] = (), positive: Iterable[str] = ()) -> None:
    """Check that fields are numbers in range; `wait` may be None.

    Args:
        settings: the settings.
        from_zero: names of fields whose least value is 0.
        positive: names of fields that are more than 0.

    Raises:
        ValueError: If a number is out of range.
        TypeError: If a field is not a number.
    """
    for names, is_zero_good, sentence in ((from_zero, True, "0 or more"), (positive, False, "more than 0")):
        for name in names:
            value = getattr(settings, name)
            if (name, value) == ("wait", None):
                continue
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
            if value < 0 or (value == 0 and not is_zero_good):
                raise ValueError(f"{name}: expected {sentence}, got {value}")


def check_files(settings: HttpSettings) -> None:
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


def _check_credentials(settings: HttpSettings) -> None:
    if (settings.username is None) != (settings.password is None):
        raise ValueError("expected username and password together, got one of them")
    oauth = (settings.token_url, settings.client_id, settings.client_secret)
    if any(oauth) and not all(oauth):
        raise ValueError("expected token_url, client_id and client_secret together, got some of them")
    ways = (settings.username, settings.token, settings.token_url, settings.authorize)
    if sum(way is not None for way in ways) > 1:
        raise ValueError("expected one of username, token, token_url and authorize, got several")
    if settings.token_url is None and (settings.scope or settings.token_ca_file):
        raise ValueError("scope and token_ca_file need a token_url")
    for name in ("token", "logical_cluster", "identity_pool"):
        value = getattr(settings, name)
        if value is not None and not _HEADER_VALUE.fullmatch(value):  # a later error would show the value
            raise ValueError(f"{name} has a character that no HTTP header may contain, such as a space or a line break")
    if settings.token_url is not None:
        _check_token_url(settings.token_url)


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
