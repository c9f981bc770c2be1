"""Both Spark paths prove who they are, show no secret, and do not insist when the registry refuses them."""

import base64
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession, functions

from harness.certificates import Authority
from strata.serdes.client import ClientSettings
from strata.spark_udfs import decode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

Way = Literal["jvm", "python"]
MakeFrame = Callable[[int, Any, Any], bytes]

_SECRET = "s3cr3t-of-the-job"
_PAIR = base64.b64encode(f"job:{_SECRET}".encode()).decode()


class Provider:
    """A token endpoint over https for one client.

    Attributes:
        asked: the forms of the requests with the right secret.
        refused: how many requests had another secret.
        statuses: statuses with which to answer the next requests.
    """

    def __init__(self, authority: Authority) -> None:
        self.asked: list[dict[str, list[str]]] = []
        self.refused = 0
        self.statuses: list[int] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*authority.issue("provider"))
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self._server.server_port}/token?tenant=hidden"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(provider: "Provider") -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                status, body = provider._answer(self.headers["Authorization"], form)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def _answer(self, authorization: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        if authorization != f"Basic {_PAIR}":
            self.refused += 1
            return 401, {"error": "invalid_client", "error_description": authorization}
        if self.statuses:
            return self.statuses.pop(0), {}
        self.asked.append(form)
        return 200, {"access_token": f"token-{len(self.asked)}", "token_type": "Bearer", "expires_in": 300}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return the CA of the token endpoint."""
    return Authority(tmp_path)


@pytest.fixture
def provider(authority: Authority) -> Iterator[Provider]:
    """Yield a token endpoint."""
    one = Provider(authority)
    yield one
    one.close()


@pytest.fixture(params=["jvm", "python"])
def path(request: pytest.FixtureRequest) -> Way:
    """Return the path of the decode."""
    way: Way = request.param
    return way


def _settings(registry: Any, **options: Any) -> ClientSettings:
    return ClientSettings.of(registry.url, **{"retries": 2, "backoff": 0.01, "timeout": 60.0, **options})


def _oauth(registry: Any, provider: Provider, authority: Authority, **options: Any) -> ClientSettings:
    client = {"client_id": "job", "client_secret": _SECRET, "scope": "registry", "token_ca_file": authority.file}
    return _settings(registry, token_url=provider.url, **{**client, **options})


def _decoded(spark: SparkSession, settings: ClientSettings, frames: list[bytes], path: Way) -> DataFrame:
    """Return the texts of frames, decoded in one task."""
    if path == "jvm":
        install(spark, registry=settings)
    # Spark would decode local rows while it plans the query.
    rows = spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())})).coalesce(1)
    column = decode("value", registry=settings, reader_schema='"string"', mode="PERMISSIVE", path=path)
    return rows.select(functions.upper(column).alias("text"))


def _shown_by(spark: SparkSession, df: DataFrame, capsys: pytest.CaptureFixture[str], *more: object) -> str:
    """Return what a session shows of a query: its plans, its settings, and some errors."""
    df.explain(extended=True)
    listed = [row for command in ("SET", "SET -v") for row in spark.sql(command).collect()]
    return capsys.readouterr().out + str(listed) + str(more)


def test_client_credentials(
    spark: SparkSession,
    scripted_registry: Any,
    frame: MakeFrame,
    provider: Provider,
    authority: Authority,
    path: Way,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A job gets a token with its secret, and the registry gets the token; neither is shown."""
    scripted_registry.accepted = {"Bearer token-1"}
    ids = [scripted_registry.add("string") for _ in range(3)]
    more = {"logical_cluster": "lsrc-1", "identity_pool": "pool-1"}
    settings = _oauth(scripted_registry, provider, authority, **more)
    decoded = _decoded(spark, settings, [frame(one, "string", "a") for one in ids], path)

    assert [("A",)] * 3 == decoded.collect()

    assert [{"grant_type": ["client_credentials"], "scope": ["registry"]}] == provider.asked
    assert {("Bearer token-1", "lsrc-1", "pool-1")} == {
        tuple(one.get(name) for name in ("Authorization", "target-sr-cluster", "Confluent-Identity-Pool-Id"))
        for one in scripted_registry.headers
    }
    shown = _shown_by(spark, decoded, capsys, settings)
    assert not re.findall(f"{_SECRET}|{_PAIR}|token-1", shown)


def test_rejected_token_is_renewed_once(
    spark: SparkSession,
    scripted_registry: Any,
    frame: MakeFrame,
    provider: Provider,
    authority: Authority,
    path: Way,
) -> None:
    """A token that the registry rejects is replaced by a new one, and its rejection is final."""
    scripted_registry.accepted = {"Bearer token-2"}
    schema_id = scripted_registry.add("string")
    settings = _oauth(scripted_registry, provider, authority)

    assert [("A",)] == _decoded(spark, settings, [frame(schema_id, "string", "a")], path).collect()
    assert 2 == len(provider.asked)

    scripted_registry.accepted = set()
    other = scripted_registry.add("string")
    with pytest.raises((Py4JJavaError, PythonException), match="are username and password, or the token, those of"):
        _decoded(spark, settings, [frame(other, "string", "a")], path).collect()
    assert 2 == scripted_registry.asked[other]


def test_endpoint_that_is_busy_is_asked_again(
    spark: SparkSession,
    scripted_registry: Any,
    frame: MakeFrame,
    provider: Provider,
    authority: Authority,
    path: Way,
) -> None:
    """Temporary failures of the token endpoint are retried like those of the registry."""
    provider.statuses = [503, 429]
    schema_id = scripted_registry.add("string")
    settings = _oauth(scripted_registry, provider, authority)

    assert [("A",)] == _decoded(spark, settings, [frame(schema_id, "string", "a")], path).collect()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"client_secret": "other-s3cr3t"}, r"refused the request: invalid_client \(HTTP 401\)"),
        ({"token_ca_file": None}, "is not accepted: "),
    ],
    ids=["wrong secret", "unknown CA"],
)
def test_endpoint_that_gives_no_token(
    spark: SparkSession,
    scripted_registry: Any,
    frame: MakeFrame,
    provider: Provider,
    authority: Authority,
    path: Way,
    wrong: dict[str, Any],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without a token the task fails, names the endpoint without its query, and asks the registry nothing."""
    schema_id = scripted_registry.add("string")
    settings = _oauth(scripted_registry, provider, authority, **wrong)
    decoded = _decoded(spark, settings, [frame(schema_id, "string", "a")], path)

    with pytest.raises((Py4JJavaError, PythonException), match=words) as caught:
        decoded.collect()

    assert not scripted_registry.asked
    assert provider.refused == ("client_secret" in wrong)
    assert "/token" in str(caught.value)
    assert not re.findall(
        f"s3cr3t|{_PAIR}|hidden", _shown_by(spark, decoded, capsys, caught.value).replace(provider.url, "")
    )


@pytest.mark.parametrize(
    ("code", "message", "shown"),
    [
        (40301, "User is denied operation Read on Subject: orders-value", ""),
        (403, "no", ": GET /schemas/ids/1"),
    ],
    ids=["by the registry", "by a proxy"],
)
def test_denied_read_fails_at_once(
    spark: SparkSession, scripted_registry: Any, frame: MakeFrame, path: Way, code: int, message: str, shown: str
) -> None:
    """A missing right fails the task after one request; the error names the subject, or what was asked for."""
    scripted_registry.denied = code, message
    schema_id = scripted_registry.add("string")
    decoded = _decoded(spark, _settings(scripted_registry), [frame(schema_id, "string", "a")] * 100, path)

    words = rf"schema id {schema_id} could not be looked up: {message}{shown} \(HTTP 403, error code {code}\)"
    with pytest.raises((Py4JJavaError, PythonException), match=words):
        decoded.collect()

    assert {schema_id: 1} == dict(scripted_registry.asked)


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        ({"username": "job", "password": _SECRET}, f"Basic {_PAIR}"),
        ({"token": _SECRET}, f"Bearer {_SECRET}"),
    ],
    ids=["basic", "bearer"],
)
def test_rejected_credentials_fail_at_once(
    spark: SparkSession,
    scripted_registry: Any,
    frame: MakeFrame,
    path: Way,
    credentials: dict[str, str],
    header: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Rejected credentials fail the task after one request, and show nowhere; good ones work."""
    schema_id = scripted_registry.add("string")
    settings = _settings(scripted_registry, **credentials)
    decoded = _decoded(spark, settings, [frame(schema_id, "string", "a")], path)
    scripted_registry.accepted = set()

    with pytest.raises(
        (Py4JJavaError, PythonException), match="are username and password, or the token, those of"
    ) as caught:
        decoded.collect()
    assert {schema_id: 1} == dict(scripted_registry.asked)
    assert not re.findall(f"{_SECRET}|{_PAIR}", _shown_by(spark, decoded, capsys, caught.value, settings))

    scripted_registry.accepted = {header}
    assert [("A",)] == decoded.collect()
