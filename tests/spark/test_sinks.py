"""A topic becomes a table in Parquet, Delta and Iceberg: each record once, though the driver is killed at any moment.

The driver is a process of its own. Between two of its lives the subject gets a version with a new field, and the table
a column.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from harness import spark_jar
from harness.jars import delta_jars, iceberg_jars, spark_kafka_jars
from harness.kafka import KafkaBroker
from harness.processes import start_tied, stop_process, tail
from harness.registry import RegistryNode
from strata.serdes import AvroSerializer
from strata.serdes.client import RegistryClient

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
RECORDS = 400
"""Before the new version is registered, and after it."""
BATCH = 40
NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}
NAMED = {**NUMBER, "fields": [*NUMBER["fields"], {"name": "label", "type": ["null", "string"], "default": None}]}
CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}


def _conf(kind: str, folder: Path) -> dict[str, str]:
    """Return the settings of a session that writes a format."""
    if kind == "delta":
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    if kind == "iceberg":
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.lake.type": "hadoop",
            "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
        }
    return {}


class Job:
    """The driver of one table, in one life after the other."""

    def __init__(self, kind: str, folder: Path, jars: Sequence[Path], **options: Any) -> None:
        self.checkpoint = folder / "checkpoint"
        self._log, self._rows = folder / "job.log", folder / "rows.json"
        table = "lake.db.numbers" if kind == "iceberg" else str(folder / "table")
        conf = CONF | _conf(kind, folder) | {"spark.jars": ",".join(map(str, jars)), "spark.local.dir": str(folder)}
        given = {
            "packages": str(ROOT),
            "format": kind,
            "table": table,
            "checkpoint": str(self.checkpoint),
            "rows": str(self._rows),
            "conf": conf,
        }
        job = Path(__file__).parent / "jobs" / "sink_job.py"
        self._command = [sys.executable, str(job), json.dumps(given | options)]

    def killed_after(self, batches: int, pause: float) -> bool:
        """Run the driver, and kill it some time after it planned so many batches more; return whether it lived then."""
        goal = len(self.planned()) + batches
        process = start_tied(self._command, log=self._log)
        try:
            while len(self.planned()) < goal and process.poll() is None:  # bounded by the test's time limit
                time.sleep(0.02)
            time.sleep(pause)  # at any moment of a batch
            lived = process.poll() is None
        finally:
            _kill(process)
        return lived

    def planned(self) -> list[Path]:
        """Return the batches whose offsets are in the checkpoint."""
        return [one for one in self.checkpoint.glob("offsets/*") if one.name.isdigit()]

    def finished(self) -> list[dict[str, Any]]:
        """Run the driver to its end, and return the rows of the table."""
        process = start_tied(self._command, log=self._log)
        try:
            process.wait(900)
        finally:
            _kill(process)
        assert process.returncode == 0, tail(self._log)
        rows: list[dict[str, Any]] = json.loads(self._rows.read_text())
        return rows


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a driver and its JVM, which are a group of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    stop_process(process)


_numbers = count()


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_each_record_once(kind: str, kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    """Rows are neither lost nor doubled by kills of the driver, and the table follows the reader schema."""
    spark_jar.build()
    jars = [*spark_kafka_jars(), *{"delta": delta_jars, "iceberg": iceberg_jars}.get(kind, list)()]
    topic, seed = f"sink-{kind}-{next(_numbers)}-{os.getpid()}", random.randrange(2**32)
    chance = random.Random(seed)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "enable.idempotence": True})  # keeps the order
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:

        def produce(schema: Any, values: Sequence[dict[str, Any]]) -> None:
            serialize = AvroSerializer(client, json.dumps(schema))
            for value in values:
                producer.produce(topic, serialize(value, topic=topic), partition=0)
            producer.flush()

        job = Job(
            kind,
            tmp_path,
            jars,
            registry=node.url,
            brokers=kafka_broker.bootstrap,
            topic=topic,
            subject=f"{topic}-value",
            batch=BATCH,
        )
        produce(NUMBER, [{"n": n} for n in range(RECORDS)])
        kills = [job.killed_after(chance.randint(2, 5), chance.random()) for _ in range(2)]
        produce(NAMED, [{"n": n, "label": f"l{n}"} for n in range(RECORDS, 2 * RECORDS)])
        kills.append(job.killed_after(chance.randint(1, 4), chance.random()))
        rows = job.finished()

    expected = [{"offset": n, "n": n, "label": f"l{n}" if n >= RECORDS else None} for n in range(2 * RECORDS)]
    assert expected == rows, f"seed {seed}, killed {kills}"
