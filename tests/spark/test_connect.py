"""Both paths work from a Spark Connect client, with shipped code on a cluster, from the wheel, on other Sparks."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness import spark_jar
from harness.environments import fresh_environment, site_packages, with_extras, with_our_dependencies
from harness.spark_servers import (
    CHECKOUT,
    ConnectServer,
    bare_python,
    run_job,
    shipped_packages,
    small,
    spark_home,
)
from strata.serdes.client import RegistryClient, Schema

pytestmark = pytest.mark.spark

MakeFrame = Callable[[int, Any, Any], bytes]

JOB = Path(__file__).parent / "jobs" / "decode_job.py"
EVOLUTION_JOB = JOB.with_name("evolution_job.py")
OLD = {"type": "record", "name": "Flight", "fields": [{"name": "delay", "type": "int"}]}
NEW = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "delay", "type": "long"}, {"name": "gate", "type": ["null", "string"], "default": None}],
}
GATED = {**OLD, "fields": [*OLD["fields"], {"name": "gate", "type": ["null", "string"], "default": None}]}


@pytest.fixture
def options(registry: RegistryClient, frame: MakeFrame, tmp_path: Path) -> dict[str, Any]:
    """Return the job's options: the registry, and frames of two versions and a damaged one, in two files."""
    spark_jar.build()
    old, new = (registry.register("connect", json.dumps(schema)).schema_id for schema in (OLD, NEW))
    registry.register("connect-proto", Schema('syntax = "proto3"; message M { int32 n = 1; }', "PROTOBUF"))
    registry.register("connect-json", Schema('{"properties": {"n": {"minimum": 7}}}', "JSON"))
    good = frame(new, NEW, {"delay": 2, "gate": "B7"})
    frames = [frame(old, OLD, {"delay": 1}), good, good[:-1], None]
    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(2):
        offsets = pa.array(range(4 * number, 4 * number + 4), pa.int64())
        table = pa.table({"offset": offsets, "value": pa.array(frames, pa.binary())})
        pq.write_table(table, folder / f"{number}.parquet")
    url = registry.settings.urls[0].replace("http://", "http://ann:s3cret@")  # goes to the server, which ignores it
    return {"registry": url, "subject": "connect", "frames": str(folder), "new": new}


def _parts(options: dict[str, Any]) -> dict[str, Any]:
    """Return the parts that any path makes of those frames."""
    good, dead = [], []
    for first in (0, 4):
        good += [
            {"offset": first, "decoded": {"delay": 1}},
            {"offset": first + 1, "decoded": {"delay": 2, "gate": "B7"}},
            {"offset": first + 3},
        ]
        dead.append({"offset": first + 2, "reason": "truncated", "schema_id": options["new"]})
    return {"good": good, "dead": dead}


def _check(answer: dict[str, Any], options: dict[str, Any], *kinds: str) -> None:
    """Assert that both paths have returned everything."""
    expected: dict[str, Any] = dict.fromkeys(kinds, _parts(options))
    expected["type"] = (
        "struct<value:struct<delay:bigint,gate:string>,error:struct<reason:string,schema_id:int,frame:binary>>"
    )
    for path in ("jvm", "python"):
        assert [8, 0 if path == "jvm" else None] == answer[path].pop("observed")
        assert f"a frame cannot be decoded (schema id {options['new']}, offset " in answer[path].pop("failure")
        assert expected == answer[path]
    assert [None, 1, 2] == answer["sql"]
    assert [[None, 6, 0, 7], ["truncated", 2, 2, 6]] == answer["replayed"]
    head = f"00{options['new']:08X}"
    assert [None, f"{head}0200", f"{head}0402044237"] == answer["written"]
    json_frame = b'{"n":7}'.hex().upper()
    values = ["{7}", "{7.0}"]
    assert ["0807", json_frame, "36", *values, json_frame] == answer["formats"]  # magic byte, GUID, path: 18 bytes
    first = {"delay": 1}, {"delay": 2, "gate": "B7"}
    assert answer["again"] == [
        {"offset": start + place, **more}
        for start in (0, 4)
        for place, more in enumerate(
            ({"hex": "0200", "value": first[0]}, {"hex": "0402044237", "value": first[1]}, {}, {})
        )
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """Yield a server that lacks the jar; its workers have the packages."""
    folder = tmp_path_factory.mktemp("connect")
    env = {"PYTHONPATH": str(CHECKOUT)}
    with ConnectServer(folder, python=bare_python(folder), env=env) as started:
        yield started


@pytest.mark.long
def test_batches(server: ConnectServer, options: dict[str, Any]) -> None:
    """A client without a JVM decodes on each path; the jar travels to a server that lacks it."""
    conf = {"spark.remote": server.url}
    paths = ["python", "jvm"]  # the first without the jar
    answer = run_job(JOB, options | {"conf": conf, "tasks": 1, "batches": paths})

    assert dict.fromkeys(paths, _parts(options)) == answer


@pytest.mark.slow
def test_connect(server: ConnectServer, options: dict[str, Any]) -> None:
    """Such a client can do everything that the job does."""
    conf = {"spark.remote": server.url}
    answer = run_job(JOB, options | {"conf": conf, "tasks": 1, "streams": False, "ship": None})

    _check(answer, options, "batch")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["jvm", "python"])
def test_newer_versions_through_connect(
    server: ConnectServer, registry: RegistryClient, frame: MakeFrame, tmp_path: Path, path: str
) -> None:
    """A stream of a client without a JVM takes up a newer version, ends when stopped, and reports why it failed."""
    subject = f"connect evolution {path}"
    old, new = (
        registry.register(name, json.dumps(schema)).schema_id for name, schema in ((subject, OLD), ("gated", GATED))
    )
    frames = [frame(old, OLD, {"delay": 1}), frame(new, GATED, {"delay": 2, "gate": "B7"})]
    options = {
        "conf": {"spark.remote": server.url},
        "registry": registry.settings.urls[0],
        "subject": subject,
        "newer": json.dumps(GATED),
        "frames": [one.hex() for one in frames],
        "folder": str(tmp_path),
        "path": path,
    }

    answer = run_job(EVOLUTION_JOB, options)

    assert "a frame cannot be decoded" in answer.pop("failure")
    rows = [{"offset": 0, "delay": 1, "gate": None}, {"offset": 1, "delay": 2, "gate": "B7"}]
    assert {"versions": [1, 2, 2], "rows": rows, "ended": True} == answer


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_connect_with_shipped_code(options: dict[str, Any], tmp_path: Path) -> None:
    """The client ships the packages to the server's workers, which lack them, for batches and streams."""
    shipped = {"tasks": 4, "streams": True, "ship": str(shipped_packages(tmp_path))}
    env = {"PYTHONPATH": "", "TMPDIR": str(tmp_path)}
    with ConnectServer(tmp_path, python=bare_python(tmp_path), env=env) as server:
        answer = run_job(JOB, options | shipped | {"conf": {"spark.remote": server.url}})

    assert all(file.endswith("strata.zip/strata/spark_udfs/__init__.py") for _, file in answer["places"])
    _check(answer, options, "batch", "stream")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_cluster(options: dict[str, Any], tmp_path: Path) -> None:
    """Two executors that have neither the jar nor the packages decode with what the driver ships."""
    shipped = {"tasks": 4, "streams": True, "ship": str(shipped_packages(tmp_path))}
    env = {"PYSPARK_PYTHON": str(bare_python(tmp_path)), "TMPDIR": str(tmp_path)}
    env |= {"PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_HOME": str(spark_home(tmp_path))}
    conf = {**small(tmp_path), "spark.master": "local-cluster[2,1,1024]"}
    answer = run_job(JOB, options | shipped | {"conf": conf}, env)

    assert 2 == len({folder for folder, _ in answer["places"]})
    assert all(file.endswith("strata.zip/strata/spark_udfs/__init__.py") for _, file in answer["places"])
    _check(answer, options, "batch", "stream")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_wheel_beside_foreign_modules(strata_wheel: Path, options: dict[str, Any], tmp_path: Path) -> None:
    """Driver and Python workers use the wheel, though a user's modules with the names of our folders come first."""
    python = with_our_dependencies(tmp_path / "installed", strata_wheel)
    foreign = tmp_path / "foreign"
    (foreign / "registry").mkdir(parents=True)
    for name in ("compat", "storage", "serdes", "spark_udfs", "registry/__init__"):
        (foreign / f"{name}.py").write_text("raise RuntimeError('this module belongs to the user')\n")
    beside = {"packages": str(foreign), "ship": str(foreign / "compat.py"), "tasks": 2, "streams": False}
    conf = {**small(tmp_path), "spark.master": "local[2]"}
    env = {"PYTHONPATH": str(foreign), "PYSPARK_PYTHON": str(python)}

    answer = run_job(JOB, options | beside | {"conf": conf}, env, python)

    home = str(site_packages(python) / "strata" / "spark_udfs" / "__init__.py")
    assert {home} == {answer["driver"], *(file for _, file in answer["places"])}
    _check(answer, options, "batch")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", ["3.5", "4.0", "4.1", "4.2", "4.3"])
def test_versions_of_spark(strata_wheel: Path, options: dict[str, Any], tmp_path: Path, version: str) -> None:
    """The wheel with the extras `spark` and `arrow`, beside another Spark, decodes on both paths, batch and stream."""
    spark = (f"pyspark=={version}.*", "pandas>=2.2,<3")
    python = fresh_environment(tmp_path / "environment", with_extras(strata_wheel, "spark,arrow"), *spark)
    job = options | {"packages": str(tmp_path), "ship": None, "tasks": 2, "streams": True}
    conf = {**small(tmp_path), "spark.master": "local[2]"}

    env = {"PYSPARK_PYTHON": str(python), "SPARK_HOME": str(site_packages(python) / "pyspark")}
    answer = run_job(JOB, job | {"conf": conf}, env, python)

    _check(answer, options, "batch", "stream")
