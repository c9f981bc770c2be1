"""A table follows 50 versions of a subject while its driver is killed at random moments.

Versions add, widen, rename and drop fields and change the symbols of an enum. Three more change a type so that values
would be cast. Each of those is refused, and the next version takes it back: what was written with it cannot be read and
belongs to the dead letters.
"""

import json
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from harness.jars import spark_kafka_jars
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from harness.table_driver import Driver
from harness.table_readers import rows_of
from strata.serdes import AvroSerializer
from strata.serdes.client import RegistryClient

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3000)]

VERSIONS = 50
RECORDS = int(os.environ.get("FOLLOW_RECORDS", "200000")) // VERSIONS
"""Of each version."""
KILLS = 20
BATCH = 2 * RECORDS
REFUSED = {15: ("a", "string"), 30: ("n", "double"), 45: ("d", "string")}
"""Version -> a field and the type by which it would be cast."""
LEFT_BEHIND = {"iceberg": ("drop", "fewer symbols"), "delta": ("drop", "fewer symbols", "rename")}
"""Changes after which an older record would be another row, so all older records are written first."""


class History:
    """The versions of a subject, and what the table must hold in the end."""

    def __init__(self, seed: int, *, renames: bool) -> None:
        self._chance, self._renames = random.Random(seed), renames
        self.fields: dict[str, Any] = {
            "n": "long",
            "a": "int",
            "f": "float",
            "d": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "e": {"type": "enum", "name": "E", "symbols": ["A", "B", "C"], "default": "A"},
        }
        self.aliases: dict[str, list[str]] = {}
        self.rows: dict[int, dict[str, Any]] = {}
        self._names = count()

    def change(self) -> str:
        """Change the schema in one way, and return its name."""
        added = [name for name in self.fields if name.startswith("x")]
        ways = ["add", "add", "widen", "more symbols", "fewer symbols"] + ["drop", "rename"] * bool(added)
        way = self._chance.choice(ways)
        match way:
            case "add":
                self.fields[f"x{next(self._names)}"] = self._chance.choice(
                    ["string", "long", {"type": "array", "items": "int"}]
                )
            case "drop":
                del self.fields[self._chance.choice(added)]
            case "rename":
                self._rename(self._chance.choice(added), f"x{next(self._names)}")
            case "widen":
                self._widen()
            case "more symbols":
                self.fields["e"]["symbols"].append(f"S{next(self._names)}")
            case "fewer symbols" if len(self.fields["e"]["symbols"]) > 2:
                self.fields["e"]["symbols"].pop()
        return way

    def _rename(self, old: str, new: str) -> None:
        self.fields[new] = self.fields.pop(old)
        self.aliases[new] = [old, *self.aliases.pop(old, [])]
        if self._renames:
            for row in self.rows.values():
                if old in row:
                    row[new] = row.pop(old)

    def _widen(self) -> None:
        if self.fields["a"] == "int":
            self.fields["a"] = "long"
        elif self.fields["f"] == "float":
            self.fields["f"] = "double"
        else:
            self.fields["d"]["precision"] += 1

    def schema(self, **types: Any) -> str:
        """Return the present version as text, with other types for some fields."""
        fields = []
        for name, type_ in (self.fields | types).items():
            field = (
                {"name": name, "type": ["null", type_], "default": None}
                if name[0] == "x"
                else {"name": name, "type": type_}
            )
            fields.append(field | ({"aliases": self.aliases[name]} if name in self.aliases else {}))
        return json.dumps({"type": "record", "name": "R", "fields": fields})

    def record(self, number: int, *, expected: bool = True, **types: Any) -> dict[str, Any]:
        """Return a record of the present version, and note it as a row of the table."""
        values = {name: _value(number, type_) for name, type_ in (self.fields | types).items()}
        values["n"] = float(number) if types.get("n") == "double" else number
        if expected:
            self.rows[number] = dict(values)
        return values


def _value(number: int, type_: Any) -> Any:
    match type_:
        case "string":
            return f"text {number}"
        case "int":
            return number
        case "long":
            return number << 33
        case "float" | "double":
            return number / 4
        case {"type": "enum"}:
            return type_["symbols"][number % len(type_["symbols"])]
        case {"type": "array"}:
            return [number, -number]
    return Decimal(number).scaleb(-2)


def _comparable(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, str(value)) for name, value in row.items() if value is not None))


_topics = count()


class Killer:
    """Kills a driver while it follows: at a random moment, or as soon as it has written a file of a certain sort."""

    def __init__(self, chance: random.Random, folder: Path, tables: Sequence[Path]) -> None:
        self._chance, self._longest = chance, 1.0
        checkpoint = folder / "checkpoint"
        self._places = {"planned": checkpoint / "offsets", "noted": checkpoint / "commits"}
        for name, table in zip(("rows", "dead letters"), tables, strict=True):
            log = "_delta_log" if (table / "_delta_log").exists() else "metadata"
            self._places[f"wrote {name}"] = table / log
        self.moments: Counter[str] = Counter()
        """What the query had done last when it was killed."""

    def timed(self, driver: Driver, step: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a step, whose duration is the range of random moments."""
        start = time.monotonic()
        answer = driver.ask(**step)
        self._longest = time.monotonic() - start
        return answer

    def kill(self, driver: Driver, step: dict[str, Any]) -> None:
        """Send a step and kill the driver before it answers, if it does not answer first."""
        driver.ask(sql="SELECT 1")  # it follows from here on
        before = self._files()
        moment = self._chance.choice(["random", *self._places])
        deadline = time.monotonic() + (self._chance.uniform(0, self._longest) if moment == "random" else 60)
        driver.send(**step)
        while time.monotonic() < deadline and not driver.has_answered(0.002):
            if moment != "random" and self._files()[moment] != before[moment]:
                break
        answered = driver.has_answered(0)
        driver.kill()
        after = self._files()
        last = next((name for name in reversed(_ORDER) if after[name] != before[name]), "nothing")
        self.moments["answered" if answered else last] += 1

    def _files(self) -> dict[str, set[Path]]:
        return {name: set(place.iterdir()) if place.exists() else set() for name, place in self._places.items()}


_ORDER = ("planned", "wrote rows", "wrote dead letters", "noted")


@pytest.mark.kafka
@pytest.mark.parametrize("format", ["iceberg", "delta"])
def test_each_record_once(format: str, kafka_broker: KafkaBroker, tmp_path: Path) -> None:  # noqa: A002 - the option
    """Every good record is in the table once with its values, every other one in the dead letters."""
    seed = int(os.environ.get("FOLLOW_SEED", random.randrange(2**32)))
    chance, history = random.Random(seed), History(seed, renames=format == "iceberg")
    topic = f"follow-{format}-{next(_topics)}-{os.getpid()}"
    folders = [tmp_path / ("lake/db" if format == "iceberg" else "") / name for name in ("rows", "dead")]
    table, letters = (f"lake.db.{folder.name}" if format == "iceberg" else f"delta.`{folder}`" for folder in folders)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    killed_before = set(chance.sample(range(2, VERSIONS + 1), KILLS))
    numbers, dead, ways = count(), dict[int, bytes](), Counter[str]()
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE")
        options: dict[str, Any] = {
            "brokers": kafka_broker.bootstrap,
            "topic": topic,
            "batch": BATCH,
            "registry": node.url,
        }
        step = {
            "table": table,
            "subject": f"{topic}-value",
            "checkpoint": str(tmp_path / "checkpoint"),
            "format": format,
            "options": {"dead_letters": letters},
        }

        def produce(schema: str, expected: bool, **types: Any) -> None:
            serialize = AvroSerializer(client, schema)
            for _ in range(RECORDS if expected else 50):
                number = next(numbers)
                value = history.record(number, expected=expected, **types)
                frame = serialize(value, topic=topic) or b""
                producer.produce(topic, frame, partition=0)
                if not expected:
                    dead[number] = frame
                producer.poll(0)
            producer.flush()

        def start() -> Driver:
            return Driver(tmp_path, spark_kafka_jars(), **options)

        produce(history.schema(), True)
        first = start()  # a kill while a table is being made may leave a folder that Delta refuses
        assert first.ask(**step) == {"error": None}, seed
        first.kill()
        driver: Driver | None = None
        killer = Killer(chance, tmp_path, folders)
        for version in range(2, VERSIONS + 1):
            if version in REFUSED:
                name, type_ = REFUSED[version]
                driver = driver or start()
                assert driver.ask(**step) == {"error": None}, seed
                produce(history.schema(**{name: type_}), False, **{name: type_})
                before = rows_of(format, folders[0]).num_rows
                refusal = driver.ask(**step)["error"]
                assert f"column {name} is" in refusal, (seed, refusal)
                assert before == rows_of(format, folders[0]).num_rows, seed
            way = history.change()
            ways[way] += 1
            if way in LEFT_BEHIND[format] and version not in REFUSED:
                driver = driver or start()
                assert killer.timed(driver, step) == {"error": None}, seed
            produce(history.schema(), True)
            if version in killed_before:
                killer.kill(driver or start(), step)
                driver = None
        driver = driver or start()
        assert driver.ask(**step) == {"error": None}, seed
        driver.kill()

    rows, letters_written = (rows_of(format, folder) for folder in folders)
    result = f"{format}, seed {seed}: {rows.num_rows} rows, {len(dead)} dead letters; killed after {killer.moments}"
    logging.getLogger(__name__).info(result)
    assert killer.moments.total() == KILLS
    offsets = [*rows.column("offset").to_pylist(), *letters_written.column("offset").to_pylist()]
    assert list(range(next(numbers))) == sorted(offsets), result
    good = Counter(map(_comparable, rows.drop_columns(["offset"]).to_pylist()))
    assert Counter(map(_comparable, history.rows.values())) == good, (result, ways)
    written = letters_written.select(["topic", "partition", "offset", "frame"]).to_pylist()
    assert dead == {row["offset"]: row["frame"] for row in written}, result
    assert {(topic, 0)} == {(row["topic"], row["partition"]) for row in written}, result


@pytest.mark.parametrize("format", ["iceberg", "delta"])
def test_killed_executors(format: str, tmp_path: Path) -> None:  # noqa: A002 - the option
    """Each record is in the table once when executors are killed while they write."""
    files, each, kills = 12, 500, 3
    frames = tmp_path / "frames"
    frames.mkdir()
    folders = [tmp_path / ("lake/db" if format == "iceberg" else "") / name for name in ("rows", "dead")]
    table, letters = (f"lake.db.{folder.name}" if format == "iceberg" else f"delta.`{folder}`" for folder in folders)
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        serialize = AvroSerializer(client, json.dumps({"type": "record", "name": "R", "fields": [_N]}))
        for number in range(files):
            offsets = list(range(number * each, (number + 1) * each))
            values = [serialize({"n": offset}, topic="n") if offset % 50 else b"bad" for offset in offsets]
            columns = {"key": pa.nulls(each, pa.binary()), "value": pa.array(values, pa.binary())}
            columns |= {"topic": pa.array(["n"] * each), "partition": pa.array([0] * each, pa.int32())}
            pq.write_table(pa.table(columns | {"offset": pa.array(offsets)}), frames / f"{number:02}.parquet")
        options: dict[str, Any] = {"registry": node.url, "frames": str(frames), "files": 1}
        driver = Driver(tmp_path, master="local-cluster[1,1,1024]", **options)
        driver.ask(sql="SELECT 1")
        driver.send(
            table=table,
            subject="n-value",
            checkpoint=str(tmp_path / "checkpoint"),
            format=format,
            options={"dead_letters": letters},
        )
        killed, commits = 0, tmp_path / "checkpoint" / "commits"
        for done in range(1, files, files // kills):
            while not (commits / str(done)).exists():
                assert not driver.has_answered(0.05), driver.answer()
            killed += driver.kill_executors()
        answer = driver.answer()
        driver.kill()

    assert {"error": None} == answer
    assert killed >= kills
    rows, written = (rows_of(format, folder).column("offset").to_pylist() for folder in folders)
    assert [offset for offset in range(files * each) if offset % 50] == sorted(rows)
    assert list(range(0, files * each, 50)) == sorted(written)


_N = {"name": "n", "type": "long"}
