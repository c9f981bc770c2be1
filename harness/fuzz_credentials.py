"""Fuzz targets of authentication: credentials of any bytes are refused as documented, and nothing gets in.

A principal may only come from credentials that are right; each target decides that by itself, from the parts of which
it has made the request.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.fuzz_target import Run, Target, check, not_empty

__all__ = ["CREDENTIALS"]

_ISSUER, _AUDIENCE, _KID = "https://id.example.com", "strata", "k"
_SALT = b"saltsalt"
_HASH = "$scrypt$ln=1,r=1,p=1$c2FsdHNhbHQ$"
_MOST_MESSAGE = 2000
_SECRET = bytes(range(32))


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _auth_file() -> str:
    digest = base64.b64encode(hashlib.scrypt(b"secret", salt=_SALT, n=2, r=1, p=1, dklen=32)).decode().rstrip("=")
    users = "".join(f"- {{name: {name}, password: '{_HASH}{digest}'}}\n" for name in ("alice", "bob"))
    return f"users:\n{users}roles: [{{principal: User:alice, role: admin}}]\n"


class _Door:
    """An authenticator with all mechanisms on, whose clients never have the same address twice."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        from strata.registry.features.access.authenticator import Authenticator
        from strata.registry.features.access.options import IdentityOptions, OidcOptions, TokenRules
        from strata.registry.features.access.principal_mapping import parse_mapping
        from strata.registry.features.access.proxy import TrustedProxies, parse_networks

        self._key = Ed25519PrivateKey.from_private_bytes(_SECRET)
        self.public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        jwk = {"kty": "OKP", "crv": "Ed25519", "kid": _KID, "x": _b64(self.public).decode()}
        proxies = TrustedProxies(parse_networks("10.0.0.0/8"), b"x-user", b"x-groups")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(_auth_file())
            file.flush()
            options = IdentityOptions(
                Path(file.name),
                OidcOptions(TokenRules(_ISSUER, (_AUDIENCE,)), _ISSUER + "/jwks"),
                parse_mapping("RULE:^CN=(.*?),.*$/$1/"),
                proxies,
            )
            self._authenticator = Authenticator(options, fetch=lambda _: {"keys": [jwk]}, sleep=_no_delay)
        self._loop = asyncio.new_event_loop()
        weakref.finalize(self, self._loop.close)
        self._calls = 0

    def sign(self, data: bytes) -> bytes:
        """Return the issuer's signature."""
        return self._key.sign(data)

    def user(self, *headers: tuple[bytes, bytes], certificate: str | None = None) -> str | None:
        """Return the user of a request from an address that is not trusted; None if it is anonymous or refused."""
        from strata.registry.core.errors import RegistryError

        self._calls += 1
        tls = {"client_cert_chain": (certificate,)} if certificate is not None else {}
        scope = {"client": (f"11.{self._calls}", 1), "headers": [*headers], "extensions": {"tls": tls}}
        try:
            return self._loop.run_until_complete(self._authenticator.authenticate(scope)).user
        except RegistryError as error:
            check(error.status in (401, 429), f"status {error.status}")
            for name, value in error.headers:
                check(
                    (name + value).isascii() and "\n" not in value and len(value) < _MOST_MESSAGE, f"header {value!r}"
                )
            return None


async def _no_delay(_seconds: float) -> None:
    pass


# Authorization headers


def _authorization() -> Run:
    door = _Door()

    def run(data: bytes) -> None:
        kind, value = data[0] % 4, data[1:]
        if kind == 0:
            user = door.user((b"authorization", value))
            check(user is None or _right(value), f"{user} by {value!r}")
        elif kind == 1:
            user = door.user((b"authorization", b"Basic " + base64.b64encode(value)))
            check(user is None or value in (b"alice:secret", b"bob:secret"), f"{user} by {value!r}")
        elif kind == 2:
            user = door.user((b"x-user", value), (b"x-forwarded-for", value), (b"x-groups", value))
            check(user is None, f"{user} by a header of a proxy that is not trusted")
        else:
            user = door.user(certificate=value.decode("latin-1"))
            check(user is None, f"{user} by a certificate")

    return not_empty(run)


def _right(header: bytes) -> bool:
    """Return whether a header holds the name and password of a user."""
    scheme, _, rest = header.partition(b" ")
    with suppress(ValueError):
        given = base64.b64decode(rest.strip(), validate=True)
        return scheme.lower() == b"basic" and given in (b"alice:secret", b"bob:secret")
    return False


def _authorization_seeds() -> list[bytes]:
    good = base64.b64encode(b"alice:secret")
    headers = [b"Basic " + good, b"basic  " + good + b" ", b"Bearer a.b.c", b"Negotiate x", b"Digest username=a", b""]
    raw = [b"alice:secret", b"alice:", b":", b"bob:secre", b"\xff:secret", b"*:secret"]
    pem = b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    return (
        [b"\0" + one for one in headers]
        + [b"\1" + one for one in raw]
        + [b"\2alice", b"\x0210.0.0.1", b"\3" + pem, b"\3"]
    )


# Tokens


def _tokens() -> Run:
    door = _Door()

    def run(data: bytes) -> None:
        kind, content = data[0] % 5, data[1:]
        head, _, claims = content.partition(b"\0")
        signed = _b64(head) + b"." + _b64(claims)
        if kind == 0:  # anything
            token = content
        elif kind == 1:  # signed by the issuer, whatever it says
            token = signed + b"." + _b64(door.sign(signed))
        elif kind == 2:  # without a signature
            token = signed + b"."
        elif kind == 3:  # with the public key as a shared secret
            token = signed + b"." + _b64(hmac.new(door.public, signed, hashlib.sha256).digest())
        else:  # with the signature of another token
            token = signed + b"." + _b64(door.sign(b"another"))
        user = door.user((b"authorization", b"Bearer " + token))
        check(user is None or (kind == 1 and user == _subject(head, claims)), f"{user} by {token!r}")

    return not_empty(run)


def _subject(head: bytes, claims: bytes) -> Any:
    """Return whom a token names that the issuer has signed; None if it is not one for this registry, now."""
    try:
        header, found = json.loads(head), json.loads(claims)
        audiences = found["aud"] if isinstance(found["aud"], list) else [found["aud"]]
        now = time.time()
        fits = (
            header["alg"] == "EdDSA"
            and header.get("kid", _KID) == _KID
            and found["iss"] == _ISSUER
            and _AUDIENCE in audiences
            and int(found["exp"]) > now - 31
            and int(found.get("nbf", 0)) <= now + 31
            and int(found.get("iat", 0)) <= now + 31
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return found.get("sub") if fits else None


def _tokens_seeds() -> list[bytes]:
    end = 4_000_000_000
    good = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": "alice", "exp": end}
    heads = [
        {"alg": "EdDSA", "kid": _KID},
        {"alg": "none"},
        {"alg": "HS256", "kid": _KID},
        {"alg": "EdDSA", "crit": ["x"]},
    ]
    many = [
        good,
        good | {"aud": ["x", _AUDIENCE], "groups": ["a"], "nbf": 1, "iat": 1},
        good | {"exp": 1},
        good | {"iss": "x"},
        good | {"sub": None, "groups": {"a": [1.5]}},
        good | {"exp": 1e308, "nbf": "1"},
        good | {"exp": 10**400},
    ]
    texts = [(json.dumps(head).encode(), json.dumps(claims).encode()) for head in heads for claims in many]
    made = [bytes([kind]) + head + b"\0" + claims for kind in range(1, 5) for head, claims in texts]
    return [*made, *(b"\0" + _b64(head) + b"." + _b64(claims) + b".e30" for head, claims in texts)]


# Auth files


def _auth_files() -> Run:
    from strata.registry.features.access.auth_file import AuthFileError, parse_auth_file

    def run(data: bytes) -> None:
        try:
            auth_file = parse_auth_file(data)
        except AuthFileError as error:
            check(0 < len(str(error)) < _MOST_MESSAGE, "a message without end")
            return
        check(len(auth_file.users) + len(auth_file.rules) / 8 <= len(data), "more than the file can say")
        for name, user in auth_file.users.items():
            check(name == user.name and name.isprintable() and name not in ("", "*"), f"the name {name!r}")
            check(128 * user.password.r << user.password.log2_n <= 128 << 20, "a hash that takes too much memory")

    return run


def _auth_file_seeds() -> list[bytes]:
    karapace = {
        "users": [
            {"username": "a", "algorithm": "sha1", "salt": "s", "password_hash": base64.b64encode(bytes(20)).decode()}
        ],
        "permissions": [{"username": "a", "operation": "Read", "resource": "Subject:a.*"}],
    }
    rule = {
        "principal": "User:a",
        "resource_type": "SUBJECT",
        "resource": "a",
        "operation": "READ",
        "permission": "DENY",
    }
    texts = [
        _auth_file(),
        json.dumps(karapace),
        json.dumps({"rules": [rule]}),
        "users: &a [*a]",
        "a: !!binary b",
        "{",
        "?",
    ]
    return [text.encode() for text in texts]


CREDENTIALS = {
    "authorization": Target(_authorization, _authorization_seeds),
    "tokens": Target(_tokens, _tokens_seeds),
    "auth-files": Target(_auth_files, _auth_file_seeds),
}
