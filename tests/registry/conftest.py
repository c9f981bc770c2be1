"""A registry on a memory log that answers over real HTTP from a thread of the test process."""

import http.client
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest

from harness.prometheus import Prometheus, find_tool
from harness.registry import RegistryNode
from harness.serving import memory_settings, serving
from harness.waiting import until
from strata.registry.app import create_app
from strata.registry.settings import Settings
from strata.storage.log import Log, MemoryLog

JSON = "application/vnd.schemaregistry.v1+json"


@dataclass
class Api:
    """A client of a registry; `headers` holds the headers of the last answer.

    Requests of the main thread use the connection `kept` if there is one, which takes half the time.
    """

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    kept: http.client.HTTPConnection | None = None

    def call(self, method, path, body=None, **headers):
        """Send one request; pass a `str` or `bytes` body unchanged, and encode any other body as JSON."""
        data = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
        sent = {"Content-Type": JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
        is_kept = self.kept is not None and threading.current_thread() is threading.main_thread()
        connection = self.kept if is_kept else http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
            response = connection.getresponse()
            raw = response.read()
        except BaseException:
            connection.close()
            raise
        if not is_kept:
            connection.close()
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        try:
            return response.status, json.loads(raw)
        except ValueError:
            return response.status, raw.decode()

    def get(self, path, **headers):
        """GET a path."""
        return self.call("GET", path, **headers)

    def post(self, path, body, **headers):
        """POST a body."""
        return self.call("POST", path, body, **headers)

    def put(self, path, body, **headers):
        """PUT a body."""
        return self.call("PUT", path, body, **headers)

    def delete(self, path, **headers):
        """DELETE a path."""
        return self.call("DELETE", path, **headers)

    def register(self, subject, schema, query="", **body):
        """Register a schema, given as text or as a value to encode as JSON."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        return self.post(f"/subjects/{quote(subject, safe='')}/versions{query}", {"schema": text, **body})

    def placed(self, subject, schema, query="", **body):
        """Register a schema, check that the registry accepts it, and return its id and version."""
        status, answer = self.register(subject, schema, query, **body)
        assert 200 == status, answer
        return answer["id"], answer["version"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, as the service does."""
    return "asyncio"


@contextmanager
def running(log: Log | None = None, settings: Settings | None = None) -> Iterator[Api]:
    """Serve a registry over a fresh log or a given one until the block ends."""
    app = create_app(log or MemoryLog(), settings or memory_settings())
    with serving(lambda _: app) as port, closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as kept:
        yield Api(port, kept=kept)


@pytest.fixture
def api() -> Iterator[Api]:
    """Yield a fresh registry."""
    with running() as fresh:
        yield fresh


@pytest.fixture
def start() -> Iterator[Callable[[Log], Api]]:
    """Start a registry over a log that the test provides."""
    with ExitStack() as stack:
        yield lambda log: stack.enter_context(running(log))


@pytest.fixture
def configured() -> Iterator[Callable[..., Api]]:
    """Start a registry with settings of the test, over a fresh log or a given one."""
    with ExitStack() as stack:
        yield lambda settings, log=None: stack.enter_context(running(log, settings))


@pytest.fixture
def logging_as_before():
    """What a start in this process does to logging ends with the test."""
    loggers = [logging.getLogger(name) for name in (None, "uvicorn", "urllib3")]
    before = [(logger.level, [*logger.handlers]) for logger in loggers]
    yield
    for logger, (level, handlers) in zip(loggers, before, strict=True):
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """Return the OpenAPI document, which takes more than a second; its tests run in one process."""
    with running() as fresh:
        return fresh.get("/openapi.json")[1]


@pytest.fixture(scope="session")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Prometheus, RegistryNode] | None]:
    """Yield the session's Prometheus and the node of two workers that it scrapes; None if there is no Prometheus."""
    if find_tool("prometheus") is None:
        yield None
        return
    node = RegistryNode(f"sqlite:///{tmp_path_factory.mktemp('scraped')}/strata.db", "--workers=2")
    with Prometheus([f"127.0.0.1:{node.port}"], env="test") as prometheus, node:
        until(lambda: "ready in" in node.output)
        yield prometheus, node


@pytest.fixture(scope="module")
def shared_log() -> Iterator[tuple[MemoryLog, Api]]:
    """Yield a log and its registry for a whole file of tests."""
    log = MemoryLog()
    with running(log) as shared:
        yield log, shared


@pytest.fixture(scope="module")
def shared_api(shared_log: tuple[MemoryLog, Api]) -> Api:
    """Return one registry for a whole file of tests, which must not interfere with each other."""
    return shared_log[1]
