"""The JVM function handles look-ups, outages and credentials of its registry."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions

from harness.waiting import until
from strata.serdes.client import ClientSettings
from strata.spark_udfs import NotInstalled, decode, install
from strata.spark_udfs.decoding.jvm_function import is_installed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "int"}]}


def _settings(registry: Any, **options: Any) -> ClientSettings:
    patience = {"retries": 1, "backoff": 0.01, "timeout": 60.0, "missing_ttl": 600.0}
    return ClientSettings.of(registry.url, **{**patience, **options})


def _decoded(spark: SparkSession, settings: ClientSettings, frames: Sequence[bytes], **options: Any) -> DataFrame:
    install(spark, registry=settings)
    # Spark would decode local rows while it plans the query, and once for all its runs.
    rows = spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())})).coalesce(1)
    reader = {"reader_schema": json.dumps(NUMBER), **options}
    return rows.select(decode("value", registry=settings, path="jvm", **reader).alias("decoded"))


def _numbers(df: DataFrame) -> list[int | str]:
    """Return the numbers, or the reasons for missing ones."""
    rows = [row["decoded"] for row in df.collect()]
    return [row["error"]["reason"] if row["error"] else row["value"]["n"] for row in rows]


def test_one_request_for_each_id(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """For any number of tasks and queries, a process requests an id once, known or not."""
    known = scripted_registry.add(NUMBER)
    frames = [frame(known, NUMBER, {"n": 1}), frame(99, NUMBER, {"n": 1})] * 50
    settings = _settings(scripted_registry)
    install(spark, registry=settings)
    rows = spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())}))

    for tasks in (1, 4):
        column = decode("value", registry=settings, path="jvm", reader_schema=json.dumps(NUMBER))
        numbers = _numbers(rows.repartition(tasks).select(column.alias("decoded")))
        assert {1: 50, "unknown schema id": 50} == Counter(numbers)
    assert {known: 1, 99: 1} == dict(scripted_registry.asked)


@pytest.mark.usefixtures("generated_code")
def test_a_query_of_another_thread(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """Spark compiles the code of a query that was started by another thread than the one that called `install`."""
    schema_id = scripted_registry.add(NUMBER)
    decoded = _decoded(spark, _settings(scripted_registry), [frame(schema_id, NUMBER, {"n": 7})])

    spark.conf.set("spark.sql.codegen.fallback", "false")  # or Spark would go on without that code
    try:
        with ThreadPoolExecutor(1) as threads:
            assert [7] == threads.submit(_numbers, decoded).result()
    finally:
        spark.conf.unset("spark.sql.codegen.fallback")


def test_bounded_memory(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """A process caches no more schemas than the settings say, and requests evicted ones again."""
    ids = [scripted_registry.add(NUMBER) for _ in range(2)]
    decoded = _decoded(spark, _settings(scripted_registry, cache_size=1), [frame(one, NUMBER, {"n": 7}) for one in ids])

    for times in (1, 2):
        assert [7, 7] == _numbers(decoded)
        assert dict.fromkeys(ids, times) == dict(scripted_registry.asked)


def test_unknown_id_that_appears(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """An unknown id is requested again after a while."""
    decoded = _decoded(spark, _settings(scripted_registry, missing_ttl=0), [frame(1, NUMBER, {"n": 7})])

    assert ["unknown schema id"] == _numbers(decoded)

    scripted_registry.add(NUMBER)

    assert [7] == _numbers(decoded)


@pytest.mark.parametrize("status", [401, 404, 503])
def test_registry_that_refuses(spark: SparkSession, scripted_registry: Any, frame: MakeFrame, status: int) -> None:
    """Any answer except `no such id` fails the task; a failure is not cached, and the next task decodes."""
    schema_id = scripted_registry.add(NUMBER)
    scripted_registry.status = status
    decoded = _decoded(spark, _settings(scripted_registry), [frame(schema_id, NUMBER, {"n": 7})])

    with pytest.raises(Py4JJavaError, match=f"schema id {schema_id} could not be looked up: .*out of order"):
        decoded.collect()
    scripted_registry.status = None

    assert [7] == _numbers(decoded)


def test_registry_that_is_down(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """A registry that does not answer fails the task after some attempts; cached ids still decode."""
    known, unknown = scripted_registry.add(NUMBER), scripted_registry.add(NUMBER)
    settings = _settings(scripted_registry)
    decoded = _decoded(spark, settings, [frame(known, NUMBER, {"n": 7})])
    other = _decoded(spark, settings, [frame(unknown, NUMBER, {"n": 8})])
    assert [7] == _numbers(decoded)
    scripted_registry.close()

    assert [7] == _numbers(decoded)
    with pytest.raises(Py4JJavaError, match=f"schema id {unknown} could not be looked up: .*does not answer"):
        other.collect()


def test_answer_that_stalls(spark: SparkSession, scripted_registry: Any, frame: MakeFrame) -> None:
    """A registry that stops in the middle of an answer counts as one that does not answer."""
    schema_id = scripted_registry.add(NUMBER)
    scripted_registry.stalls = True
    settings = _settings(scripted_registry, timeout=2.0, retries=0)
    decoded = _decoded(spark, settings, [frame(schema_id, NUMBER, {"n": 7})])

    with pytest.raises(Py4JJavaError, match=f"schema id {schema_id} could not be looked up: .*does not answer"):
        decoded.collect()
    scripted_registry.stalls = False

    # The time is short, for a machine that pauses.
    until(lambda: [7] == _numbers(decoded), Py4JJavaError)


def _properties_of_jobs(spark: SparkSession) -> str:
    """Return the properties of every job in Spark's event log, unredacted."""

    def properties(_: Any) -> str:
        from pyspark import TaskContext

        task = TaskContext.get()
        return str(task and task._localProperties)

    return str(spark.range(1).select(functions.udf(properties, useArrow=False)("id")).first())


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        pytest.param({"username": "ann", "password": "s3cret"}, "Basic YW5uOnMzY3JldA==", id="basic"),
        pytest.param({"token": "s3cret-token"}, "Bearer s3cret-token", id="bearer"),
    ],
)
def test_credentials_are_sent_and_hidden(
    spark: SparkSession,
    scripted_registry: Any,
    frame: MakeFrame,
    capsys: pytest.CaptureFixture[str],
    credentials: dict[str, str],
    header: str,
) -> None:
    """Only the registry gets credentials; no plan, error or job property shows them, and `SET` shows them redacted."""
    schema_id = scripted_registry.add(NUMBER)
    scripted_registry.status = 401
    decoded = _decoded(spark, _settings(scripted_registry, **credentials), [frame(schema_id, NUMBER, {"n": 7})])

    decoded.explain(extended=True)
    with pytest.raises(Py4JJavaError) as caught:
        decoded.collect()
    listed = [row for row in spark.sql("SET -v").collect() if "strata" in row["key"]] + [
        row for row in spark.sql("SET").collect() if "strata" in row["key"]
    ]

    assert {header} == scripted_registry.authorizations
    properties = _properties_of_jobs(spark)
    shown = capsys.readouterr().out + str(caught.value) + str(listed) + properties
    assert "strata_decode" in shown
    assert "spark.sql.catalog.strata" in properties
    assert not re.findall(r"s3cret|YW5uOnMzY3JldA", shown)


# name, the registry's schema for the id, reason
UNUSABLE: list[tuple[str, str, dict[str, Any], str]] = [
    ("another format", 'syntax = "proto3";', {"schemaType": "PROTOBUF"}, "writer schema is PROTOBUF"),
    ("no schema", '{"type": "nonsense"}', {}, "unusable writer schema"),
    ("no JSON", "{", {}, "unusable writer schema"),
    ("nothing", "null", {}, "unusable writer schema"),
    ("a name that is a number", '{"type": "fixed", "name": 7, "size": "x"}', {}, "unusable writer schema"),
    ("very deep", '{"type": "array", "items": ' * 5000 + '"int"' + "}" * 5000, {}, "unusable writer schema"),
    (
        "a schema that does not fit",
        '"string"',
        {},
        "resolution: the reader schema has record Number where the writer schema has string",
    ),
]


def test_unusable_writer_schemas(spark: SparkSession, scripted_registry: Any) -> None:
    """A writer schema that the reader schema cannot read makes dead letters, and is requested once."""
    ids = [scripted_registry.add_text(text, properties) for _, text, properties, _ in UNUSABLE]
    frames = [b"\0" + schema_id.to_bytes(4, "big") + b"\2a" for schema_id in ids]
    decoded = _decoded(spark, _settings(scripted_registry), frames)

    for _ in range(2):
        assert [(name, reason) for name, *_, reason in UNUSABLE] == list(
            zip([name for name, *_ in UNUSABLE], _numbers(decoded), strict=True)
        )
    assert dict.fromkeys(ids, 1) == dict(scripted_registry.asked)


def test_without_installation(scripted_registry: Any, spark: SparkSession) -> None:
    """A path requested by name is an error if it is not installed, never silently replaced."""
    with pytest.raises(NotInstalled, match=r"call strata.spark_udfs.install\(spark, registry=…\)"):
        decode("value", registry=_settings(scripted_registry), reader_schema='"int"', path="jvm")


def test_equal_settings(scripted_registry: Any, spark: SparkSession, frame: MakeFrame) -> None:
    """Equal settings share one installation, however their numbers are written."""
    schema_id = scripted_registry.add(NUMBER)
    frames = [frame(schema_id, NUMBER, {"n": 7})]
    whole, broken = ({"timeout": kind(5), "retries": kind(2), "max_backoff": kind(1)} for kind in (int, float))
    install(spark, registry=_settings(scripted_registry, **broken))

    column = decode(
        "value", registry=_settings(scripted_registry, **whole), path="jvm", reader_schema=json.dumps(NUMBER)
    )

    rows = spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())})).coalesce(1)
    assert [7] == _numbers(rows.select(column.alias("decoded")))


def test_session_that_has_the_jar(scripted_registry: Any, spark: SparkSession, tmp_path: Any) -> None:
    """A session that has the classes needs no jar."""
    install(spark, registry=_settings(scripted_registry), jar=tmp_path / "none.jar")


def _refusing(*_: Any) -> None:
    raise AnalysisException("no jars here")


@pytest.mark.parametrize(
    ("jar", "replaced", "told"),
    [
        pytest.param("none.jar", {}, "no jar at .*none.jar; in a checkout, `make setup`", id="no jar"),
        pytest.param(
            None,
            {"_add": lambda *_: None},
            "the session has the jar but cannot use it: no class. Start the session with spark.jars=.*path='python'",
            id="the jar is of no use",
        ),
        pytest.param(
            None,
            {"_upload": _refusing},
            "the session rejected the jar: no jars here. Start the session with spark.jars=.*path='python'",
            id="the session refuses",
        ),
    ],
)
def test_installation_that_fails(
    spark: SparkSession,
    scripted_registry: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jar: str | None,
    replaced: dict[str, Any],
    told: str,
) -> None:
    """The error says why and what to do, no credentials stay in the session, and decodes take the other path."""
    monkeypatch.setattr("strata.spark_udfs.decoding.jvm_function._problem", lambda *_: "no class")
    for name, value in replaced.items():
        monkeypatch.setattr(f"strata.spark_udfs.decoding.jvm_function.{name}", value)
    settings = _settings(scripted_registry, password="s3cret", username="failing")

    with pytest.raises(NotInstalled, match=told):
        install(spark, registry=settings, jar=jar and tmp_path / jar)

    assert not is_installed(spark, settings)
    assert "failing" not in str(spark.sql("SET").collect())


def test_proxy_that_the_jvm_does_not_know(spark: SparkSession) -> None:
    """Requests never bypass the proxy, and its password is not put into the session's configuration."""
    settings = ClientSettings.of("http://localhost:1", proxy="http://ann:s3cret@localhost:2")

    with pytest.raises(NotInstalled, match=r"does not support the setting proxy: .*path='python'"):
        install(spark, registry=settings)

    assert "s3cret" not in str(spark.sql("SET").collect())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"proxy": "http://localhost:1"}, 'path="python"', id="proxy"),
        pytest.param(
            {"token_url": "http://localhost:1/token"}, "needs client_id and client_secret", id="half of OAuth"
        ),
    ],
)
def test_options_that_the_catalog_refuses(
    scripted_registry: Any, spark: SparkSession, options: dict[str, str], words: str
) -> None:
    """A catalog that is configured by hand refuses what it cannot follow; it never leaves credentials out."""
    install(spark, registry=_settings(scripted_registry))
    name = f"strata_{'_'.join(options)}"
    for option, value in {"urls": scripted_registry.url, **options}.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{option}", value)
    spark.conf.set(f"spark.sql.catalog.{name}", "strata.spark.StrataCatalog")
    with pytest.raises(Exception, match=words):
        spark.sql(f"SHOW USER FUNCTIONS IN {name}").collect()
