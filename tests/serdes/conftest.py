"""Fixtures: the real registry over HTTP, and a server with scripted answers."""

import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import strata.serdes.rules.jsonata  # noqa: F401 - before others import its library, which raises the recursion limit
from harness.jars import cache_folder
from harness.registry import RegistryNode
from strata.serdes.client import RegistryClient


@pytest.fixture(autouse=True)
def recursion_limit() -> Iterator[None]:
    """Restore the recursion limit of the process, which confluent-kafka's rules raise and other tests rely on."""
    limit = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(limit)


@pytest.fixture(scope="session")
def their_cel() -> Iterator[None]:
    """Keep the tables of the parser that confluent-kafka's CEL has on disk: to make them takes half a second."""
    from celpy import celparser  # here, for it takes long to import

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(celparser, "Lark", partial(celparser.Lark, cache=str(cache_folder() / "cel-parser")))
        yield


@pytest.fixture(scope="session")
def registry_url() -> Iterator[str]:
    """Yield the address of a registry for this test session."""
    with RegistryNode("memory:") as node:
        yield node.url


@pytest.fixture
def client(registry_url: str) -> Iterator[RegistryClient]:
    """Yield a client of that registry."""
    with RegistryClient(registry_url) as one:
        yield one


@dataclass
class Request:
    """A request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    peer: int


@dataclass
class Answer:
    """An answer: JSON or raw bytes; with `drop` the connection closes instead; `when` may wait first."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    when: Callable[[], object] | None = None


class ScriptedServer:
    """A server that answers requests in the order of its script, and repeats the last answer."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.script: list[Answer] = []
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # the tests include clients that disconnect
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def _handler(scripted) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.loads(raw) if raw else None
                answer = scripted._next(
                    Request(self.command, self.path, dict(self.headers), body, self.client_address[1])
                )
                if answer.when is not None:
                    answer.when()
                if answer.drop:
                    self.close_connection = True
                    return
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(data)))
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Log nothing; tests look at the requests instead."""

        return Handler


@pytest.fixture
def scripted_servers() -> Iterator[Callable[..., ScriptedServer]]:
    """Yield a factory of servers with a script."""
    servers: list[ScriptedServer] = []

    def make(*answers: Answer, tls: ssl.SSLContext | None = None) -> ScriptedServer:
        server = ScriptedServer(tls)
        server.script = list(answers)
        servers.append(server)
        return server

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def answer() -> type[Answer]:
    """Return the class of scripted answers."""
    return Answer
