"""The guides on Connect and on a mirrored topic run as written, with the real programs."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from harness.connect import connect_programs, plugin_path
from harness.connect_jars import converter_jars, debezium_jars
from harness.kafka import KafkaBroker
from harness.postgres import Postgres
from harness.processes import free_port
from harness.snippets import run
from harness.spark_conf import spark_conf

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

GUIDES = Path(__file__).parents[2] / "docs" / "guides"


@pytest.fixture
def reader(tmp_path, monkeypatch) -> Path:
    """Return the folder of a reader who has Kafka's programs on the PATH."""
    path = connect_programs(tmp_path / "kafka")
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "reader"
    folder.mkdir()
    return folder


@pytest.fixture
def addresses() -> dict[str, str]:
    """Return the addresses of the registries in the guides, with those that they get here."""
    free = {port: f"127.0.0.1:{free_port()}" for port in (8081, 8082)}
    return {f"{host}:{port}": address for port, address in free.items() for host in ("localhost", "127.0.0.1")}


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """Yield a server that lets others follow its log."""
    with Postgres(config={"wal_level": "logical"}) as server:
        yield server


@pytest.mark.spark
def test_connect_and_debezium_to_spark(reader, addresses, kafka_broker, postgres, tmp_path, monkeypatch):
    """docs/guides/connect.md runs as written."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(spark_conf(tmp_path)))
    plugin_path(reader, [debezium_jars(), converter_jars()])
    url = postgres.new_database().replace("+psycopg", "")
    parts = urlsplit(url)
    live = addresses | {
        "localhost:9092": kafka_broker.bootstrap,
        "localhost:8083": f"localhost:{free_port()}",
        '"database.port": "5432"': f'"database.port": "{parts.port}"',
        '"database.dbname": "shop"': f'"database.dbname": "{parts.path[1:]}"',
    }

    assert [] == run(GUIDES / "connect.md", reader, live, sql=url)


def test_a_mirrored_topic(reader, addresses):
    """docs/guides/second-site.md runs as written, with two Kafka clusters."""
    with KafkaBroker() as first, KafkaBroker() as second:
        live = addresses | {"first-kafka:9092": first.bootstrap, "second-kafka:9092": second.bootstrap}
        left_out = run(GUIDES / "second-site.md", reader, live, provided={"it needs two Kafka clusters"})

    assert ["it needs a second machine"] == left_out
