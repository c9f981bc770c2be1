"""A real OpenID Connect provider on loopback: `oidc-provider`, which runs on Node.js.

    with OidcProvider(folder, [SigningKey("RS256", "1")], {"strata": "RS256"}, {"groups": ["etl"]}) as provider:
        provider.token("strata")

Its keys belong to the test, which can therefore also sign what the provider would never issue. The package is installed
once into the cache folder, with npm. All providers of a test process run in one process of Node.js, whose start takes
0.7 s of CPU time; so the tests that need one are a group, by the fixture `identity_providers`.
"""

import atexit
import json
import socket
import ssl
import time
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from harness.certificates import certificate_files
from harness.npm import installed
from harness.processes import Process, free_port, start_tied, stop_process, tail

__all__ = ["CLIENT", "PEOPLE", "OidcProvider", "SigningKey"]

CLIENT = "etl"
"""The client that gets tokens, whose subject is its own name."""

PEOPLE = "pages"
"""The client at which people sign in, with any name and password; its secret is `secret`."""

_PACKAGE = "oidc-provider@9.13.3"
_SCRIPT = Path(__file__).with_name("node") / "oidc_provider.mjs"
_READY_S, _POLL_S = 180.0, 0.02
_CURVES: dict[str, Any] = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}


@dataclass(frozen=True)
class SigningKey:
    """A private key for one algorithm.

    Attributes:
        algorithm: the algorithm, such as `RS256`.
        kid: the name of the key.
        bits: the size of an RSA key.
    """

    algorithm: str
    kid: str
    bits: int = 2048

    @cached_property
    def private(self) -> Any:
        """The key itself."""
        if self.algorithm in _CURVES:
            return ec.generate_private_key(_CURVES[self.algorithm]())
        if self.algorithm == "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        return rsa.generate_private_key(public_exponent=65537, key_size=self.bits)

    def jwk(self, *, public: bool = False) -> dict[str, Any]:
        """Return the key, or its public part, as a JSON Web Key."""
        key = self.private.public_key() if public else self.private
        found: Any = jwt.get_algorithm_by_name(self.algorithm).to_jwk(key, as_dict=True)
        found.pop("key_ops", None)
        return {**found, "kid": self.kid, "alg": self.algorithm, "use": "sig"}

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """Return a token with these claims; a header of None leaves its field out."""
        fields = {name: value for name, value in ({"kid": self.kid} | header).items() if value is not None}
        return jwt.encode(dict(claims), self.private, self.algorithm, headers=fields)


class OidcProvider:
    """A provider that gives the client `CLIENT` access tokens.

    Args:
        folder: an empty folder for its files.
        keys: its keys; the first one of an algorithm signs.
        audiences: for each audience, the algorithm of its tokens.
        claims: claims that each token has.
        redirect_uri: where people come back to who sign in at the client `PEOPLE`; None: they cannot sign in.
    """

    def __init__(
        self,
        folder: Path,
        keys: Sequence[SigningKey],
        audiences: Mapping[str, str],
        claims: Mapping[str, Any],
        redirect_uri: str | None = None,
    ) -> None:
        self._folder, self._keys = folder, list(keys)
        self._audiences, self._claims = dict(audiences), dict(claims)
        self._redirect_uri = redirect_uri
        self._port = free_port()
        self.issuer = f"https://127.0.0.1:{self._port}"
        self.ca_file, self._key_file = certificate_files(folder)
        self._tls = ssl.create_default_context(cafile=self.ca_file)
        self._is_running = False

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def jwks_url(self) -> str:
        """The URL of its keys."""
        return f"{self.issuer}/jwks"

    def stop(self) -> None:
        """Stop the provider; a second call does nothing."""
        if self._is_running:
            self._is_running = False
            _host().ask("DELETE", f"/{self._port}")

    def token(self, audience: str) -> str:
        """Return an access token for an audience."""
        fields = {"grant_type": "client_credentials", "resource": audience}
        credentials = b64encode(f"{CLIENT}:secret".encode()).decode()
        request = urllib.request.Request(  # noqa: S310 - a URL of this file
            f"{self.issuer}/token",
            urllib.parse.urlencode(fields).encode(),
            {"Authorization": f"Basic {credentials}"},
        )
        with urllib.request.urlopen(request, timeout=30, context=self._tls) as answer:  # noqa: S310 - the same
            return str(json.load(answer)["access_token"])

    def _start(self) -> None:
        content = {
            "issuer": self.issuer,
            "port": self._port,
            "certificate": self.ca_file,
            "key": self._key_file,
            "jwks": {"keys": [key.jwk() for key in self._keys]},
            "clients": [CLIENT],
            "audiences": self._audiences,
            "claims": self._claims,
            "people": PEOPLE,
            "redirect_uri": self._redirect_uri,
        }
        _host().ask("POST", "/", json.dumps(content).encode())
        self._is_running = True


class _Host:
    """The process of Node.js that runs the providers."""

    def __init__(self) -> None:
        folder = TemporaryDirectory(prefix="strata-oidc-")
        atexit.register(folder.cleanup)
        self._log, self._port = Path(folder.name) / "providers.log", free_port()
        command = ["node", str(_SCRIPT), str(installed(_PACKAGE)), str(self._port)]
        self._process: Process = start_tied(command, log=self._log)
        atexit.register(stop_process, self._process)
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Node.js did not start:\n{tail(self._log)}")
            time.sleep(_POLL_S)

    def ask(self, method: str, path: str, body: bytes | None = None) -> None:
        """Start or stop a provider, and wait until that is done.

        Raises:
            RuntimeError: the process has ended; the message contains the end of its log.
        """
        url = f"http://127.0.0.1:{self._port}{path}"
        request = urllib.request.Request(url, body, method=method)
        try:
            urllib.request.urlopen(request, timeout=_READY_S).close()  # noqa: S310 - the same
        except OSError as error:
            raise RuntimeError(f"{method} {path}: {error}\n{tail(self._log)}") from None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5):
                return True
        except OSError:
            return False


@cache
def _host() -> _Host:
    return _Host()
