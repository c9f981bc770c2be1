"""Spark jobs wait a minute for the registry, say so, and start again after a fault of Kafka's source."""

import logging
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from strata.serdes.client import ClientSettings, RegistryClient
from strata.spark_udfs import run_stream
from strata.spark_udfs.arguments import settings_of
from strata.spark_udfs.waits import WaitLog

URL = "http://localhost:8081"
FAULT = 'Cannot invoke "scala.collection.IterableOps.map(scala.Function1)"'


@pytest.mark.parametrize(
    ("registry", "wait"),
    [
        pytest.param(URL, 60, id="a URL"),
        pytest.param(ClientSettings.of(URL, timeout=5), 60, id="settings that say nothing of it"),
        pytest.param(ClientSettings.of(URL, retries=8), None, id="chosen retries"),
        pytest.param(ClientSettings.of(URL, wait=5), 5, id="a chosen wait"),
        pytest.param(ClientSettings.of(URL, wait=0), 0, id="no wait"),
    ],
)
def test_how_long_a_job_waits(registry: str | ClientSettings, wait: float | None) -> None:
    """A registry is waited for during a minute, unless the settings choose something else."""
    assert settings_of(registry).wait == wait


def test_a_wait_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The first failure says what is waited for; those that follow at once are not repeated."""
    log = WaitLog()
    with caplog.at_level(logging.WARNING, "strata.spark_udfs"):
        for seconds in (0.2, 0.4):
            log.retry("GET", "/schemas/ids/7", ConnectionError("no answer"), seconds)

    assert ["waiting for the registry for 0 s now (GET /schemas/ids/7): no answer"] == caplog.messages


class Query:
    """A query that ends as told, after it has finished a batch or none."""

    def __init__(self, failure: str | None, *, batch: int | None = None) -> None:
        self.lastProgress = None if batch is None else {"batchId": batch}
        self._failure = failure

    def awaitTermination(self, _: float | None) -> bool:  # noqa: N802 - the name is Spark's
        """Return that the query has ended, or fail."""
        if self._failure is not None:
            raise StreamingQueryException(self._failure)
        return True


@pytest.mark.parametrize(
    ("queries", "error"),
    [
        pytest.param([Query(FAULT), Query(None)], None, id="once"),
        pytest.param([Query(FAULT), Query(FAULT, batch=3), Query(None)], None, id="again, after a batch"),
        pytest.param([Query(FAULT), Query(FAULT)], "IterableOps.map", id="again, without a batch"),
        pytest.param([Query("a frame cannot be decoded")], "a frame cannot be decoded", id="something else"),
    ],
)
def test_a_fault_of_kafkas_source(registry: RegistryClient, queries: list[Query], error: str | None) -> None:
    """A query that failed by SPARK-55271 is built again; one that failed otherwise, or makes no progress, is not."""
    registry.register("faulty", '"int"')
    left: list[Any] = list(queries)

    def run() -> None:
        run_stream(lambda _: left.pop(0), registry=registry.settings, subject="faulty")

    if error is None:
        run()
    else:
        with pytest.raises(StreamingQueryException, match=error):
            run()
    assert not left
