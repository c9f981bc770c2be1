"""Key management services: Vault's, Azure's and Google's on loopback in their documented wire form; of AWS, moto.

    with fake_kms() as kms:
        kms.vault.rotate("k")
        HcVault({"token.id": kms.vault.token}, {}).wrap(f"{kms.url}/transit/keys/k", material)

Keys of Vault exist from their first use. Sources: the API of Vault's transit engine and AppRole, the REST API 7.4 of
Key Vault, the REST API v1 of Cloud KMS.
"""

import base64
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256

from harness.aws_sessions import fake_aws

__all__ = ["FakeAzure", "FakeGoogle", "FakeKms", "FakeVault", "aws_kms", "fake_kms", "rsa_key"]

Answer = tuple[int, Mapping[str, Any]]
_OAEP = padding.OAEP(padding.MGF1(SHA256()), SHA256(), None)


@cache
def rsa_key(_number: int = 0) -> rsa.RSAPrivateKey:
    """Return a private key, the same for a number: they take long to make."""
    return rsa.generate_private_key(65537, 2048)


def _sealed(key: bytes, plain: bytes) -> bytes:
    nonce = os.urandom(12)
    return nonce + AESGCM(key).encrypt(nonce, plain, None)


def _opened(key: bytes, sealed: bytes) -> bytes:
    return AESGCM(key).decrypt(sealed[:12], sealed[12:], None)


@dataclass
class FakeVault:
    """A transit engine at the mount `transit`, and AppRole.

    Attributes:
        tokens: the tokens that are in force.
        lease: the seconds of the lease of AppRole's tokens.
        logins: how many times AppRole was used.
        oldest: the least version that decrypts.
    """

    tokens: set[str] = field(default_factory=lambda: {"root"})
    role: tuple[str, str] = ("role", "secret of the role")
    lease: int = 3600
    logins: int = 0
    oldest: int = 1
    keys: dict[str, list[bytes]] = field(default_factory=dict)

    def rotate(self, name: str) -> None:
        """Add a version to a key."""
        self.keys.setdefault(name, []).append(AESGCM.generate_key(256))

    def answer(self, path: str, headers: Mapping[str, str], body: Mapping[str, str]) -> Answer:
        """Answer a request below `/v1/`."""
        if path == "auth/approle/login":
            if (body.get("role_id"), body.get("secret_id")) != self.role:
                return 400, {"errors": ["invalid role or secret ID"]}
            self.logins += 1
            token = f"by-role-{self.logins}"
            self.tokens.add(token)
            return 200, {"auth": {"client_token": token, "lease_duration": self.lease}}
        if headers.get("X-Vault-Token") not in self.tokens:
            return 403, {"errors": ["permission denied"]}
        mount, action, name = (*path.rsplit("/", 2), "", "")[:3]
        if mount not in ("transit", "team/transit"):
            return 404, {"errors": ["no handler for route"]}
        if action == "encrypt":
            if name not in self.keys:
                self.rotate(name)
            versions = self.keys[name]
            sealed = _sealed(versions[-1], base64.b64decode(body["plaintext"]))
            return 200, {"data": {"ciphertext": f"vault:v{len(versions)}:{base64.b64encode(sealed).decode()}"}}
        parts = body["ciphertext"].split(":")
        number = int(parts[1][1:])
        if number < self.oldest:
            return 400, {"errors": ["ciphertext or signature version is disallowed by policy (too old)"]}
        if name not in self.keys:
            return 400, {"errors": ["encryption key not found"]}
        try:
            plain = _opened(self.keys[name][number - 1], base64.b64decode(parts[2]))
        except (InvalidTag, IndexError):
            return 400, {"errors": ["cipher: message authentication failed"]}
        return 200, {"data": {"plaintext": base64.b64encode(plain).decode()}}


@dataclass
class FakeAzure:
    """A vault with RSA keys of several versions.

    Attributes:
        tokens: the tokens that open it.
        keys: the versions of each key, oldest first: their names and private keys.
    """

    tokens: set[str] = field(default_factory=lambda: {"azure-token"})
    keys: dict[str, list[tuple[str, rsa.RSAPrivateKey]]] = field(default_factory=dict)

    def rotate(self, name: str) -> None:
        """Add a version to a key."""
        versions = self.keys.setdefault(name, [])
        versions.append((os.urandom(16).hex(), rsa_key(len(versions))))

    def answer(self, base: str, path: str, query: str, headers: Mapping[str, str], body: Mapping[str, str]) -> Answer:
        """Answer a request below `/keys/`."""
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return 401, {"error": {"code": "Unauthorized", "message": "AKV10000"}}
        if parse_qs(query).get("api-version") != ["7.4"]:
            return 400, {"error": {"code": "BadParameter", "message": "api-version"}}
        name, version, action = (*path.split("/"), "", "")[:3]
        versions = self.keys.get(name)
        if versions is None:
            return 404, {"error": {"code": "KeyNotFound", "message": f"A key with {name} was not found"}}
        if version == "versions":
            return self._page(base, name, parse_qs(query))
        found = dict(versions).get(version) if version else versions[-1][1]
        if found is None:
            return 404, {"error": {"code": "KeyNotFound", "message": "version"}}
        value = base64.urlsafe_b64decode(body["value"] + "=" * (-len(body["value"]) % 4))
        try:
            made = found.public_key().encrypt(value, _OAEP) if action == "encrypt" else found.decrypt(value, _OAEP)
        except ValueError:
            return 400, {"error": {"code": "BadParameter", "message": "The parameter is incorrect"}}
        kid = f"{base}/keys/{name}/{version or versions[-1][0]}"
        return 200, {"kid": kid, "value": base64.urlsafe_b64encode(made).rstrip(b"=").decode()}

    def _page(self, base: str, name: str, query: Mapping[str, list[str]]) -> Answer:
        """Return one version per page."""
        at = int(query.get("at", ["0"])[0])
        versions = self.keys[name]
        item = {"kid": f"{base}/keys/{name}/{versions[at][0]}", "attributes": {"created": 1_700_000_000 + at}}
        more = f"{base}/keys/{name}/versions?api-version=7.4&at={at + 1}" if at + 1 < len(versions) else None
        return 200, {"value": [item], "nextLink": more}


@dataclass
class FakeGoogle:
    """Keys of Cloud KMS, with a token endpoint for service accounts.

    Attributes:
        assertions: the JWTs for which it gave tokens.
        tokens: the tokens that are in force.
    """

    assertions: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    keys: dict[str, list[bytes]] = field(default_factory=dict)

    def rotate(self, name: str) -> None:
        """Add a version to a key."""
        self.keys.setdefault(name, []).append(AESGCM.generate_key(256))

    def token(self, form: Mapping[str, list[str]]) -> Answer:
        """Answer a request for a token."""
        self.assertions += form.get("assertion", [])
        token = f"google-{len(self.assertions)}"
        self.tokens.add(token)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600}

    def answer(self, path: str, headers: Mapping[str, str], body: Mapping[str, str]) -> Answer:
        """Answer a request below `/v1/projects/`."""
        if headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            return 401, {"error": {"status": "UNAUTHENTICATED", "message": "Request had invalid credentials."}}
        name, _, action = path.rpartition(":")
        name, _, version = name.partition("/cryptoKeyVersions/")
        versions = self.keys.get(name)
        if versions is None:
            return 404, {"error": {"status": "NOT_FOUND", "message": f"{name} not found."}}
        if action == "encrypt":
            number = int(version or len(versions))
            sealed = bytes([number]) + _sealed(versions[number - 1], base64.b64decode(body["plaintext"]))
            return 200, {"name": f"{name}/cryptoKeyVersions/{number}", "ciphertext": base64.b64encode(sealed).decode()}
        sealed = base64.b64decode(body["ciphertext"])
        try:
            plain = _opened(versions[sealed[0] - 1], sealed[1:])
        except (InvalidTag, IndexError):
            return 400, {"error": {"status": "INVALID_ARGUMENT", "message": "Decryption failed: verify the key."}}
        return 200, {"plaintext": base64.b64encode(plain).decode()}


@dataclass
class FakeKms:
    """The services, at one address; `requests` are the methods and paths that came, `headers` those of the last one."""

    url: str
    vault: FakeVault = field(default_factory=FakeVault)
    azure: FakeAzure = field(default_factory=FakeAzure)
    google: FakeGoogle = field(default_factory=FakeGoogle)
    requests: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    def answer(self, path: str, query: str, headers: Mapping[str, str], data: bytes) -> Answer:
        """Answer a request."""
        if path == "/token":
            return self.google.token(parse_qs(data.decode()))
        body = json.loads(data) if data else {}
        if path.startswith("/v1/projects/"):
            return self.google.answer(path.removeprefix("/v1/"), headers, body)
        if path.startswith("/keys/"):
            return self.azure.answer(self.url, path.removeprefix("/keys/"), query, headers, body)
        if re.match("/v1/.", path):
            return self.vault.answer(path.removeprefix("/v1/"), headers, body)
        return 404, {}


@contextmanager
def aws_kms() -> Iterator[Any]:
    """Yield a client of AWS KMS: moto in this process, until the block ends."""
    import boto3  # type: ignore[import-untyped]  # here: their import takes long
    from moto.kms import models

    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, AWS_EC2_METADATA_DISABLED="true"))
        # Each key would make an RSA key, too, which a symmetric one does not use.
        name = "generate_private_key"
        stack.enter_context(patch.object(models, name, cache(getattr(models, name))))
        stack.enter_context(fake_aws())
        yield boto3.client("kms", region_name="eu-west-1")


@contextmanager
def fake_kms() -> Iterator[FakeKms]:
    """Yield the three services, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            kms.requests.append(f"{self.command} {parts.path}")
            kms.headers = {name.title(): value for name, value in self.headers.items()}
            status, content = kms.answer(parts.path, parts.query, kms.headers, data)
            answer = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = handle_one  # noqa: N815 - names of the standard library

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        kms = FakeKms(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield kms
        finally:
            server.shutdown()
            thread.join()
