"""A table follows its topic: real tables of Delta and Iceberg, a folder of frames as the stream."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.every_column import COMMENT, EVERYTHING, statement_of
from harness.registry import RegistryNode
from harness.table_driver import Driver
from harness.table_readers import columns_of, rows_of
from strata.serdes import AvroSerializer, JsonSerializer
from strata.serdes.client import RegistryClient

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

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


@pytest.fixture(scope="module")
def driver(folder: Path, node: RegistryNode) -> Iterator[Driver]:
    """Yield the driver of a session with both table formats."""
    driver = Driver(folder, registry=node.url, frames=str(folder / "frames"))
    yield driver
    driver.kill()


_topics = count()
TABLES = {"iceberg": "lake.db.flights", "delta": "flights"}
# What both formats do by the same code runs on one of them in `make test`; Delta's new and wider columns are those of
# a running query.
MOSTLY_ICEBERG = ["iceberg", pytest.param("delta", marks=pytest.mark.slow)]
MOSTLY_DELTA = [pytest.param("iceberg", marks=pytest.mark.slow), "delta"]


@pytest.mark.parametrize("format", MOSTLY_ICEBERG)
def test_a_table_follows_its_topic(format: str, topic: Topic, driver: Driver, folder: Path) -> None:  # noqa: A002
    """Columns come and get wider with versions; a cast is refused; the dead letters and each record are there once."""
    checkpoint = folder / f"{format}.checkpoint"
    step = {"table": TABLES[format], "subject": f"{topic.name}-value", "format": format, "checkpoint": str(checkpoint)}

    def run(**options: Any) -> dict[str, Any]:
        return driver.ask(**step, options=options)

    topic.put({"id": 1, "delay": 11}, (b"x", b"\0\0\0\0\x01\x80"), (b"1", None))
    first = run()
    topic.put({"id": 2**33, "delay": 5, "gate": "C7"}, schema=WIDER)
    second = run()
    topic.put({"id": 3, "delay": "late", "gate": None}, schema=FRACTION)
    noted = set((checkpoint / "commits").iterdir())
    refused = run()
    assert noted == set((checkpoint / "commits").iterdir())
    apart = run(on_change="new_column")

    assert [(1, 11)] == [(row["id"], row["delay"]) for row in first["rows"]]
    assert ["truncated", "the record has no value; with keys= it would delete the row of its key"] == [
        row["reason"] for row in first["dead"]
    ]
    assert {"offset": "bigint", "id": "bigint", "delay": "int", "gate": "string"} == second["columns"]
    assert second["comments"]["gate"] == "Where it's boarding"
    assert [(1, None), (2**33, "C7")] == [(row["id"], row["gate"]) for row in second["rows"]]
    assert "column delay is int in the table and string in the schema" in refused["error"]
    assert second | {"error": refused["error"]} == refused
    assert [None, None, "late"] == [row["delay_string"] for row in apart["rows"]]
    assert [11, 5, None] == [row["delay"] for row in apart["rows"]]
    assert first["dead"] == apart["dead"]


@pytest.mark.parametrize("format", MOSTLY_ICEBERG)
def test_a_table_with_keys(format: str, topic: Topic, driver: Driver, folder: Path) -> None:  # noqa: A002 - as above
    """The newest record of a key is its row, and a record without value deletes it."""
    step = {"table": f"{TABLES[format]}_by_id", "subject": f"{topic.name}-value", "format": format}
    options = {"keys": ["id"], "key": "cast(cast(key as string) as int)"}

    topic.put(*[{"id": number, "delay": delay} for number, delay in ((1, 1), (2, 2), (1, 3))])
    checkpoint = str(folder / f"{format}.keys.checkpoint")
    first = driver.ask(**step, checkpoint=checkpoint, options=options)
    topic.put((b"1", None), {"id": 2, "delay": 7}, (b"5", None), (None, None))
    second = driver.ask(**step, checkpoint=checkpoint, options=options)

    assert first["error"] is None, first["error"]
    assert {1: 3, 2: 2} == {row["id"]: row["delay"] for row in first["rows"]}
    assert {2: 7} == {row["id"]: row["delay"] for row in second["rows"]}
    assert ["the record has no value, and its key cannot be decoded"] == [row["reason"] for row in second["dead"]]


@pytest.mark.parametrize("format", MOSTLY_ICEBERG)
def test_formats_of_json(format: str, topic: Topic, driver: Driver, folder: Path) -> None:  # noqa: A002 - as above
    """Strings of JSON become columns of the types that their formats mean, and other values dead letters."""
    at = {"type": "string", "format": "date-time", "description": "When it left"}
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}, "at": at}})
    serialize = JsonSerializer(topic.client, schema, conf={"validate": False})
    values = [{"n": 1, "at": "2026-11-26T14:00:00.25+01:00"}, {"n": 2, "at": "yesterday"}, {"n": 3}]
    topic.put(*((None, serialize(value, topic=topic.name)) for value in values))

    result = driver.ask(
        table=f"{TABLES[format]}_json",
        subject=f"{topic.name}-value",
        checkpoint=str(folder / f"{format}.json.checkpoint"),
        format=format,
        options={"typed_formats": True},
    )

    assert result["error"] is None, result["error"]
    assert "timestamp" == result["columns"]["at"]
    assert "When it left" == result["comments"]["at"]
    written = folder / ("lake/db" if format == "iceberg" else "warehouse") / "flights_json"
    moments = {row["n"]: row["at"] for row in rows_of(format, written).to_pylist()}
    assert moments.pop(3) is None
    assert {1: datetime(2026, 11, 26, 13, 0, 0, 250000, UTC)} == moments
    assert ["invalid date-time"] == [row["reason"] for row in result["dead"]]


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


@pytest.mark.parametrize("format", MOSTLY_ICEBERG)
def test_renames(format: str, topic: Topic, driver: Driver, folder: Path) -> None:  # noqa: A002 - as above
    """An alias renames a column, with its values, where the format tracks columns by id."""
    table = f"{TABLES[format]}_renamed"
    mapped = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"} if format == "delta" else {}
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in (mapped | {"made": "by hand"}).items())
    columns = "offset BIGINT, id INT, delay INT"
    driver.ask(sql=f"CREATE TABLE {table} ({columns}) USING {format} TBLPROPERTIES ({properties})")
    step = {"table": table, "subject": f"{topic.name}-value", "format": format}
    step["checkpoint"] = str(folder / f"{format}.renamed.checkpoint")
    renamed = record(field("number", "long", aliases=["id"]), field("delay", "int"))

    topic.put({"id": 1, "delay": 11})
    assert driver.ask(**step)["error"] is None
    topic.put({"number": 2**33, "delay": 5}, schema=renamed)
    refused = driver.ask(**step, options={"on_change": "refuse"})["error"]
    result = driver.ask(**step)

    assert "column id has the name number in the schema" in refused
    assert result["error"] is None, result["error"]
    assert {"offset": "bigint", "number": "bigint", "delay": "int"} == result["columns"]
    assert [(1, 11), (2**33, 5)] == [(row["number"], row["delay"]) for row in result["rows"]]


@pytest.mark.parametrize("format", MOSTLY_DELTA)
def test_a_running_query(format: str, topic: Topic, driver: Driver, folder: Path) -> None:  # noqa: A002 - as above
    """A query that runs takes up versions that are registered meanwhile, and stops where a cast is needed."""
    table = f"{TABLES[format]}_running"
    files = folder / ("lake/db" if format == "iceberg" else "warehouse") / table.rpartition(".")[2]
    sign = folder / f"{format}.stop"
    step = {"table": table, "subject": f"{topic.name}-value", "format": format, "stop": str(sign)}
    topic.put({"id": 1, "delay": 11})

    def wait_for(*ids: int) -> None:
        while ids_in(format, files) != set(ids):
            assert not driver.has_answered(0.1), driver.answer()

    driver.send(**step, checkpoint=str(folder / f"{format}.running.checkpoint"))
    wait_for(1)
    topic.put({"id": 2**33, "delay": 5, "gate": "C7"}, schema=WIDER)
    wait_for(1, 2**33)
    topic.put({"id": 3, "delay": 1, "gate": None, "seats": 99}, schema=COUNTED)
    wait_for(1, 2**33, 3)
    topic.put({"id": 4, "delay": "late", "gate": None}, schema=FRACTION)
    result = driver.answer()
    sign.touch()

    assert "column delay is int in the table and string in the schema" in result["error"]
    assert [None, None, 99] == [row["seats"] for row in result["rows"]]
    assert [] == result["dead"]


def ids_in(format_: str, table: Path) -> set[int]:
    """Return the ids in a table, or none while it is being made."""
    try:
        return set(rows_of(format_, table).column("id").to_pylist())
    except (FileNotFoundError, pa.ArrowInvalid):
        return set()


def test_defaults(topic: Topic, driver: Driver, folder: Path) -> None:
    """In tables of Iceberg's format 3 older rows have the default of a new column, for other readers too."""
    driver.ask(
        sql="CREATE TABLE lake.db.seats (offset BIGINT, id BIGINT, delay INT, gate STRING) USING iceberg"
        " TBLPROPERTIES ('format-version' = '3')"
    )
    step = {"table": "lake.db.seats", "subject": f"{topic.name}-value", "format": "iceberg"}
    step["checkpoint"] = str(folder / "seats.checkpoint")

    topic.put({"id": 1, "delay": 0, "gate": None}, schema=WIDER)
    assert driver.ask(**step)["error"] is None
    topic.put({"id": 2, "delay": 0, "gate": None, "seats": 99}, schema=COUNTED)
    result = driver.ask(**step)

    assert result["error"] is None, result["error"]
    assert [(1, 180), (2, 99)] == [(row["id"], row["seats"]) for row in result["rows"]]
    table = folder / "lake" / "db" / "seats"
    assert {(1, 180), (2, 99)} == {(row["id"], row["seats"]) for row in rows_of("iceberg", table).to_pylist()}
    assert "Seats" == columns_of("iceberg", table)["seats"]


@pytest.mark.parametrize("format", MOSTLY_ICEBERG)
def test_the_table_of_a_statement(format: str, topic: Topic, driver: Driver, folder: Path) -> None:  # noqa: A002
    """The statement of `strata table-ddl` makes the table that a topic needs: it is followed without a change."""
    table = f"{TABLES[format]}_by_ddl"
    topic.put(VALUE, schema=EVERYTHING)

    assert driver.ask(sql=statement_of(EVERYTHING, table, format)) == {"rows": []}
    driver.ask(sql=f"ALTER TABLE {table} ADD COLUMNS (offset BIGINT)")
    result = driver.ask(
        table=table,
        subject=f"{topic.name}-value",
        checkpoint=str(folder / f"{format}.ddl.checkpoint"),
        format=format,
        options={"on_change": "refuse", "union_names": "type"},
    )

    assert result["error"] is None, result["error"]
    assert result["dead"] == []
    assert [(1, "s", {"int": 7, "string": None}, [{"sku": "k", "price": None}])] == [
        (row["i"], row["s"], row["u"], row["lines"]) for row in result["rows"]
    ]
    assert COMMENT == result["comments"]["b"]


def test_the_table_of_parquet_files(driver: Driver) -> None:
    """Spark makes the table of Parquet files too, with its comments."""
    driver.ask(sql=statement_of(EVERYTHING, "by_ddl_in_parquet", "parquet"))
    columns = driver.ask(sql="DESCRIBE TABLE by_ddl_in_parquet")["rows"]

    assert [field["name"] for field in EVERYTHING["fields"]] == [column["col_name"] for column in columns]
    assert COMMENT == columns[0]["comment"]
