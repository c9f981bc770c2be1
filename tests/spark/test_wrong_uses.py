"""Wrong uses are refused early, in the same words on both paths, with a hint at the cause."""

import json
import logging
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession, functions

from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.errors import SerdeError
from strata.spark_udfs import decode, encode, encoder, install
from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.avro_decoder import AvroDecoder, avro_decoder
from strata.spark_udfs.decoding.jvm_function import function_name
from strata.spark_udfs.decoding.plan import ReaderSource, plan_decode
from strata.spark_udfs.decoding.writer_schemas import RegistryNotUsable

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]

NUMBER = json.dumps({"type": "record", "name": "Number", "fields": [{"name": "n", "type": "int"}]})


WAY = "arrow" if hasattr(functions, "arrow_udf") else "pandas"
"""The kind of Python worker UDF that this Spark has."""


def _settings(registry: Any, **options: Any) -> ClientSettings:
    return ClientSettings.of(registry.url, **{"retries": 1, "backoff": 0.01, "timeout": 60.0, **options})


def _rows(spark: SparkSession, *frames: bytes) -> DataFrame:
    return spark.createDataFrame(pa.table({"value": pa.array(frames, pa.binary())})).coalesce(1)


def _in_a_worker(settings: ClientSettings, mode: Mode = Mode.PERMISSIVE) -> AvroDecoder:
    """Return the decoder of a Python worker."""
    return avro_decoder(plan_decode(settings, ReaderSource(NUMBER), mode=mode))


# status, body, the message
TROUBLES: list[Any] = [
    pytest.param(401, None, "are username and password, or the token, those of URL?", id="other credentials"),
    pytest.param(403, None, "out of order: GET /schemas/ids/1 (HTTP 403, error code 403)", id="not allowed"),
    pytest.param(404, None, "out of order: is URL the address of a schema registry?", id="another address"),
    pytest.param(500, None, "the registry keeps answering: out of order (HTTP 500, error code 500)", id="broken"),
    pytest.param(302, b"<html>", "<html> (HTTP 302, error code 302)", id="a redirect"),
    pytest.param(404, b"<html>", "<html>: is URL the address of a schema registry?", id="another page"),
    pytest.param(200, b"<html>", "URL answered with something that is not JSON; is it a schema registry?", id="a page"),
    pytest.param(200, b"[]", "the answer to GET /schemas/ids/1 is not understood; is it a", id="other JSON"),
]


@pytest.mark.parametrize(("status", "page", "told"), TROUBLES)
def test_registry_in_trouble(
    spark: SparkSession, scripted_registry: Any, status: int, page: bytes | None, told: str
) -> None:
    """A failure of the registry ends the task, and a call that looks up schemas, with the same words on both paths."""
    scripted_registry.status, scripted_registry.page = status, page
    settings = _settings(scripted_registry)
    install(spark, registry=settings)
    frame = b"\0\0\0\0\1\2"
    column = decode("value", registry=settings, reader_schema=NUMBER, path="jvm")

    with pytest.raises(Py4JJavaError) as in_jvm:
        _rows(spark, frame).select(column).collect()
    with pytest.raises(RegistryNotUsable) as in_python:
        _in_a_worker(settings).decode(pa.array([frame]))
    with pytest.raises(SerdeError) as planning:
        decode("value", registry=settings, schema_id=1)

    sentence = str(in_python.value)
    assert told.replace("URL", scripted_registry.url) in sentence
    assert sentence.startswith("schema id 1 could not be looked up: ")
    assert sentence in str(in_jvm.value)
    assert sentence.endswith(str(planning.value))


def test_reference_to_nowhere(spark: SparkSession, scripted_registry: Any) -> None:
    """A writer schema whose reference is gone makes dead letters on both paths, and stops no stream."""
    references = [{"name": "Gone", "subject": "gone", "version": 1}]
    schema_id = scripted_registry.add_text('{"type": "array", "items": "Gone"}', {"references": references})
    settings = _settings(scripted_registry)
    install(spark, registry=settings)
    frame = b"\0" + schema_id.to_bytes(4, "big") + b"\0"
    column = decode("value", registry=settings, reader_schema=NUMBER, path="jvm")

    [row] = _rows(spark, frame).select(column.alias("d")).collect()
    in_python = _in_a_worker(settings, Mode.DEADLETTER).decode(pa.array([frame])).to_pylist()

    assert "unusable writer schema" == row["d"]["error"]["reason"] == in_python[0]["error"]["reason"]


# a column, the same column in Arrow, its description
NO_FRAMES: list[Any] = [
    pytest.param("'a'", pa.array(["a"]), "string", id="text"),
    pytest.param("1", pa.array([1], pa.int32()), "int", id="number"),
    pytest.param("array(X'00')", pa.array([[b"\0"]]), "array<binary>", id="array"),
    pytest.param("named_struct('value', X'00')", pa.array([{"value": b"\0"}]), "struct<value:binary>", id="struct"),
    pytest.param(
        "named_struct('value', 'a', 'header', X'00')",
        pa.array([{"value": "a", "header": b"\0"}]),
        "string",
        id="text with a header",
    ),
]


@pytest.mark.parametrize(("column", "array", "kind"), NO_FRAMES)
def test_column_that_holds_no_frames(
    spark: SparkSession, registry: RegistryClient, column: str, array: pa.Array, kind: str
) -> None:
    """The JVM path refuses the column while the query is made, a Python worker when it sees it, by its Spark type."""
    install(spark, registry=registry.settings)
    told = f"expected a binary column of frames, got {kind}"

    with pytest.raises(AnalysisException) as in_jvm:
        spark.range(1).selectExpr(f"{column} AS value").select(
            decode("value", registry=registry.settings, reader_schema=NUMBER, path="jvm")
        )
    with pytest.raises(TypeError) as in_python:
        _in_a_worker(registry.settings).decode(array)

    assert told == str(in_python.value)
    assert told in str(in_jvm.value)


def test_nulls_with_headers(registry: RegistryClient) -> None:
    """A column of nulls, which has no type, may have headers."""
    nulls = pa.StructArray.from_arrays([pa.nulls(2), pa.array([None, b"\1"])], names=["value", "header"])

    assert [None, None] == _in_a_worker(registry.settings).decode(nulls).to_pylist()


@pytest.mark.parametrize("kind", ["JSON", "PROTOBUF"])
def test_columns_that_are_no_names(registry: RegistryClient, kind: Any) -> None:
    """Decoders of the other formats refuse bad columns as Avro's does."""
    for columns in ("n", [1]):
        with pytest.raises(TypeError, match="columns is a list of field names, not"):
            decode("value", registry=registry.settings, reader_schema="{}", format=kind, columns=columns)  # type: ignore[arg-type]


def test_before_there_is_a_session(registry: RegistryClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column needs a session, and the error says so; nothing is registered for a column that cannot be made."""
    monkeypatch.setattr("strata.spark_udfs.arguments.active_session", lambda: None)

    with pytest.raises(RuntimeError, match="there is no Spark session yet: start one"):
        decode("value", registry=registry.settings, reader_schema=NUMBER, path="python")
    with pytest.raises(RuntimeError, match="there is no Spark session yet: start one"):
        encode("value", registry=registry.settings, subject="too early", schema=NUMBER)

    assert "too early" not in registry.get_subjects()
    assert encoder(registry=registry.settings, subject="early enough", schema=NUMBER).schema_id


def test_settings_that_differ(spark: SparkSession, registry: RegistryClient, caplog: pytest.LogCaptureFixture) -> None:
    """The path and its reason are logged once; a job that has installed the JVM for other settings gets a warning."""
    from strata.spark_udfs.decoding.path_choice import _log_once

    _log_once.cache_clear()
    install(spark, registry=registry.settings)
    other = ClientSettings.of(registry.settings.urls[0], retries=77)

    with caplog.at_level(logging.INFO, logger="strata.spark_udfs"):
        decode("value", registry=registry.settings, reader_schema=NUMBER)
        decode("value", registry=other, reader_schema=NUMBER, path="python")
        for _ in range(2):
            decode("value", registry=other, reader_schema=NUMBER)

    reason = "install was not called with these registry settings in this session"
    assert [
        (logging.INFO, "decoding in Spark's executors: install was called for this registry"),
        (logging.INFO, f"decoding in Python workers by {WAY}_udf: path='python'"),
        (logging.WARNING, f"{reason}, but with others: pass the same settings to install and decode"),
        (logging.INFO, f"decoding in Python workers by {WAY}_udf: {reason}"),
    ] == [(one.levelno, one.getMessage()) for one in caplog.records]


def test_errors_stay_readable(
    spark: SparkSession, registry: RegistryClient, everything: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark's error about an unresolved call fits a line, however wide the reader schema."""
    schema = json.dumps(everything[0])
    install(spark, registry=registry.settings)
    column = decode("value", registry=registry.settings, reader_schema=schema, path="jvm")

    with pytest.raises(AnalysisException, match="with name `value` cannot be resolved") as caught:
        spark.range(1).select(column)
    spark.range(1).selectExpr("X'00' AS value").select(column).explain()

    name = function_name(plan_decode(registry.settings, ReaderSource(schema), mode=Mode.DEADLETTER))
    assert len(name) < len(schema)
    assert len(str(caught.value)) < len(name) + 1000
    assert name not in capsys.readouterr().out
