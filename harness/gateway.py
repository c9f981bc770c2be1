"""A gateway on loopback in front of a service: a token endpoint, an HTTP proxy, and a door that only tokens open.

with gateway(service_url) as door:
HttpSettings(urls=(door.url,), token_url=door.token_url, client_id=CLIENT, client_secret=SECRET)
"""

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import urllib3

__all__ = ["CLIENT", "SECRET", "Gateway", "gateway"]

CLIENT, SECRET = "etl", "s3cr3t-of-the-client"
_TOKENS = "/token"
_DEAD = "dead.invalid"


@dataclass
class Gateway:
    """The settings of a gateway, and what it has seen.

    Attributes:
        url: the address behind which only tokens of `token_url` open the service.
        life: the lifetime of its tokens, in seconds.
        scopes: the scopes that were asked for, one for each token.
        through: the requests that used it as a proxy: method and URL; it does not reach the host dead.invalid.
    """

    url: str
    life: int = 300
    scopes: list[str] = field(default_factory=list)
    through: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)

    @property
    def token_url(self) -> str:
        """The address of the token endpoint."""
        return self.url + _TOKENS

    def issue(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        """Answer a request for a token."""
        expected = f"Basic {base64.b64encode(f'{CLIENT}:{SECRET}'.encode()).decode()}"
        if authorization != expected or form.get("grant_type") != ["client_credentials"]:
            return 401, b'{"error":"invalid_client"}'
        token = f"token-{len(self.scopes)}"
        self.scopes += form.get("scope", [""])
        self.tokens.add(f"Bearer {token}")
        return 200, b'{"access_token":"%s","token_type":"Bearer","expires_in":%d}' % (token.encode(), self.life)


@contextmanager
def gateway(target: str) -> Iterator[Gateway]:
    """Yield a gateway in front of the service at a URL, until the block ends."""
    pool = urllib3.PoolManager(retries=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            authorization = self.headers.get("Authorization", "")
            parts = urlsplit(self.path)
            if parts.netloc:
                door.through.append(f"{self.command} {parts.scheme}://{parts.netloc}{parts.path}")
            if parts.hostname == _DEAD:
                self.answer(502, b"no such host")
            elif parts.path == _TOKENS:
                self.answer(*door.issue(authorization, parse_qs(body.decode())))
            elif authorization not in door.tokens:
                self.answer(401, b'{"error_code":401,"message":"Unauthorized"}')
            else:
                way = parts._replace(scheme="", netloc="").geturl()
                headers = {"Content-Type": "application/json"}
                relayed = pool.request(self.command, target + way, body=body or None, headers=headers)
                self.answer(relayed.status, relayed.data)

        do_GET = do_POST = do_PUT = do_DELETE = handle_one  # noqa: N815 - names of the standard library

        def answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        door = Gateway(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield door
        finally:
            server.shutdown()
            thread.join()
