"""Both paths from a client of Spark Connect, and on a cluster whose executors have nothing but what is shipped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import spark_jar
from harness.spark_servers import (
    CHECKOUT,
    ConnectServer,
    StandaloneCluster,
    bare_python,
    run_job,
    shipped_packages,
    small,
)
from serdes.client import RegistryClient

pytestmark = pytest.mark.spark

MakeFrame = Callable[[int, Any, Any], bytes]

JOB = Path(__file__).parent / "jobs" / "decode_job.py"
OLD = {"type": "record", "name": "Flight", "fields": [{"name": "delay", "type": "int"}]}
NEW = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "delay", "type": "long"}, {"name": "gate", "type": ["null", "string"], "default": None}],
}


@pytest.fixture
def options(registry: RegistryClient, frame: MakeFrame, tmp_path: Path) -> dict[str, Any]:
    """What the job is told: the registry, and frames of two versions and a damaged one, in two files."""
    spark_jar.build()
    old, new = (registry.register("connect", json.dumps(schema)).schema_id for schema in (OLD, NEW))
    good = frame(new, NEW, {"delay": 2, "gate": "B7"})
    frames = [frame(old, OLD, {"delay": 1}), good, good[:-1], None]
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(2):
        offsets = pa.array(range(4 * number, 4 * number + 4), pa.int64())
        table = pa.table({"offset": offsets, "value": pa.array(frames, pa.binary())})
        pq.write_table(table, folder / f"{number}.parquet")
    return {"registry": registry.settings.urls[0], "subject": "connect", "frames": str(folder), "new": new}


def _expected(options: dict[str, Any]) -> dict[str, Any]:
    """What comes out of those frames on any path, but for the text of the failure."""
    good, dead = [], []
    for first in (0, 4):
        good += [
            {"offset": first, "decoded": {"delay": 1}},
            {"offset": first + 1, "decoded": {"delay": 2, "gate": "B7"}},
            {"offset": first + 3},
        ]
        dead.append({"offset": first + 2, "reason": "truncated", "schema_id": options["new"]})
    parts = {"good": good, "dead": dead}
    kind = "struct<value:struct<delay:bigint,gate:string>,error:struct<reason:string,schema_id:int,frame:binary>>"
    return {"type": kind, "batch": parts, "stream": parts}


def _check(answer: dict[str, Any], options: dict[str, Any]) -> None:
    """Both paths have given everything."""
    for path in ("jvm", "python"):
        failure = answer[path].pop("failure")
        assert "a frame cannot be decoded (schema id" in failure
        assert _expected(options) == answer[path]


def test_connect(options: dict[str, Any], tmp_path: Path) -> None:
    """A client without a JVM decodes on both paths; the jar travels to a server that lacks it."""
    with ConnectServer(tmp_path, python=bare_python(tmp_path), env={"PYTHONPATH": str(CHECKOUT)}) as server:
        answer = run_job(JOB, options | {"conf": {"spark.remote": server.url}, "paths": ["jvm", "python"]})

    _check(answer, options)


@pytest.mark.slow
def test_connect_with_shipped_code(options: dict[str, Any], tmp_path: Path) -> None:
    """Neither the server nor its workers have the packages: the client ships them too."""
    asked = options | {"paths": ["jvm", "python"], "ship": str(shipped_packages(tmp_path))}
    env = {"PYTHONPATH": "", "TMPDIR": str(tmp_path)}
    with ConnectServer(tmp_path, python=bare_python(tmp_path), env=env) as server:
        answer = run_job(JOB, asked | {"conf": {"spark.remote": server.url}})

    assert all("strata.zip" in file for _, file in answer["places"])
    _check(answer, options)
