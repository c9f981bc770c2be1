"""The configuration of an exporter, with the names that Confluent's clients use: where it copies to, and as whom."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import Connection

__all__ = ["Destination", "destination_of"]

_URL = "schema.registry.url"
_BASIC, _USER = "basic.auth.credentials.source", "basic.auth.user.info"
_BEARER, _TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
_CA = "ssl.truststore.certificates"
_TRUST_TYPE = "ssl.truststore.type"
_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Destination:
    """A registry that an exporter copies to.

    Attributes:
        urls: its addresses, one of which is used.
        auth: `USER:PASSWORD` or a bearer token.
        authorities: the CA certificates to trust, in PEM; empty for the system's.
    """

    urls: tuple[str, ...]
    auth: str | None
    authorities: str

    def connection(self, attempt: int) -> Connection:
        """Return a connection to the address that is due at an attempt.

        Raises:
            TransferError: if the certificates cannot be used.
        """
        url = self.urls[attempt % len(self.urls)]
        return Connection(url, self.auth, self, retries=0, timeout_s=_TIMEOUT_S)

    def context(self) -> ssl.SSLContext:
        """Return the TLS context.

        Raises:
            TransferError: if the certificates cannot be used.
        """
        try:
            return ssl.create_default_context(cadata=self.authorities or None)
        except (ssl.SSLError, ValueError) as error:
            raise TransferError(f"{_CA}: expected certificates in PEM ({error})") from None


def destination_of(config: Mapping[str, str]) -> Destination:
    """Return what a configuration says.

    Args:
        config: the configuration, with credentials in plain text.

    Raises:
        TransferError: if something is missing or cannot be used; the message says what.
    """
    urls = tuple(url.strip() for url in config.get(_URL, "").split(",") if url.strip())
    if not urls:
        raise TransferError(f"{_URL} is missing; expected the URL of a registry")
    for url in urls:
        if urlsplit(url).scheme not in ("http", "https"):
            raise TransferError(f"{_URL} is {url!r}; expected a URL such as https://registry:8081")
        if "@" in urlsplit(url).netloc:
            raise TransferError(f"{_URL} must not hold a password; set {_USER}, which is stored encrypted")
    for name in config:
        if name.startswith(("ssl.", "schema.registry.ssl.")) and name not in (_CA, _TRUST_TYPE):
            raise TransferError(f"{name} is not supported; {_CA} takes the certificates to trust, in PEM")
    if config.get(_TRUST_TYPE, "PEM").upper() != "PEM":
        raise TransferError(f"{_TRUST_TYPE} must be PEM")
    made = Destination(urls, _auth(config), config.get(_CA, ""))
    for attempt in range(len(urls)):
        made.connection(attempt)
    return made


def _auth(config: Mapping[str, str]) -> str | None:
    """Return the credentials."""
    basic, bearer = config.get(_BASIC, "").upper(), config.get(_BEARER, "").upper()
    if bearer:
        if bearer != "STATIC_TOKEN":
            raise TransferError(f"{_BEARER} must be STATIC_TOKEN, with {_TOKEN}; {bearer} is not supported")
        if not config.get(_TOKEN):
            raise TransferError(f"{_TOKEN} is missing")
        return config[_TOKEN]
    if basic not in ("", "USER_INFO"):
        raise TransferError(f"{_BASIC} must be USER_INFO, with {_USER}; {basic} is not supported")
    user = config.get(_USER, "")
    if (basic and not user) or (user and ":" not in user):
        raise TransferError(f"{_USER} must be USER:PASSWORD")
    return user or config.get(_TOKEN) or None
