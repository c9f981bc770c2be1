"""A table follows its topic: real tables of Delta and Iceberg, a folder of frames as the stream."""

import json
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.registry import RegistryNode
from harness.table_driver import Driver
from strata.serdes import AvroSerializer
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


def test_a_table_follows_its_topic(topic: Topic, driver: Driver, folder: Path) -> None:
    """Columns come and get wider with versions; a cast is refused; the dead letters and each record are there once."""

    def run(format: str, **options: Any) -> dict[str, Any]:  # noqa: A002 - the option's name
        checkpoint = str(folder / f"{format}.checkpoint")
        step = {"table": TABLES[format], "subject": f"{topic.name}-value", "checkpoint": checkpoint, "format": format}
        return driver.ask(**step, options=options)

    topic.put({"id": 1, "delay": 11}, (b"x", b"\0\0\0\0\x01\x80"), (b"1", None))
    first = {name: run(name) for name in TABLES}
    topic.put({"id": 2**33, "delay": 5, "gate": "C7"}, schema=WIDER)
    second = {name: run(name) for name in TABLES}
    topic.put({"id": 3, "delay": "late", "gate": None}, schema=FRACTION)
    refused = {name: run(name) for name in TABLES}
    apart = {name: run(name, on_change="new_column") for name in TABLES}

    for name in TABLES:
        assert [(1, 11)] == [(row["id"], row["delay"]) for row in first[name]["rows"]]
        assert ["truncated", "the record has no value; with keys= it would delete the row of its key"] == [
            row["reason"] for row in first[name]["dead"]
        ]
        assert {"offset": "bigint", "id": "bigint", "delay": "int", "gate": "string"} == second[name]["columns"]
        assert second[name]["comments"]["gate"] == "Where it's boarding"
        assert [(1, None), (2**33, "C7")] == [(row["id"], row["gate"]) for row in second[name]["rows"]]
        assert "column delay is int in the table and string in the schema" in refused[name]["error"]
        assert second[name] | {"error": refused[name]["error"]} == refused[name]
        assert [None, None, "late"] == [row["delay_string"] for row in apart[name]["rows"]]
        assert [11, 5, None] == [row["delay"] for row in apart[name]["rows"]]
        assert first[name]["dead"] == apart[name]["dead"]


@pytest.mark.parametrize("format", TABLES)
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
