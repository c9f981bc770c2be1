"""A table follows its topic: real tables of Delta and Iceberg, a folder of frames as the stream."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession, functions

from harness.every_column import COMMENT, EVERYTHING, statement_of
from harness.registry import RegistryNode
from harness.table_readers import columns_of, rows_of
from harness.table_session import activate, table_session
from harness.waiting import until
from strata.serdes import AvroSerializer, JsonSerializer
from strata.serdes.client import RegistryClient
from strata.spark_udfs import install
from strata.spark_udfs.tables import follow

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

FRAMES = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)


def record(*fields: Any) -> dict[str, Any]:
    """Return a schema."""
    return {"type": "record", "name": "Flight", "fields": list(fields)}


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    """Return a field."""
    return {"name": name, "type": type_, **more}


GATE = field("gate", ["null", "string"], default=None, doc="Where it's boarding")
FLIGHT = record(field("id", "int"), field("delay", "int"))
WIDER = record(field("id", "long"), field("delay", "int"), GATE)
COUNTED = record(field("id", "long"), field("delay", "int"), GATE, field("seats", "int", default=180, doc="Seats"))
FRACTION = record(field("id", "long"), field("delay", "string"), GATE)

SCHEMA = "key binary, value binary, topic string, partition int, offset bigint"


class Topic:
    """A folder of frames, with a subject of its own: the newest version counts."""

    def __init__(self, folder: Path, node: RegistryNode, name: str) -> None:
        self.folder, self.name, self._offsets = folder, name, count()
        self.client = RegistryClient(node.url)
        self.client.set_config("NONE")
        folder.mkdir()

    def put(self, *values: Any, schema: Any = FLIGHT) -> None:
        """Write records: values of a schema, or pairs of key and frame."""
        serialize = AvroSerializer(self.client, json.dumps(schema))
        rows: dict[str, list[Any]] = {name: [] for name in FRAMES.names}
        for value in values:
            key, frame = value if isinstance(value, tuple) else (None, serialize(value, topic=self.name))
            for name, part in zip(FRAMES.names, (key, frame, "flights", 0, next(self._offsets)), strict=True):
                rows[name].append(part)
        pq.write_table(pa.table(rows, FRAMES), self.folder / f"{next(self._offsets)}.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of frames, tables and checkpoints."""
    return tmp_path_factory.mktemp("follow")


@pytest.fixture
def topic(node: RegistryNode, folder: Path) -> Topic:
    """Return a topic without records."""
    shutil.rmtree(folder / "frames", ignore_errors=True)
    return Topic(folder / "frames", node, f"flights-{next(_topics)}")


@pytest.fixture(scope="module")
def node() -> Iterator[RegistryNode]:
    """Yield a registry."""
    with RegistryNode("memory:") as node:
        yield node


@dataclass(frozen=True)
class Followed:
    """A table after a query has followed its topic, and why the query failed."""

    error: str | None
    columns: dict[str, str]
    comments: dict[str, str | None]
    rows: list[Row]
    dead: list[Row]

    @property
    def content(self) -> tuple[Any, ...]:
        """What the table is, whatever became of the query."""
        return self.columns, self.comments, self.rows, self.dead


class Tables:
    """A session with both table formats, and the registry of the topics."""

    def __init__(self, spark: SparkSession, folder: Path, url: str) -> None:
        self.spark, self._folder, self._url = spark, folder, url
        install(spark, registry=url)

    def sql(self, text: str) -> list[Row]:
        """Run a statement."""
        return self.spark.sql(text).collect()

    def error_of(self, table: str, topic: Topic, format_: Any, **options: Any) -> str | None:
        """Follow a topic, and return why the query failed; a table has one checkpoint."""
        activate(self.spark)  # another thread may follow
        try:
            follow(
                self.spark.readStream.schema(SCHEMA).parquet(str(topic.folder)),
                table=table,
                subject=f"{topic.name}-value",
                registry=self._url,
                checkpoint=str(self.checkpoint(table)),
                format=format_,
                with_columns=["offset"],
                **{"trigger": {"availableNow": True}, **options},
            )
        except (ValueError, TypeError, PySparkException) as failure:
            return f"{type(failure).__name__}: {failure}"
        return None

    def follow(self, table: str, topic: Topic, format_: Any, **options: Any) -> Followed:
        """Follow a topic, and return the table."""
        error = self.error_of(table, topic, format_, **options)
        fields = self.spark.table(table).schema.fields
        return Followed(
            error,
            {field.name: field.dataType.simpleString() for field in fields},
            {field.name: field.metadata.get("comment") for field in fields},
            self._rows(table),
            self._rows(f"{table}_dead_letters"),
        )

    def _rows(self, table: str) -> list[Row]:
        """Return the rows of a table in their order in the topic; Spark would need a second job to sort them."""
        return sorted(self.spark.table(table).collect(), key=lambda row: row["offset"])

    def checkpoint(self, table: str) -> Path:
        """Return the folder of the checkpoint."""
        return self._folder / f"{table}.checkpoint"


@pytest.fixture(scope="module")
def tables(spark: SparkSession, folder: Path, node: RegistryNode) -> Iterator[Tables]:
    """Yield a session with both table formats."""
    session = table_session(spark, folder)
    activate(session)
    yield Tables(session, folder, node.url)
    activate(spark)


_topics = count()
TABLES = {"iceberg": "lake.db.flights", "delta": "flights"}
# What both formats do by the same code runs on one of them in `make test`; Delta's new and wider columns are those of
# a running query.
MOSTLY_ICEBERG = ["iceberg", pytest.param("delta", marks=pytest.mark.slow)]
LONG_ICEBERG = [pytest.param("iceberg", marks=pytest.mark.long), pytest.param("delta", marks=pytest.mark.slow)]
LONG_DELTA = [pytest.param("iceberg", marks=pytest.mark.slow), pytest.param("delta", marks=pytest.mark.long)]


@pytest.mark.parametrize("format_", TABLES)
def test_a_row_of_a_statement(format_: str, tables: Tables, folder: Path) -> None:
    """The session has tables of both formats; other readers see a row that a statement inserts."""
    name = f"{TABLES[format_]}_inserted"
    tables.sql(f"CREATE TABLE {name} (id INT) USING {format_}")
    tables.sql(f"INSERT INTO {name} VALUES (7)")

    files = folder / ("lake/db" if format_ == "iceberg" else "warehouse") / "flights_inserted"
    assert [{"id": 7}] == rows_of(format_, files).to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("format_", TABLES)
def test_a_table_follows_its_topic(format_: str, topic: Topic, tables: Tables) -> None:
    """Columns come and get wider with versions; a cast is refused; the dead letters and each record are there once."""
    table = TABLES[format_]
    commits = tables.checkpoint(table) / "commits"

    topic.put({"id": 1, "delay": 11}, (b"x", b"\0\0\0\0\x01\x80"), (b"1", None))
    first = tables.follow(table, topic, format_)
    topic.put({"id": 2**33, "delay": 5, "gate": "C7"}, schema=WIDER)
    second = tables.follow(table, topic, format_)
    topic.put({"id": 3, "delay": "late", "gate": None}, schema=FRACTION)
    noted = set(commits.iterdir())
    refused = tables.follow(table, topic, format_)
    assert noted == set(commits.iterdir())
    apart = tables.follow(table, topic, format_, on_change="new_column")

    assert [(1, 11)] == [(row["id"], row["delay"]) for row in first.rows]
    assert ["truncated", "the record has no value; with keys= it would delete the row of its key"] == [
        row["reason"] for row in first.dead
    ]
    assert {"offset": "bigint", "id": "bigint", "delay": "int", "gate": "string"} == second.columns
    assert second.comments["gate"] == "Where it's boarding"
    assert [(1, None), (2**33, "C7")] == [(row["id"], row["gate"]) for row in second.rows]
    assert "column delay is int in the table and string in the schema" in (refused.error or "")
    assert second.content == refused.content
    assert [None, None, "late"] == [row["delay_string"] for row in apart.rows]
    assert [11, 5, None] == [row["delay"] for row in apart.rows]
    assert first.dead == apart.dead


@pytest.mark.parametrize("format_", LONG_ICEBERG)
def test_formats_of_json(format_: str, topic: Topic, tables: Tables, folder: Path) -> None:
    """Strings of JSON become columns of the types that their formats mean, and other values dead letters."""
    at = {"type": "string", "format": "date-time", "description": "When it left"}
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}, "at": at}})
    serialize = JsonSerializer(topic.client, schema, conf={"validate": False})
    values = [{"n": 1, "at": "2026-11-26T14:00:00.25+01:00"}, {"n": 2, "at": "yesterday"}, {"n": 3}]
    topic.put(*((None, serialize(value, topic=topic.name)) for value in values))

    result = tables.follow(f"{TABLES[format_]}_json", topic, format_, typed_formats=True)

    assert result.error is None, result.error
    assert "timestamp" == result.columns["at"]
    assert "When it left" == result.comments["at"]
    written = folder / ("lake/db" if format_ == "iceberg" else "warehouse") / "flights_json"
    moments = {row["n"]: row["at"] for row in rows_of(format_, written).to_pylist()}
    assert moments.pop(3) is None
    assert {1: datetime(2026, 11, 26, 13, 0, 0, 250000, UTC)} == moments
    assert ["invalid date-time"] == [row["reason"] for row in result.dead]


@pytest.mark.parametrize("format_", LONG_ICEBERG)
def test_a_table_with_keys(format_: str, topic: Topic, tables: Tables) -> None:
    """The newest record of a key is its row, and a record without value deletes it."""
    table = f"{TABLES[format_]}_by_id"
    tables.sql(f"CREATE TABLE {table} (offset BIGINT, id INT, delay INT) USING {format_}")
    tables.sql(f"INSERT INTO {table} VALUES (0, 1, 3), (1, 2, 2), (2, 4, 4)")
    key = functions.expr("cast(cast(key as string) as int)")

    topic.put(
        {"id": 3, "delay": 1}, (b"1", None), {"id": 2, "delay": 7}, {"id": 3, "delay": 9}, (b"5", None), (None, None)
    )
    result = tables.follow(table, topic, format_, keys=["id"], key=key)

    assert result.error is None, result.error
    assert {2: 7, 3: 9, 4: 4} == {row["id"]: row["delay"] for row in result.rows}
    assert 3 == len(result.rows)
    assert ["the record has no value, and its key cannot be decoded"] == [row["reason"] for row in result.dead]


VALUE = {
    "b": True,
    "i": 1,
    "l": 2,
    "f": 0.5,
    "d": 0.25,
    "s": "s",
    "y": b"y",
    "x": b"xx",
    "dec": Decimal("1.25"),
    "day": date(2026, 11, 26),
    "clock": time(1),
    "micros": time(2),
    "at": datetime(2026, 1, 1, tzinfo=UTC),
    "nanos": 5,
    "local": datetime(2026, 1, 1),  # noqa: DTZ001 - a local time
    "id": str(UUID(int=1)),
    "e": "A",
    "lines": [{"sku": "k", "price": None}],
    "by": {"k": 1},
    "u": 7,
}


@pytest.mark.parametrize("format_", MOSTLY_ICEBERG)
def test_renames(format_: str, topic: Topic, tables: Tables) -> None:
    """An alias renames a column, with its values, where the format tracks columns by id."""
    table = f"{TABLES[format_]}_renamed"
    mapped = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"} if format_ == "delta" else {}
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in (mapped | {"made": "by hand"}).items())
    columns = "offset BIGINT, id INT, delay INT"
    tables.sql(f"CREATE TABLE {table} ({columns}) USING {format_} TBLPROPERTIES ({properties})")
    renamed = record(field("number", "long", aliases=["id"]), field("delay", "int"))

    tables.sql(f"INSERT INTO {table} VALUES (-1, 1, 11)")
    topic.put({"number": 2**33, "delay": 5}, schema=renamed)
    refused = tables.error_of(table, topic, format_, on_change="refuse")
    result = tables.follow(table, topic, format_)

    assert "column id has the name number in the schema" in (refused or "")
    assert result.error is None, result.error
    assert {"offset": "bigint", "number": "bigint", "delay": "int"} == result.columns
    assert [(1, 11), (2**33, 5)] == [(row["number"], row["delay"]) for row in result.rows]


@pytest.mark.parametrize("format_", LONG_DELTA)
def test_a_running_query(format_: str, topic: Topic, tables: Tables, folder: Path) -> None:
    """A query that runs takes up versions that are registered meanwhile, and stops where a cast is needed."""
    table = f"{TABLES[format_]}_running"
    files = folder / ("lake/db" if format_ == "iceberg" else "warehouse") / table.rpartition(".")[2]
    topic.put({"id": 1, "delay": 11})

    def wait_for(query: Future[str | None], *ids: int) -> None:
        until(lambda: query.done() or ids_in(format_, files) == set(ids))
        assert not query.done(), query.result()

    with ThreadPoolExecutor(1) as threads:
        query = threads.submit(tables.error_of, table, topic, format_, trigger={"processingTime": "200 milliseconds"})
        try:
            wait_for(query, 1)
            topic.put({"id": 2**33, "delay": 5, "gate": "C7"}, schema=WIDER)
            wait_for(query, 1, 2**33)
            topic.put({"id": 3, "delay": "late", "gate": None}, schema=FRACTION)
            error = query.result(60)
        finally:
            for running in tables.spark.streams.active:
                running.stop()

    assert "column delay is int in the table and string in the schema" in (error or "")
    assert {(1, None), (2**33, "C7")} == {(row["id"], row["gate"]) for row in rows_of(format_, files).to_pylist()}
    assert {"offset": "", "id": "", "delay": "", "gate": "Where it's boarding"} == columns_of(format_, files)
    assert [] == rows_of(format_, files.with_name(f"{files.name}_dead_letters")).to_pylist()


def ids_in(format_: str, table: Path) -> set[int]:
    """Return the ids in a table, or none while it is being made."""
    try:
        return {row["id"] for row in rows_of(format_, table).to_pylist()}
    except (FileNotFoundError, pa.ArrowInvalid):
        return set()


def test_defaults(topic: Topic, tables: Tables, folder: Path) -> None:
    """In tables of Iceberg's format 3 older rows have the default of a new column, for other readers too."""
    table = "lake.db.seats"
    tables.sql(
        f"CREATE TABLE {table} (offset BIGINT, id BIGINT, delay INT, gate STRING) USING iceberg"
        " TBLPROPERTIES ('format-version' = '3')"
    )

    tables.sql(f"INSERT INTO {table} VALUES (-1, 1, 0, NULL)")
    topic.put({"id": 2, "delay": 0, "gate": None, "seats": 99}, schema=COUNTED)
    result = tables.follow(table, topic, "iceberg")

    assert result.error is None, result.error
    assert [(1, 180), (2, 99)] == [(row["id"], row["seats"]) for row in result.rows]
    files = folder / "lake" / "db" / "seats"
    assert {(1, 180), (2, 99)} == {(row["id"], row["seats"]) for row in rows_of("iceberg", files).to_pylist()}
    assert "Seats" == columns_of("iceberg", files)["seats"]


@pytest.mark.parametrize("format_", MOSTLY_ICEBERG)
def test_the_table_of_a_statement(format_: str, topic: Topic, tables: Tables) -> None:
    """The statement of `strata table-ddl` makes the table that a topic needs: it is followed without a change."""
    table = f"{TABLES[format_]}_by_ddl"
    topic.put(VALUE, schema=EVERYTHING)

    assert [] == tables.sql(statement_of(EVERYTHING, table, format_))
    tables.sql(f"ALTER TABLE {table} ADD COLUMNS (offset BIGINT)")
    result = tables.follow(table, topic, format_, on_change="refuse", union_names="type")

    assert result.error is None, result.error
    assert result.dead == []
    assert [(1, "s", Row(int=7, string=None), [Row(sku="k", price=None)])] == [
        (row["i"], row["s"], row["u"], row["lines"]) for row in result.rows
    ]
    assert COMMENT == result.comments["b"]


def test_the_table_of_parquet_files(tables: Tables) -> None:
    """Spark makes the table of Parquet files too, with its comments."""
    tables.sql(statement_of(EVERYTHING, "by_ddl_in_parquet", "parquet"))
    columns = tables.sql("DESCRIBE TABLE by_ddl_in_parquet")

    assert [field["name"] for field in EVERYTHING["fields"]] == [column["col_name"] for column in columns]
    assert COMMENT == columns[0]["comment"]
