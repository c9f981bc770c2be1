"""What a query waits for the registry shows in its metrics, while it runs and after it has failed."""

import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, Observation, SparkSession

from harness.registry import RegistryNode
from strata.serdes.client import ClientSettings, RegistryClient
from strata.spark_udfs import decode, install, observe_dead_letters

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}
MILLISECONDS, RETRIES = "strata: ms waited for the registry", "strata: requests sent again"
PATIENCE_S = 60
PAUSE_S = 0.05


def _decoded(spark: SparkSession, settings: ClientSettings, value: bytes, tasks: int = 1) -> DataFrame:
    """Return one decoded row, which one of several tasks decodes."""
    install(spark, registry=settings)
    rows = spark.createDataFrame(pa.table({"value": pa.array([value], pa.binary())})).repartition(tasks)
    column = decode("value", registry=settings, path="jvm", reader_schema=json.dumps(NUMBER))
    return rows.select(column.alias("decoded"))


def _collect(spark: SparkSession, df: DataFrame, job: str) -> list[int]:
    """Return the numbers of a data frame, by jobs with a name."""
    spark.sparkContext.setJobGroup(job, job)
    try:
        return sorted(row["decoded"]["value"]["n"] for row in df.collect())
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def _shown(spark: SparkSession, job: str) -> Counter[str]:
    """Return the sums that Spark shows with the stages of a job at this time; its REST interface has the same."""
    java: Any = spark.sparkContext._jsc.sc()
    tracker = spark.sparkContext.statusTracker()
    sums: Counter[str] = Counter()
    for number in tracker.getJobIdsForGroup(job):
        info = tracker.getJobInfo(number)
        for stage in info.stageIds if info else ():
            updates = java.statusStore().lastStageAttempt(stage).accumulatorUpdates()
            for one in map(updates.apply, range(updates.size())):
                sums[one.name()] += int(one.value())
    return sums


def _shown_at_least(spark: SparkSession, job: str, sums: dict[str, int]) -> Counter[str]:
    """Wait until a job shows at least these sums, and return what it shows."""
    deadline = time.monotonic() + PATIENCE_S
    while not (shown := _shown(spark, job)) >= Counter(sums):
        assert time.monotonic() < deadline, f"{shown} instead of {sums}"
        time.sleep(0.05)
    return shown


def _hang_up_on_one(port: int) -> None:
    """Close the first connection to a port without an answer."""
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(PATIENCE_S)
        server.accept()[0].close()


@pytest.mark.long
def test_a_registry_that_starts_again_while_a_batch_runs(
    spark: SparkSession, scripted_registry: Any, frame: MakeFrame, tmp_path: Path
) -> None:
    """When a task ends, the stage shows what it waited, while another task waits; the `Observation` has the sum."""
    with RegistryNode(f"sqlite:///{tmp_path / 'registry.db'}") as node:
        patience = {"wait": 2 * PATIENCE_S, "backoff": PAUSE_S, "max_backoff": PAUSE_S}
        settings = ClientSettings.of(node.url, **patience)
        with RegistryClient.from_settings(settings) as client:
            schema_id = client.register("numbers", json.dumps(NUMBER)).schema_id
        one = _decoded(spark, settings, frame(schema_id, NUMBER, {"n": 1}))
        other_id = scripted_registry.add(NUMBER)
        scripted_registry.status = 503
        other_settings = ClientSettings.of(scripted_registry.url, **patience)
        other = _decoded(spark, other_settings, frame(other_id, NUMBER, {"n": 2}), tasks=2)
        job = f"numbers {node.port}"
        numbers = Observation(job)
        node.kill()

        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(_collect, spark, observe_dead_letters(one.union(other), name=numbers), job)
            try:
                _hang_up_on_one(node.port)
                node.restart()
                meanwhile = _shown_at_least(spark, job, {MILLISECONDS: int(500 * PAUSE_S), RETRIES: 1})
                is_running = not running.done()
            finally:
                scripted_registry.status = None
            values = running.result(PATIENCE_S)

    assert is_running
    assert [1, 2] == values
    metrics = {MILLISECONDS: numbers.get["registry_wait_ms"], RETRIES: numbers.get["registry_retries"]}
    assert metrics == _shown_at_least(spark, job, metrics)
    assert metrics[RETRIES] > meanwhile[RETRIES]


def test_a_task_that_fails_is_counted(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """The waits of a task that has failed, because the registry did not answer, show too."""
    schema_id = scripted_registry.add(NUMBER)
    scripted_registry.status = 503
    settings = ClientSettings.of(scripted_registry.url, retries=3, backoff=PAUSE_S, max_backoff=PAUSE_S)
    df = _decoded(spark, settings, frame(schema_id, NUMBER, {"n": 1}))
    job = f"refused by {settings.urls[0]}"

    with pytest.raises(Py4JJavaError, match="could not be looked up"):
        _collect(spark, df, job)

    shown = _shown_at_least(spark, job, {MILLISECONDS: int(3 * 500 * PAUSE_S), RETRIES: 3})
    assert shown[RETRIES] == 3
