"""Both paths encode rows as the same JSON payloads, or refuse them with the same words."""

import json
import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession, functions

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.model import JSON
from strata.spark_udfs import encode

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed", "generated_code"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
    pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf"),
]

Letters = Callable[..., list[list[Row]]]
PATHS = ("jvm", "python")
NAIVE = datetime(1969, 12, 31, 23, 59, 59, 5)  # noqa: DTZ001 - UTC without saying so
FLOATS = [
    0.0, -0.0, 1.0, -1.5, 0.1, 1e15, 123456789012345.0, 9007199254740993.0, 1e16, 1.2345678901234568e17, 1e-4, 1e-5,
    0.00001234, 1e-6, 1.5e-7, 5e-324, 1e-323, 1.7976931348623157e308, 1e22, 123456.789, 2.0**63, 1 / 3,
]  # fmt: skip
PLAIN = "a/b zürich \U0001f68b \x7f\u2028"
ESCAPED = '"\\ \b\f\n\r\t \x00\x1f é'
POINT = {"type": "object", "required": ["y"]}
# name -> type, value, text
JSON_VALUES: dict[str, tuple[pa.DataType, Any, str]] = {
    "text": (pa.string(), PLAIN, f'"{PLAIN}"'),
    "escapes": (pa.string(), ESCAPED, r'"\"\\ \b\f\n\r\t \u0000\u001f é"'),
    "no text": (pa.string(), "", '""'),
    "least": (pa.int64(), -(2**63), str(-(2**63))),
    "greatest": (pa.int64(), 2**63 - 1, str(2**63 - 1)),
    "byte": (pa.int8(), -128, "-128"),
    "ten": (pa.int32(), 10, "10"),
    "truth": (pa.bool_(), True, "true"),
    "void": (pa.null(), None, "null"),
    "float": (pa.float32(), 0.1, "0.10000000149011612"),
    "money": (pa.decimal128(20, 2), Decimal("-123456789012345678.10"), "-123456789012345678.10"),
    "small": (pa.decimal128(38, 10), Decimal("1E-10"), "0.0000000001"),
    "data": (pa.binary(), b"\0\xff\x10", '"AP8Q"'),
    "day": (pa.date32(), datetime(1, 1, 1, tzinfo=UTC).date(), '"0001-01-01"'),
    "instant": (pa.timestamp("us", "UTC"), datetime(2026, 3, 1, 12, tzinfo=UTC), '"2026-03-01T12:00:00Z"'),
    "micros": (pa.timestamp("us"), NAIVE, '"1969-12-31T23:59:59.000005Z"'),
    "list": (pa.list_(pa.int32()), [1, None], "[1,null]"),
    "nothing": (pa.list_(pa.int32()), [], "[]"),
    "map": (pa.map_(pa.string(), pa.int32()), [("b\n", 1), ("a", None)], '{"b\\n":1,"a":null}'),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.int32())]), {"x": None, "y": None}, '{"y":null}'),
    "maybe": (pa.struct([("x", pa.int32()), ("y", pa.int32())]), {"x": 1, "y": None}, '{"x":1,"y":null}'),
    **{f"double {one}": (pa.float64(), one, orjson.dumps(one).decode()) for one in FLOATS},
}
JSON_SCHEMA = Schema(
    json.dumps(
        {
            "properties": {
                "f": {"type": "string"},
                "struct": {"$ref": "#/definitions/a~1b"},
                "maybe": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/a~1b"}]},
            },
            "required": ["void"],
            "definitions": {"a/b": POINT},
        }
    ),
    JSON,
)
JSON_MISFITS = [
    ({"f": (pa.float64(), float("nan"))}, "expected a finite number, got NaN or infinity", "f"),
    ({"f": (pa.list_(pa.float32()), [float("-inf")])}, "expected a finite number, got NaN or infinity", "f[]"),
    (
        {"f": (pa.struct([("g", pa.timestamp("us"))]), {"g": 2**62})},
        "expected a year from 1 to 9999",
        "f.g",
    ),
    ({"f": (pa.map_(pa.string(), pa.date32()), [("a", 2_932_897)])}, "expected a year from 1 to 9999", "f{}"),
]


def test_values_of_json(letters: Letters) -> None:
    """Both paths write the same text, with the numbers of orjson; a null is left out unless it is required."""
    rows = [{name: (kind, value)} for name, (kind, value, _) in JSON_VALUES.items()]

    jvm, python = letters(JSON_SCHEMA, rows, validate=False)

    assert [f'{{"{name}":{text}}}' for name, (*_, text) in JSON_VALUES.items()] == [
        one["frame"] and one["frame"][5:].decode() for one in jvm
    ]
    assert python == jvm


def test_values_that_do_not_fit_json(letters: Letters) -> None:
    """Each refusal has the same reason and path on both paths."""
    jvm, python = letters(JSON_SCHEMA, [columns for columns, *_ in JSON_MISFITS], validate=False)

    expected = [Row(frame=None, error=Row(reason=reason, path=path)) for _, reason, path in JSON_MISFITS]
    assert expected == jvm
    assert expected == python


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.slow)])
def test_random_rows_of_json(spark: SparkSession, client: RegistryClient, count: int) -> None:
    """Both paths write random rows to the same text."""
    chance = Random(29)

    def text() -> str:
        return "".join(chr(chance.choice([chance.randrange(128), 0xE9, 0x1F68B])) for _ in range(chance.randrange(30)))

    table = {
        "double": pa.array([_random_double(chance) for _ in range(count)]),
        "long": pa.array([chance.getrandbits(64) - 2**63 >> chance.randrange(64) for _ in range(count)]),
        "text": pa.array([text() for _ in range(count)]),
        "money": pa.array([Decimal(chance.getrandbits(60)).scaleb(-4) for _ in range(count)], pa.decimal128(24, 4)),
        "at": pa.array(
            [chance.randrange(-62_135_596_800_000_000, 253_402_300_800_000_000) for _ in range(count)],
            pa.timestamp("us", "UTC"),
        ),
    }
    rows = pa.StructArray.from_arrays(list(table.values()), names=list(table))
    df = spark.createDataFrame(pa.table([rows], names=["r"])).coalesce(1)
    options: dict[str, Any] = {"registry": client.settings, "validate": False}
    options["schema_id"] = client.register("random JSON", Schema("{}", JSON)).schema_id

    made = df.select(*(encode("r", path=path, **options).alias(path) for path in PATHS)).collect()

    assert count == len(made)
    assert [] == [(one["python"], one["jvm"]) for one in made if one["python"] != one["jvm"]][:3]


def _random_double(chance: Random) -> float:
    if chance.random() < 0.5:
        return chance.uniform(-1, 1) * 10.0 ** chance.randrange(-8, 20)
    number: float = struct.unpack("<d", chance.randbytes(8))[0]
    return number if math.isfinite(number) else 0.0


def test_json_with_validation(spark: SparkSession, client: RegistryClient) -> None:
    """Rows that the schema must allow are encoded in the JVM too; both paths refuse the others with the same words."""
    schema = {"properties": {"a": {"maximum": 3}, "b": {"type": "string"}}, "required": ["b"]}
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("valid JSON", Schema(json.dumps(schema), JSON)).schema_id,
    }
    rows = [(3, "x"), (4, "x"), (1, None)]
    df = spark.createDataFrame([(row,) for row in rows], "r struct<a: int, b: string>").coalesce(1)

    def encoded(mode: str) -> list[list[Any]]:
        made = df.select(*(encode("r", path=path, mode=mode, **options).alias(path) for path in PATHS)).collect()
        return [[row[path] for row in made] for path in PATHS]

    jvm, python = encoded("DEADLETTER")
    assert [None, "a", "b"] == [one["error"] and one["error"]["path"] for one in jvm]
    assert "expected a number of at most 3, got a larger one (rule properties/a/maximum)" == jvm[1]["error"]["reason"]
    assert python == jvm
    jvm, python = encoded("PERMISSIVE")
    assert [b'{"a":3,"b":"x"}', None, None] == [one and bytes(one)[5:] for one in jvm]
    assert python == jvm
    for path in PATHS:
        with pytest.raises(
            Exception, match=r"a row cannot be encoded \(r.b x\): expected a number of at most 3, got a "
        ):
            df.select(encode("r", path=path, origin=["r.b"], **options)).collect()


def test_json_with_rules_for_python_workers(spark: SparkSession, client: RegistryClient) -> None:
    """A schema with a keyword that the JVM does not know is for Python workers, and an error if the JVM must encode."""
    options: dict[str, Any] = {
        "registry": client.settings,
        "schema_id": client.register("pattern", Schema('{"properties": {"a": {"pattern": "^x.?$"}}}', JSON)).schema_id,
    }
    df = spark.createDataFrame([(("x",),), (("y",),)], "r struct<a: string>").coalesce(1)

    with pytest.raises(ValueError, match="path='jvm' does not encode JSON with validation by `pattern`"):
        encode("r", path="jvm", **options)
    rows = df.select(encode("r", mode="PERMISSIVE", **options).alias("e")).collect()
    assert [b'{"a":"x"}', None] == [row["e"] and bytes(row["e"])[5:] for row in rows]
