"""The configuration of an exporter, with the names that Confluent's clients use: where it copies to, and as whom.

A configuration comes over the API: it holds texts, never the names of files on this node.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from strata.registry.transfer.copies import TransferError
from strata.registry.transfer.rest import Connection

__all__ = ["Destination", "destination_of"]

_URL = "schema.registry.url"
_BASIC, _USER = "basic.auth.credentials.source", "basic.auth.user.info"
_BEARER, _TOKEN = "bearer.auth.credentials.source", "bearer.auth.token"
_CA = "ssl.truststore.certificates"
_TRUST_TYPE = "ssl.truststore.type"
_PROXY, _PROXY_HOST, _PROXY_PORT = "proxy", "proxy.host", "proxy.port"
_TIMEOUT_S = 10.0
_OAUTH = {
    "bearer.auth.issuer.endpoint.url": "token_url",
    "bearer.auth.client.id": "client_id",
    "bearer.auth.client.secret": "client_secret",
}
_TOKENS = {
    "bearer.auth.scope": "scope",
    "bearer.auth.logical.cluster": "logical_cluster",
    "bearer.auth.identity.pool.id": "identity_pool",
}
"""Settings that may go with a token, and the scope with OAuth alone."""


@dataclass(frozen=True, slots=True, repr=False)
class Destination:
    """A registry that an exporter copies to.

    Attributes:
        urls: its addresses, tried in turn.
        settings: further settings of `strata.http`: credentials, certificates to trust, and a proxy.
    """

    urls: tuple[str, ...]
    settings: Mapping[str, str]

    def connection(self) -> Connection:
        """Return a connection, which tries each address once.

        Raises:
            TransferError: if a setting cannot be used.
        """
        more: dict[str, Any] = dict(self.settings)
        return Connection(",".join(self.urls), retries=0, timeout_s=_TIMEOUT_S, **more)


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
    settings = {**_identity(config), **_proxy(config)}
    if config.get(_CA):
        settings["ca_data"] = config[_CA]
    made = Destination(urls, settings)
    made.connection()
    return made


def _identity(config: Mapping[str, str]) -> dict[str, str]:
    """Return the credentials."""
    basic, bearer = config.get(_BASIC, "").upper(), config.get(_BEARER, "").upper()
    more = {ours: config[theirs] for theirs, ours in _TOKENS.items() if config.get(theirs)}
    if bearer == "OAUTHBEARER":
        missing = [name for name in _OAUTH if not config.get(name)]
        if missing:
            raise TransferError(f"{_BEARER} OAUTHBEARER needs {', '.join(missing)}")
        return more | {ours: config[theirs] for theirs, ours in _OAUTH.items()}
    more.pop("scope", None)
    if bearer:
        if bearer != "STATIC_TOKEN":
            raise TransferError(f"{_BEARER} must be STATIC_TOKEN or OAUTHBEARER; {bearer} is not supported")
        if not config.get(_TOKEN):
            raise TransferError(f"{_TOKEN} is missing")
        return more | {"token": config[_TOKEN]}
    if basic not in ("", "USER_INFO"):
        raise TransferError(f"{_BASIC} must be USER_INFO, with {_USER}; {basic} is not supported")
    username, colon, password = config.get(_USER, "").partition(":")
    if (basic and not username) or (username and not colon):
        raise TransferError(f"{_USER} must be USER:PASSWORD")
    if username:
        return more | {"username": username, "password": password}
    return more | ({"token": config[_TOKEN]} if config.get(_TOKEN) else {})


def _proxy(config: Mapping[str, str]) -> dict[str, str]:
    """Return the proxy: a URL, as in Confluent's clients for Python, or a host and a port, as in those for Java."""
    url, host, port = (config.get(name, "") for name in (_PROXY, _PROXY_HOST, _PROXY_PORT))
    if bool(host) != bool(port) or (url and host):
        raise TransferError(f"expected {_PROXY_HOST} with {_PROXY_PORT}, or {_PROXY} alone")
    if "@" in urlsplit(url).netloc:
        raise TransferError(f"{_PROXY} must not hold a password, which answers would show")
    return {"proxy": url or f"http://{host}:{port}"} if url or host else {}
