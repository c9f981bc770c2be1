"""A Spark session for all tests here, registries to look writer schemas up at, and frames to decode."""

import io
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from harness.registry import RegistryNode
from serdes.client import RegistryClient

Frame = Callable[[int, Any, Any], bytes]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session's Spark, small, in UTC."""
    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("strata-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def registry() -> Iterator[RegistryClient]:
    """A client of a real registry."""
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        yield client


class ScriptedRegistry:
    """A registry that counts what it is asked and can be out of order: the states that a real one is seldom in.

    Attributes:
        asked: how often each schema id was asked for.
        status: when set, what every request is answered with.
        authorizations: the Authorization headers that came.
    """

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()
        self.status: int | None = None
        self.authorizations: set[str] = set()
        self._schemas: dict[int, dict[str, Any]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def add(self, schema: Any) -> int:
        """Make an Avro schema known under the next id."""
        return self.add_text(json.dumps(schema), {})

    def add_text(self, text: str, properties: dict[str, Any]) -> int:
        """Make any schema text known under the next id."""
        schema_id = len(self._schemas) + 1
        self._schemas[schema_id] = {"schema": text, **properties}
        return schema_id

    def close(self) -> None:
        """End the server; its port answers nobody from then on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, path: str) -> tuple[int, Any]:
        schema_id = int(path.rpartition("/")[2])
        self.asked[schema_id] += 1
        if self.status is not None:
            return self.status, {"error_code": self.status, "message": "out of order"}
        if schema_id not in self._schemas:
            return 404, {"error_code": 40403, "message": f"Schema {schema_id} not found"}
        return 200, self._schemas[schema_id]

    def _handler(registry: "ScriptedRegistry") -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.authorizations.add(self.headers.get("Authorization", ""))
                status, body = registry._answer(self.path)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def scripted_registry() -> Iterator[ScriptedRegistry]:
    """A registry under the test's control."""
    registry = ScriptedRegistry()
    yield registry
    registry.close()


@pytest.fixture(scope="session")
def frame() -> Frame:
    """Makes a frame of a schema id, a writer schema and a value, by fastavro."""

    def make(schema_id: int, schema: Any, value: Any) -> bytes:
        payload = io.BytesIO()
        fastavro.schemaless_writer(payload, fastavro.parse_schema(schema), value)
        return b"\0" + schema_id.to_bytes(4, "big") + payload.getvalue()

    return make
