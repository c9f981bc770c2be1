"""A table follows 50 versions of a subject while its driver is killed at random moments.

Versions add, widen, rename and drop fields and change the symbols of an enum. Three more change a type so that values
would be cast. Each of those is refused, and the next version takes it back: what was written with it cannot be read and
belongs to the dead letters.
"""

import json
import os
import random
import time
from collections import Counter
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from harness.jars import spark_kafka_jars
from harness.kafka import KafkaBroker
from harness.registry import RegistryNode
from harness.table_driver import Driver
from strata.serdes import AvroSerializer
from strata.serdes.client import RegistryClient

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(3000)]

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


@pytest.mark.parametrize("format", ["iceberg", "delta"])
def test_each_record_once(format: str, kafka_broker: KafkaBroker, tmp_path: Path) -> None:  # noqa: A002 - the option
    """Every good record is in the table once with its values, every other one in the dead letters."""
    seed = random.randrange(2**32)
    chance, history = random.Random(seed), History(seed, renames=format == "iceberg")
    topic = f"follow-{format}-{next(_topics)}-{os.getpid()}"
    table, letters = (
        f"lake.db.{name}" if format == "iceberg" else f"delta.`{tmp_path / name}`" for name in ("rows", "dead")
    )
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap, "enable.idempotence": True, "linger.ms": 5})
    killed_before = set(chance.sample(range(2, VERSIONS + 1), KILLS))
    numbers, dead, kills, ways = count(), set(), 0, Counter()
    with RegistryNode("memory:") as node, RegistryClient(node.url) as client:
        client.set_config("NONE")
        options = {"brokers": kafka_broker.bootstrap, "topic": topic, "batch": BATCH, "registry": node.url}
        step = {
            "table": table,
            "subject": f"{topic}-value",
            "checkpoint": str(tmp_path / "checkpoint"),
            "format": format,
            "options": {"dead_letters": letters},
            "quiet": True,
        }

        def produce(schema: str, expected: bool, **types: Any) -> None:
            serialize = AvroSerializer(client, schema)
            for _ in range(RECORDS if expected else 50):
                number = next(numbers)
                value = history.record(number, expected=expected, **types)
                producer.produce(topic, serialize(value, topic=topic), partition=0)
                if not expected:
                    dead.add(number)
                producer.poll(0)
            producer.flush()

        def start() -> Driver:
            return Driver(tmp_path, spark_kafka_jars(), **options)

        driver = None
        for version in range(1, VERSIONS + 1):
            if version in REFUSED:
                name, type_ = REFUSED[version]
                driver = driver or start()
                assert driver.ask(**step) == {"error": None}, seed
                produce(history.schema(**{name: type_}), False, **{name: type_})
                refusal = driver.ask(**step)["error"]
                assert f"column {name} is" in refusal, (seed, refusal)
            way = history.change() if version > 1 else "first"
            ways[way] += 1
            if way in LEFT_BEHIND[format] and version not in REFUSED:
                driver = driver or start()
                assert driver.ask(**step) == {"error": None}, seed
            produce(history.schema(), True)
            if version == 1:  # a kill while a table is being made may leave a folder that Delta refuses
                driver = start()
                assert driver.ask(**step) == {"error": None}, seed
            if version in killed_before:
                driver = driver or start()
                driver.send(**step)
                time.sleep(chance.uniform(0, 6))
                driver.kill()
                driver, kills = None, kills + 1
        driver = driver or start()
        result = driver.ask(**{**step, "quiet": False})
        driver.kill()

    rows = [{name: value for name, value in row.items() if name != "offset"} for row in result["rows"]]
    assert result["error"] is None, (seed, result["error"])
    assert kills == KILLS
    assert Counter(map(_comparable, history.rows.values())) == Counter(map(_comparable, rows)), (seed, ways)
    assert len(dead) == len({row["offset"] for row in result["dead"]}) == len(result["dead"]), seed
