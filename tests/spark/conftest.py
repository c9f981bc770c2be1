"""Fixtures: a Spark session for all tests here, registries with writer schemas, and frames to decode."""

import io
import json
import os
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from uuid import NAMESPACE_OID, UUID, uuid5

import fastavro
import pyspark
import pytest
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from harness import spark_jar
from harness.avro_cases import Case, Maker
from harness.decode_executors import settings
from harness.jars import protobuf_jars, spark_kafka_jars
from harness.java_calls import quick_calls
from harness.java_probes import JavaProbes, RunJava
from harness.processes import free_port
from harness.registry import RegistryNode
from harness.spark_files import LOCAL_FILES, class_path
from harness.spark_jvm import spark_java, spark_jvm, table_jars
from harness.spark_servers import GENERATED, INTERPRETED, small
from strata.serdes.client import RegistryClient
from strata.spark_udfs import decode, install
from strata.spark_udfs.decoding.type_limits import UnsupportedSchema

Frame = Callable[[int, Any, Any], bytes]
_SETTINGS = {
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.python.daemon.module": "harness.spark_daemon",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.icu.caseMappings.enabled": "false",  # or the first `upper` would take two seconds
    # or the workers of functions would have another environment than those of local rows, and so a daemon of their own
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}


@pytest.fixture
def pandas_of_old() -> None:
    """Skip a test of the pandas path, which only Spark 4.0 takes, where Spark hands arrays to pandas differently."""
    pytest.importorskip("pandas")
    if pyspark.__version__.split(".")[:2] > ["4", "1"]:
        pytest.skip("this Spark hands columns to pandas in another way, and has arrow_udf")


@pytest.fixture(scope="session")
def started_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start the JVM of the session's Spark, and yield the session's settings."""
    folder = tmp_path_factory.mktemp("spark")
    spark_jar.build()
    os.environ |= {"PYSPARK_PYTHON": sys.executable, **class_path(*table_jars(), *spark_kafka_jars())}
    master = {"spark.master": "local[2]", "spark.app.name": "strata-tests"}
    java = {"spark.driver.extraJavaOptions": spark_jvm(tables=True)}
    conf = master | small(folder) | java | LOCAL_FILES | _SETTINGS | INTERPRETED
    with quick_calls():
        SparkContext._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll([*conf.items()]))
        yield conf


@pytest.fixture(scope="session")
def spark(started_jvm: dict[str, str]) -> Iterator[SparkSession]:
    """Yield the session's Spark, small, in UTC, which interprets its queries."""
    session = SparkSession.builder.config(map=started_jvm).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def generated_code(spark: SparkSession) -> Iterator[None]:
    """Let Spark generate code, as it does by default; compiling it would take a third of the time of all tests here."""
    with settings(spark, GENERATED):
        yield


@pytest.fixture(scope="session")
def registry() -> Iterator[RegistryClient]:
    """Yield a client of a real registry; it caches no unknown ids, which another test's damaged frames may use."""
    with RegistryNode("memory:") as node, RegistryClient(node.url, missing_ttl=0) as client:
        yield client


@pytest.fixture
def client(registry: RegistryClient) -> Iterator[RegistryClient]:
    """Yield the registry's client while compatibility checks are off."""
    registry.set_config("NONE")
    yield registry
    registry.set_config("BACKWARD")


@pytest.fixture
def installed(spark: SparkSession, registry: RegistryClient) -> None:
    """Bring the JVM function for the registry into the session."""
    install(spark, registry=registry.settings)


@pytest.fixture(scope="session")
def families() -> Callable[[Random, int, int], list[list[Case]]]:
    """Return a maker of random Avro cases: so many reader schemas that Spark can express, so many writers for each."""

    def make(chance: Random, readers: int, writers: int) -> list[list[Case]]:
        maker = Maker(chance)
        made: list[list[Case]] = []
        while len(made) < readers:
            family = maker.family(writers)
            try:
                decode("value", registry="http://nowhere", reader_schema=family[0].reader, path="python")
            except UnsupportedSchema:
                continue
            made.append(family)
        return made

    return make


@pytest.fixture(scope="session")
def run_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunJava]:
    """Yield a function that runs a class of `java/`: JSON values in, JSON values out, a line each."""
    jars = [spark_jar.build(), *protobuf_jars()]
    classes = spark_jar.compiled(sorted((Path(__file__).parent / "java").rglob("*.java")), *jars)
    command = [*spark_java(classes, *jars), "--add-opens=java.base/java.nio=ALL-UNNAMED", "strata.spark.Probes"]
    with JavaProbes(command, tmp_path_factory.mktemp("probes") / "jvm.log") as probes:
        yield probes.run


class ScriptedRegistry:
    """A registry that counts its requests and can fail on demand, for states that a real one seldom has.

    Attributes:
        asked: number of requests for each schema id or GUID.
        status: status of every response, if set.
        page: body of every response, if set, such as the page of a proxy.
        stalls: whether a response stops in the middle and leaves the connection open.
        authorizations: the Authorization headers received.
        headers: the headers of every request.
        accepted: the Authorization headers that do not get a 401, if set.
        denied: error code and message of a 403 for every request, if set.
    """

    def __init__(self) -> None:
        self.asked: Counter[int | str] = Counter()
        self.status: int | None = None
        self.page: bytes | None = None
        self.stalls = False
        self._closing = threading.Event()
        self.authorizations: set[str] = set()
        self.headers: list[dict[str, str]] = []
        self.accepted: set[str] | None = None
        self.denied: tuple[int, str] | None = None
        self._scheme = "http"
        self._schemas: dict[int, dict[str, Any]] = {}
        # A port that no test has used: for the whole session, Spark caches what a registry at an address has answered.
        self._server = ThreadingHTTPServer(("127.0.0.1", free_port()), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def url(self) -> str:
        """Return the registry's address."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def wrap(self, tls: ssl.SSLContext) -> None:
        """Use https from now on."""
        self._scheme = "https"
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients disconnect in some cases

    def add(self, schema: Any) -> int:
        """Add an Avro schema under the next id."""
        return self.add_text(json.dumps(schema), {})

    def add_text(self, text: str, properties: dict[str, Any]) -> int:
        """Add any schema text under the next id."""
        schema_id = len(self._schemas) + 1
        self._schemas[schema_id] = {"schema": text, "guid": str(uuid5(NAMESPACE_OID, text)), **properties}
        return schema_id

    def guid(self, schema_id: int) -> UUID:
        """Return the GUID of an added schema."""
        return UUID(self._schemas[schema_id]["guid"])

    def close(self) -> None:
        """Stop the server; its port refuses connections from then on."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, path: str) -> tuple[int, Any]:
        if not path.startswith("/schemas/"):
            return 404, {"error_code": 40401, "message": "Subject not found"}
        kind, _, name = path.partition("?")[0].removeprefix("/schemas/").partition("/")
        key = name if kind == "guids" else int(name)
        self.asked[key] += 1
        if self.status is not None:
            return self.status, {"error_code": self.status, "message": "out of order"}
        known = {one["guid"]: one for one in self._schemas.values()} if kind == "guids" else self._schemas
        if key not in known:
            return 404, {"error_code": 40403, "message": f"Schema {key} not found"}
        return 200, known[key]

    def _handler(registry: "ScriptedRegistry") -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                given = self.headers.get("Authorization", "")
                registry.authorizations.add(given)
                registry.headers.append(dict(self.headers))
                status, body = registry._answer(self.path)
                if registry.accepted is not None and given not in registry.accepted:
                    status, body = 401, {"error_code": 401, "message": "Unauthorized"}
                elif registry.denied is not None:
                    status, body = 403, dict(zip(("error_code", "message"), registry.denied, strict=True))
                data = json.dumps(body).encode() if registry.page is None else registry.page
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if registry.stalls:
                    self.wfile.write(data[:10])
                    registry._closing.wait(60)
                else:
                    self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@pytest.fixture
def scripted_registry() -> Iterator[ScriptedRegistry]:
    """Yield a registry under the test's control."""
    registry = ScriptedRegistry()
    yield registry
    registry.close()


@pytest.fixture(scope="session")
def frame() -> Frame:
    """Return a factory of frames from a schema id, a writer schema and a value, by fastavro."""

    def make(schema_id: int, schema: Any, value: Any) -> bytes:
        payload = io.BytesIO()
        fastavro.schemaless_writer(payload, fastavro.parse_schema(schema), value)
        return b"\0" + schema_id.to_bytes(4, "big") + payload.getvalue()

    return make


def _record(name: str, *fields: tuple[Any, ...]) -> dict[str, Any]:
    """Return a record of fields (name, type) or (name, type, default)."""
    return {
        "type": "record",
        "name": name,
        "fields": [dict(zip(("name", "type", "default"), one, strict=False)) for one in fields],
    }


def _logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


_EVERYTHING = _record(
    "Everything",
    ("i", "int"),
    ("l", "long"),
    ("f", "float"),
    ("d", "double"),
    ("t", "boolean"),
    ("s", "string"),
    ("b", "bytes"),
    ("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}),
    ("x", {"type": "fixed", "name": "X", "size": 2}),
    ("opt", ["null", "string"]),
    ("money", _logical("bytes", "decimal", precision=20, scale=2)),
    ("big", {"type": "fixed", "name": "Big", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 4}),
    ("day", _logical("int", "date")),
    ("ms", _logical("int", "time-millis")),
    ("us", _logical("long", "time-micros")),
    ("at", _logical("long", "timestamp-millis")),
    ("at_us", _logical("long", "timestamp-micros")),
    ("at_ns", _logical("long", "timestamp-nanos")),
    ("local", _logical("long", "local-timestamp-millis")),
    ("uuid", _logical("string", "uuid")),
    ("il", ["int", "long"]),
    ("u", ["null", "int", "string", "X"]),
    ("tags", {"type": "array", "items": ["null", "string"]}),
    ("by", {"type": "map", "values": _record("Point", ("x", "double"), ("y", ["null", "double"]))}),
    ("points", {"type": "array", "items": "Point"}),
    ("nested", ["null", _record("Nested", ("at", ["null", _logical("long", "timestamp-micros")]))]),
)
_FIRST = {
    "i": -1,
    "l": 2**40,
    "f": 0.5,
    "d": float("nan"),
    "t": True,
    "s": "zürich",
    "b": b"\0\xff",
    "e": "B",
    "x": b"xy",
    "opt": None,
    "money": Decimal("-123456789012345678.90"),
    "big": Decimal("1.5"),
    "day": date(1900, 1, 1),
    "ms": 1,
    "us": 2,
    "at": datetime(1, 1, 1, tzinfo=UTC),
    "at_us": datetime(2026, 3, 1, 12, 0, 0, 5, UTC),
    "at_ns": 3,
    "local": datetime(2500, 1, 1),  # noqa: DTZ001 - a local timestamp has no zone
    "uuid": "a-b",
    "il": 5,
    "u": "text",
    "tags": ["a", None],
    "by": {"k": {"x": float("inf"), "y": None}},
    "points": [{"x": 1.0, "y": 2.0}],
    "nested": None,
}
_SECOND = {
    **_FIRST,
    "opt": "o",
    "u": None,
    "tags": [],
    "by": {},
    "points": [],
    "nested": {"at": datetime(9999, 12, 31, tzinfo=UTC)},
}


@pytest.fixture(scope="session")
def everything() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a schema with every Avro type, and two values of it."""
    return _EVERYTHING, [_FIRST, _SECOND]
