"""Where the registry is and how patiently to ask it, as one picklable value.

Rules of this file: a bad setting is refused when it is made, with what is allowed; secrets never show in a repr.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

__all__ = ["ClientSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """All that a process needs to build a client.

    Attributes:
        urls: base addresses of the same registry, tried in turn; a path in them is kept.
        username: for HTTP basic authentication, with `password`.
        password: the other half.
        token: for HTTP bearer authentication, instead of the two.
        timeout: seconds that one attempt may wait for a connection, and then for each piece of the answer.
        retries: how often a failed request is tried again, over all addresses.
        backoff: seconds before the first repetition; doubled each time, a random part of it taken.
        max_backoff: the longest such wait, also when the registry asks for more by `Retry-After`.
        cache_size: how many schemas, and how many registrations, are remembered.
        missing_ttl: seconds for which an id that the registry does not know is not asked for again.
        pool_size: connections kept open to each address.
        max_answer_bytes: the longest answer that is read.
        ca_file: certificates to trust for https, instead of the system's.
        cert_file: own certificate for https.
        key_file: its key.
    """

    urls: tuple[str, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    timeout: float = 30.0
    retries: int = 4
    backoff: float = 0.2
    max_backoff: float = 10.0
    cache_size: int = 1000
    missing_ttl: float = 10.0
    pool_size: int = 8
    max_answer_bytes: int = 64 * 1024 * 1024
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def __post_init__(self) -> None:
        if not self.urls:
            raise ValueError("a registry client needs at least one URL")
        if any(_split_userinfo(url)[1] for url in self.urls):
            # Here they would show in every repr; and so in the plans of Spark.
            raise ValueError(
                "credentials do not belong into urls: give username and password, or use ClientSettings.of"
            )
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together")
        if self.token is not None and self.username is not None:
            raise ValueError("give either username and password, or a token")
        for name, least in (("retries", 0), ("backoff", 0), ("max_backoff", 0), ("missing_ttl", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; allowed is {least} or more")
        for name in ("timeout", "cache_size", "pool_size", "max_answer_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; allowed is more than 0")

    @classmethod
    def of(cls, url: str | Sequence[str], **options: object) -> "ClientSettings":
        """Settings from one URL, several, or several with commas between; credentials in a URL are taken out of it."""
        given = url.split(",") if isinstance(url, str) else url
        urls = []
        for one in given:
            base, userinfo = _split_userinfo(one.strip())
            urls.append(base)
            if userinfo is not None and options.get("username") is None:
                options["username"], options["password"] = userinfo
        return cls(urls=tuple(urls), **options)  # type: ignore[arg-type]


def _split_userinfo(url: str) -> tuple[str, tuple[str, str] | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"the registry URL cannot be read: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the registry URL must look like http://host:8081 or https://host:8081/path")
    if parts.query or parts.fragment:
        raise ValueError("the registry URL must not have a query or a fragment")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    netloc = host if port is None else f"{host}:{port}"
    base = urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
    if parts.username is None:
        return base, None
    return base, (unquote(parts.username), unquote(parts.password or ""))
