"""Records may name their schema by GUID, before the payload or in a header, on both paths."""

import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from strata.serdes.avro import AvroSerializer
from strata.serdes.client import ClientSettings, RegistryClient
from strata.serdes.subject_name_strategies import Context
from strata.spark_udfs import decode, install, split_dead_letters
from strata.spark_udfs.decoding.paths import pandas_path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]
Headers = list[tuple[str, bytes | None]] | None

NUMBER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "int"}]}
WIDER = {"type": "record", "name": "Number", "fields": [{"name": "n", "type": "long"}]}
UNKNOWN = UUID("00000000-0000-0000-8000-000000000001")

HEADERS_TYPE = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(params=["jvm", "python"])
def path(request: pytest.FixtureRequest) -> Any:
    """Run the test on both paths."""
    return request.param


@pytest.fixture(params=["jvm", "python", "pandas"])
def every_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the test on both paths, and on the pandas path as on Spark 4.0."""
    if request.param == "pandas":
        request.getfixturevalue("pandas_of_old")
        monkeypatch.setattr("strata.spark_udfs.decoding.columns.choose_path", lambda *_: pandas_path)
        return "python"
    return request.param


def _settings(registry: Any) -> ClientSettings:
    return ClientSettings.of(registry.url, retries=1, backoff=0.01, timeout=60.0, missing_ttl=600.0)


def _records(spark: SparkSession, records: Sequence[tuple[bytes | None, Headers]]) -> DataFrame:
    """Return records with headers as from Kafka's source; `coalesce` makes them rows of a task."""
    columns = {
        "offset": pa.array(range(len(records))),
        "value": pa.array([value for value, _ in records], pa.binary()),
        "headers": pa.array(
            [None if h is None else [{"key": k, "value": v} for k, v in h] for _, h in records], HEADERS_TYPE
        ),
    }
    return spark.createDataFrame(pa.table(columns)).coalesce(1)


def _decoded(df: DataFrame, settings: ClientSettings, path: Any, **options: Any) -> DataFrame:
    install(df.sparkSession, registry=settings)
    reader = {"reader_schema": json.dumps(NUMBER)} | options
    return df.withColumn("decoded", decode("value", registry=settings, path=path, **reader))


def _numbers(df: DataFrame) -> list[int | str | None]:
    """Return the numbers, or the reasons for missing ones."""
    rows = [row["decoded"] for row in df.collect()]
    return [one["error"]["reason"] if one["error"] else one["value"] and one["value"]["n"] for one in rows]


def test_guid_frames(spark: SparkSession, scripted_registry: Any, frame: MakeFrame, every_path: Any) -> None:
    """Frames by id and by GUID may share a column; a process requests each id and GUID once, known or not."""
    first, second = scripted_registry.add(NUMBER), scripted_registry.add(WIDER)
    by_id, by_guid, wider = (
        frame(first, NUMBER, {"n": 1}),
        b"\1" + scripted_registry.guid(first).bytes + b"\4",
        b"\1" + scripted_registry.guid(second).bytes + b"\6",
    )
    unknown = b"\1" + UNKNOWN.bytes + b"\4"
    df = _records(spark, [(one, None) for one in [by_id, by_guid, by_guid, wider, unknown, by_id, None] * 20])

    numbers = _numbers(_decoded(df, _settings(scripted_registry), every_path, reader_schema=json.dumps(WIDER)))

    assert [1, 2, 2, 3, "unknown schema guid", 1, None] * 20 == numbers
    guids = [str(scripted_registry.guid(first)), str(scripted_registry.guid(second)), str(UNKNOWN)]
    assert dict.fromkeys([first, *guids], 1) == dict(scripted_registry.asked)


def _header(guid: UUID, name: str = "__value_schema_id", more: bytes = b"") -> tuple[str, bytes]:
    return name, b"\1" + guid.bytes + more


def test_headers(spark: SparkSession, scripted_registry: Any, frame: MakeFrame, every_path: Any) -> None:
    """The header selects the schema of an unframed payload; without the header the value is a frame."""
    schema_id = scripted_registry.add(NUMBER)
    guid = scripted_registry.guid(schema_id)
    framed = frame(schema_id, NUMBER, {"n": 1})
    by_id = ("__value_schema_id", b"\0" + schema_id.to_bytes(4, "big"))
    # what happens, value, headers, number
    records: list[tuple[str, bytes | None, Headers, int | None]] = [
        ("by GUID", b"\4", [_header(guid)], 2),
        ("by id", b"\4", [by_id], 2),
        ("among others", b"\6", [("trace", b"x"), _header(guid), ("trace", None)], 3),
        ("the first counts", b"\6", [_header(guid), _header(UNKNOWN)], 3),
        ("no headers", framed, None, 1),
        ("empty headers", framed, [], 1),
        ("other headers", framed, [("trace", b"x")], 1),
        ("the key's", framed, [_header(UNKNOWN, "__key_schema_id")], 1),
        ("without a value", framed, [("__value_schema_id", None)], 1),
        ("a tombstone", None, [_header(guid)], None),
    ]
    df = _records(spark, [(value, headers) for _, value, headers, _ in records])

    numbers = _numbers(_decoded(df, _settings(scripted_registry), every_path, headers="headers"))

    assert [(name, number) for name, *_, number in records] == list(
        zip([name for name, *_ in records], numbers, strict=True)
    )


def test_headers_of_keys(spark: SparkSession, scripted_registry: Any, path: Any) -> None:
    """A key is read by the key's header."""
    guid = scripted_registry.guid(scripted_registry.add(NUMBER))
    df = _records(spark, [(b"\4", [_header(UNKNOWN), _header(guid, "__key_schema_id")])])

    assert [2] == _numbers(_decoded(df, _settings(scripted_registry), path, headers=df["headers"], key=True))


def test_dead_letters(spark: SparkSession, scripted_registry: Any, frame: MakeFrame, every_path: Any) -> None:
    """A dead letter has exactly the bytes sent, not the header; decoding both again gives the same reason."""
    guid = scripted_registry.guid(scripted_registry.add(NUMBER))
    glue = b"\3\0" + b"u" * 17
    # value, headers, reason
    records: list[tuple[bytes, Headers, str]] = [
        (b"\4\4", [_header(guid)], "trailing bytes"),
        (b"", [_header(guid)], "truncated"),
        (b"\4", [_header(UNKNOWN)], "unknown schema guid"),
        (b"\4", [_header(guid, more=b"\0")], "trailing bytes in the header of the schema"),
        (b"\4", [("__value_schema_id", b"\1" + guid.bytes[:15])], "frame too short"),
        (b"\4", [("__value_schema_id", b"")], "frame too short"),
        (b"\4", [("__value_schema_id", b"\2" + guid.bytes)], "wrong magic byte 0x02"),
        (b"\4", [("__value_schema_id", b"\0\0\0\0\1\0")], "trailing bytes in the header of the schema"),
        (b"\1" + guid.bytes, None, "truncated"),
        (b"\1" + guid.bytes[:15], None, "frame too short"),
        (b"\1", None, "frame too short"),
        (glue, None, "unknown Glue schema version"),
    ]
    df = _records(spark, [(value, headers) for value, headers, _ in records])
    settings = _settings(scripted_registry)

    _, dead = split_dead_letters(_decoded(df, settings, every_path, headers="headers"))
    again = dead.select("offset", dead["frame"].alias("value"), "headers")
    letters = [(bytes(row["frame"]), row["reason"], row["schema_id"]) for row in dead.collect()]

    assert [(value, reason, None) for value, _, reason in records] == letters
    assert [reason for *_, reason in records] == _numbers(_decoded(again, settings, every_path, headers="headers"))


def test_failfast(spark: SparkSession, scripted_registry: Any, path: Any) -> None:
    """The error names the GUID and where the record came from."""
    guid = scripted_registry.guid(scripted_registry.add(NUMBER))
    df = _records(spark, [(b"\4", [_header(guid)]), (b"", [_header(guid)])])
    options: dict[str, Any] = {"headers": "headers", "mode": "FAILFAST", "origin": ["offset"]}

    decoded = _decoded(df, _settings(scripted_registry), path, **options)

    with pytest.raises((Py4JJavaError, PythonException), match=rf"\(schema guid {guid}, offset 1\): truncated \(at"):
        decoded.collect()


def test_registry_that_refuses(spark: SparkSession, scripted_registry: Any, path: Any) -> None:
    """An unusable answer fails the task and names the GUID; the next task decodes."""
    guid = scripted_registry.guid(scripted_registry.add(NUMBER))
    scripted_registry.status = 503
    decoded = _decoded(_records(spark, [(b"\1" + guid.bytes + b"\4", None)]), _settings(scripted_registry), path)

    with pytest.raises((Py4JJavaError, PythonException), match=f"schema guid {guid} could not be looked up"):
        decoded.collect()
    scripted_registry.status = None

    assert [2] == _numbers(decoded)


@pytest.mark.parametrize("framing", ["guid", "header"])
def test_frames_of_the_serializer(spark: SparkSession, registry: RegistryClient, path: Any, framing: str) -> None:
    """Frames that the serializer of `serdes` writes with a real registry can be decoded."""
    serialize = AvroSerializer(registry, json.dumps(NUMBER), conf={"schema.id.serializer": framing})
    headers: list[tuple[str, bytes | None]] = []
    value = serialize({"n": 7}, Context("guids", "value", headers))

    assert [7] == _numbers(_decoded(_records(spark, [(value, headers)]), registry.settings, path, headers="headers"))
