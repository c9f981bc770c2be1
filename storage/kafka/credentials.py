"""TLS and SASL of the connection to the leader, from the settings of librdkafka.

The settings are those of the Kafka client that writes and reads. `credentials_of` returns None if they ask for
more than this file offers, such as GSSAPI or a key store: the node then uses the Kafka client for everything.

A SASL mechanism is a generator: it yields the client's messages and receives the server's (RFC 4616, 5802, 7628).
Rules of this file: no error and no log line contains a password or a token, and nothing here touches a socket, except
that `Credentials.mechanism` fetches a token from the endpoint that the settings name.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
import ssl
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
)

__all__ = ["Credentials", "CredentialsRefused", "Exchange", "credentials_of"]

Exchange = Generator[bytes, bytes, None]
"""The messages of a mechanism: it yields the client's and receives the server's."""

_MECHANISMS = {"sasl.mechanism", "sasl.mechanisms"}
_TLS = {
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
}
_PASSWORD = {"sasl.username", "sasl.password"}
_TOKEN = {
    "sasl.oauthbearer.method",
    "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
}
_UNSECURED = {"enable.sasl.oauthbearer.unsecure.jwt", "sasl.oauthbearer.config"}
_LIFE = re.compile(r"principal=(?P<principal>[^\s,=\"\\]+)")
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MOST_ITERATIONS = 1_000_000
_TOKEN_S, _MOST_BYTES = 5.0, 64 * 1024
_UNSECURED_S = 3600


class CredentialsRefused(Exception):
    """The server refuses the credentials, or its messages prove nothing."""


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """How to secure a connection; `tls` is None without encryption, `mechanism_name` without a login."""

    tls: ssl.SSLContext | None = None
    mechanism_name: str | None = None
    mechanism: Callable[[], Exchange] | None = None
    """Begins an exchange; it may block to fetch a token, and raises OSError or ValueError if that fails."""


def credentials_of(config: Mapping[str, object]) -> Credentials | None:
    """Return how to secure a connection, or None if the settings ask for something that this file does not offer.

    Args:
        config: the settings of librdkafka.
    """
    protocol = str(config.get("security.protocol", "plaintext")).lower()
    known, mechanism_name, mechanism = set(_MECHANISMS), None, None
    if "sasl" in protocol:
        mechanism_name = str(config.get("sasl.mechanism", config.get("sasl.mechanisms", ""))).upper()
        chosen = _mechanism(mechanism_name, config)
        if chosen is None:
            return None
        mechanism, names = chosen
        known |= names
    try:
        tls = _context(config) if protocol.endswith("ssl") else None
    except (OSError, ValueError):
        return None
    known |= _TLS if tls else set()
    named = {name for name in config if name.startswith(("ssl.", "sasl.", "enable.ssl.", "enable.sasl.", "https."))}
    # What the protocol does not use, librdkafka ignores as well.
    if named - known and protocol != "plaintext":
        return None
    return Credentials(tls, mechanism_name, mechanism)


# --- TLS


def _context(config: Mapping[str, object]) -> ssl.SSLContext:
    place = _setting(config, "ssl.ca.location")
    place = None if place == "probe" else place
    is_folder = place is not None and Path(place).is_dir()
    context = ssl.create_default_context(
        cafile=None if is_folder else place, capath=place if is_folder else None, cadata=_setting(config, "ssl.ca.pem")
    )
    context.check_hostname = config.get("ssl.endpoint.identification.algorithm", "https") == "https"
    if str(config.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate := _setting(config, "ssl.certificate.location"):
        # Without a password, the call would ask for it on the terminal.
        password = _setting(config, "ssl.key.password") or ""
        context.load_cert_chain(certificate, _setting(config, "ssl.key.location"), password=password)
    return context


def _setting(config: Mapping[str, object], name: str) -> str | None:
    value = config.get(name)
    return None if value is None else str(value)


# --- SASL


def _mechanism(name: str, config: Mapping[str, object]) -> tuple[Callable[[], Exchange], set[str]] | None:
    """Return a mechanism and the settings that it uses."""
    user, password = (str(config.get(f"sasl.{part}", "")) for part in ("username", "password"))
    if name == "PLAIN":
        return partial(_plain, user, password), _PASSWORD
    if name in _HASHES:
        return partial(_scram, _HASHES[name], user, password), _PASSWORD
    if name != "OAUTHBEARER":
        return None
    if config.get("sasl.oauthbearer.method") == "oidc" and config.get("sasl.oauthbearer.token.endpoint.url"):
        return lambda: _bearer(_fetched_token(config)), _TOKEN
    match = _LIFE.fullmatch(str(config.get("sasl.oauthbearer.config", "")).strip())
    if match and str(config.get("enable.sasl.oauthbearer.unsecure.jwt", "")).lower() == "true":
        return lambda: _bearer(_unsecured_token(match["principal"])), _UNSECURED
    return None


def _plain(user: str, password: str) -> Exchange:
    """RFC 4616."""
    yield f"\0{user}\0{password}".encode()


def _scram(algorithm: str, user: str, password: str) -> Exchange:
    """RFC 5802, without channel binding, as Kafka has it: also the server proves that it knows the password."""
    nonce = secrets.token_urlsafe(24)
    first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    server_first = _text((yield f"n,,{first}".encode()))
    fields = _fields(server_first)
    salt, iterations = base64.b64decode(fields.get("s", ""), validate=True), int(fields.get("i", "0"))
    joint = fields.get("r", "")
    if not joint.startswith(nonce) or len(joint) == len(nonce) or not 0 < iterations <= _MOST_ITERATIONS:
        raise CredentialsRefused("the first message of SCRAM is wrong")
    salted = hashlib.pbkdf2_hmac(algorithm, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    without_proof = f"c=biws,r={joint}"
    signed = f"{first},{server_first},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), signed, algorithm)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    server_last = _fields(_text((yield f"{without_proof},p={proof}".encode())))
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), signed, algorithm)
    if not hmac.compare_digest(base64.b64decode(server_last.get("v", "")), expected):
        raise CredentialsRefused("the server does not prove that it knows the password")


def _bearer(token: str) -> Exchange:
    """RFC 7628. A server that refuses the token says why in a message, which is not repeated here."""
    if (yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()):
        raise CredentialsRefused("the server refuses the token")


def _text(message: bytes) -> str:
    return message.decode("utf-8")


def _fields(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _unsecured_token(principal: str) -> str:
    """Return an unsigned token, which brokers accept for development only."""
    now = int(time.time())
    claims = {"sub": principal, "iat": now, "exp": now + _UNSECURED_S}
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def _fetched_token(config: Mapping[str, object]) -> str:
    """Fetch a token by client credentials (RFC 6749, section 4.4).

    Raises:
        OSError: the endpoint cannot be reached, or refuses.
        ValueError: its answer holds no token.
    """
    url = str(config["sasl.oauthbearer.token.endpoint.url"])
    if urlsplit(url).scheme not in {"http", "https"}:
        raise ValueError("the token endpoint is not an HTTP URL")
    form = {"grant_type": "client_credentials"}
    if scope := config.get("sasl.oauthbearer.scope"):
        form["scope"] = str(scope)
    client = f"{config.get('sasl.oauthbearer.client.id', '')}:{config.get('sasl.oauthbearer.client.secret', '')}"
    request = Request(url, urlencode(form).encode())  # noqa: S310 - the scheme is checked above
    request.add_header("Authorization", f"Basic {base64.b64encode(client.encode()).decode()}")
    request.add_header("Accept", "application/json")
    opener = OpenerDirector()  # without redirects: the secret goes to this endpoint and nowhere else
    for handler in (HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
        opener.add_handler(handler())
    with opener.open(request, timeout=_TOKEN_S) as answer:
        body = answer.read(_MOST_BYTES)
    try:
        token = json.loads(body)["access_token"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError("the token endpoint answered without an access token") from None
    if not isinstance(token, str) or "\x01" in token:
        raise ValueError("the token endpoint answered without an access token")
    return token
