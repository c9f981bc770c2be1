"""Both Spark paths read and write with a real service that has TLS and access control."""

import re
import shutil
from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import SparkSession, functions

from harness.oidc import CLIENT, OidcProvider, SigningKey
from harness.secured import AUDIENCE, PASSWORD, SecuredNode
from strata.serdes.avro import AvroSerializer
from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.errors import RegistryError
from strata.spark_udfs import decode, encode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="needs Node.js and npm"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

Way = Literal["jvm", "python"]

_ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}'


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    """Yield a provider of tokens whose client is in the orders team."""
    folder = tmp_path_factory.mktemp("provider")
    with OidcProvider(folder, [SigningKey("RS256", "1")], {AUDIENCE: "RS256"}, {"groups": ["orders-team"]}) as running:
        yield running


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, provider: OidcProvider) -> Iterator[SecuredNode]:
    """Yield a node with every mechanism."""
    with SecuredNode(tmp_path_factory.mktemp("node"), provider) as started:
        yield started


@pytest.fixture(
    params=["client credentials", *(pytest.param(way, marks=pytest.mark.slow) for way in ("password", "certificate"))]
)
def settings(request: pytest.FixtureRequest, node: SecuredNode, provider: OidcProvider) -> ClientSettings:
    """Return settings with one way to prove who the job is."""
    oauth = {"token_url": f"{provider.issuer}/token", "client_id": CLIENT, "client_secret": "secret"}
    ways: dict[str, dict[str, Any]] = {
        "password": node.password("ann"),
        "client credentials": {**oauth, "token_ca_file": provider.ca_file, "ca_file": node.ca_file},
        "certificate": node.certificate("etl"),
    }
    return ClientSettings.of(node.url, timeout=60.0, retries=1, backoff=0.01, **ways[request.param])


def _frame(node: SecuredNode, topic: str) -> bytes:
    """Return a frame whose schema an administrator has registered."""
    with RegistryClient(node.url, **node.password("ada")) as admin:
        own = _ORDER.replace('"fields"', f'"doc":"of {topic}","fields"')  # so that topics share no id
        frame = AvroSerializer(admin, own)({"id": "a"}, topic=topic)
    assert frame is not None
    return frame


@pytest.mark.parametrize("path", ["jvm", "python"])
def test_decode_with_rights_and_without(
    spark: SparkSession, node: SecuredNode, settings: ClientSettings, path: Way, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job decodes what it may read; a frame of another subject fails the task and names the refusal, not a secret."""
    allowed, denied = _frame(node, "orders"), _frame(node, "pay")
    if path == "jvm":
        install(spark, registry=settings)

    def decoded(frame: bytes) -> Any:
        rows = spark.createDataFrame(pa.table({"value": pa.array([frame], pa.binary())})).coalesce(1)
        return rows.select(
            functions.upper(
                decode("value", registry=settings, reader_schema=_ORDER, mode="PERMISSIVE", path=path)["id"]
            )
        )

    assert [("A",)] == decoded(allowed).collect()
    with pytest.raises((Py4JJavaError, PythonException), match=r"User is denied operation Read on .*40301") as caught:
        decoded(denied).collect()
    decoded(denied).explain(extended=True)
    shown = capsys.readouterr().out + str(caught.value) + str(spark.sql("SET").collect()) + node.output
    assert not re.findall(PASSWORD, shown)


def test_encode_with_rights_and_without(
    spark: SparkSession, node: SecuredNode, settings: ClientSettings, request: pytest.FixtureRequest
) -> None:
    """A job registers where it may write; elsewhere the driver gets the refusal with the subject."""
    rows = spark.createDataFrame([("a",)], "id string")
    order = functions.struct(functions.col("id"))
    name = re.sub(r"\W", "-", request.node.name)

    column = encode(order, registry=settings, schema=_ORDER, subject=f"orders-{name}")
    assert 1 == rows.select(column.alias("frame")).where("frame is not null").count()

    with pytest.raises(RegistryError, match="User is denied operation Write on Subject: pay-new"):
        encode(order, registry=settings, schema=_ORDER, subject="pay-new")


def test_wrong_password_fails_the_task(spark: SparkSession, node: SecuredNode) -> None:
    """Rejected credentials fail the task with what to check."""
    wrong = ClientSettings.of(node.url, **{**node.password("ann"), "password": "other"})
    rows = spark.createDataFrame(pa.table({"value": pa.array([_frame(node, "orders")], pa.binary())})).coalesce(1)
    column = decode("value", registry=wrong, reader_schema=_ORDER, path="python")
    with pytest.raises(PythonException, match="are username and password, or the token, those of"):
        rows.select(column).collect()
