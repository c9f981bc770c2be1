"""Both paths decode the same JSON frames alike in one Spark job; `test_json_program.py` has many more values."""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession

from harness.json_payloads import damaged
from strata.serdes.client import ClientSettings, Reference, RegistryClient, Schema
from strata.serdes.framing import join
from strata.serdes.json_schema import JsonSerializer
from strata.spark_udfs import decode, install
from strata.spark_udfs.decoding.path_choice import _log_once

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("installed"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
POINT = {"type": "object", "properties": {"x": NUM, "y": STR}}
RICH = {
    "type": "object",
    "properties": {
        "id": INT,
        "name": STR,
        "price": NUM,
        "ok": {"type": "boolean"},
        "gone": {"type": "null"},
        "any": {},
        "point": POINT,
        "points": {"type": "array", "items": POINT},
        "many": {"type": "array", "items": INT},
        "texts": {"type": "array", "items": STR},
        "flags": {"type": "array", "items": {"type": "boolean"}},
        "by": {"type": "object", "additionalProperties": INT},
        "places": {"type": "object", "additionalProperties": POINT},
    },
}
GOOD = {
    "id": 7,
    "name": "zürich",
    "price": 1.5,
    "ok": True,
    "gone": None,
    "any": {"a": [1, 2.5]},
    "point": {"x": 1, "y": "a"},
    "points": [{"x": 0.1}, None, {"y": ""}],
    "many": [1, None, 3],
    "texts": ["a", "", None],
    "flags": [True, False],
    "by": {"a": 1, "b": None},
    "places": {"here": {"x": 2}, "": None},
}
# payloads
ODD = {
    "a value": json.dumps(GOOD),
    "nothing known": "{}",
    "null": "null",
    "white space": '\t{ "id"\r:\n1 , "by" : { } , "many":[ ] } ',
    "another order": '{"places":{"a":{"y":"b","x":1}},"texts":["x"],"name":"n","id":3}',
    "unknown properties": '{"z":[{"a":"\\u00e9"},[]],"id":1,"zz":{"id":2},"zzz":-1.5e-3,"z4":null,"z5":true}',
    "a name twice": '{"id":1,"name":"a","id":2}',
    "a name twice, the first of another type": '{"id":"x","id":2}',
    "a name twice, the last of another type": '{"id":2,"id":"x"}',
    "a name twice inside": '{"points":[{"x":1,"x":2,"y":"a"}],"any":{"b":1,"a":2,"b":3}}',
    "a key of a map twice": '{"by":{"a":1,"b":2,"a":3},"places":{"k":{"x":1},"k":null}}',
    "an unknown name twice": '{"q":1,"q":{},"id":1}',
    "escaped names": '{"\\u0069d":1,"na\\u006de":"a","by":{"\\u0061":1,"a\\n":2}}',
    "an escaped name twice": '{"id":1,"\\u0069d":2}',
    "escapes": r'{"name":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00\u2028"}',
    "a lone high surrogate": r'{"name":"\ud800"}',
    "a lone low surrogate": r'{"name":"\udc00"}',
    "two high surrogates": r'{"name":"\ud800\ud800"}',
    "a lone surrogate in an unknown property": r'{"z":"\ud800"}',
    "an unknown escape": r'{"name":"\x41"}',
    "an escape cut short": r'{"name":"\u00e"}',
    "an escape at the end": '{"name":"\\',
    "control characters": '{"name":"a\tb"}',
    "integers with a point": '{"id":1.0,"many":[2e3,-0.0,1E+2,10e-1]}',
    "the largest integers": '{"many":[9223372036854775807,-9223372036854775808,999999999999999999]}',
    "an integer beyond 64 bits": '{"id":9223372036854775808}',
    "an integer far beyond": '{"id":' + "9" * 300 + "}",
    "a float beyond 64 bits": '{"id":1e19}',
    "a fraction": '{"id":1.5}',
    "minus zero": '{"price":-0,"id":-0,"any":[-0,-0.0]}',
    "minus zero with a point": '{"price":-0.0}',
    "doubles": '{"points":[{"x":0.1},{"x":123456789.12345678},{"x":1e22},{"x":5e-324},{"x":1e-400},{"x":0e400}]}',
    "long digits": '{"price":0.1000000000000000055511151231257827021181583404541015625}',
    "an integer as a double": '{"price":18014398509481985}',
    "a double beyond the largest": '{"price":1e400}',
    "a double beyond the largest in an unknown property": '{"z":[-1e400]}',
    "an integer beyond the largest double": '{"any":' + "9" * 400 + "}",
    "a double beyond the largest, and then not JSON": '{"price":1e400,}',
    "not JSON, and then a double beyond the largest": '{,"price":1e400}',
    "a double beyond the largest, and not UTF-8": '{"price":1e400,"name":"\xff"}',
    "a leading zero": '{"id":01}',
    "a plus": '{"id":+1}',
    "no digits after the point": '{"price":1.}',
    "no digits before the point": '{"price":.5}',
    "no digits in the exponent": '{"price":1e}',
    "a minus alone": '{"price":-}',
    "not a number": '{"price":NaN}',
    "half a literal": '{"ok":tru}',
    "a comma too many": '{"id":1,}',
    "a comma too many in an array": '{"many":[1,]}',
    "no comma": '{"id":1 "ok":true}',
    "no colon": '{"id" 1}',
    "another bracket": '{"many":[1}',
    "no end": '{"many":[1',
    "two values": '{"id":1}{"id":2}',
    "a comment": '{"id":1}/**/',
    "a byte order mark": '\ufeff{"id":1}',
    "nothing": "",
    "white space alone": " ",
    "anything": '{"any":[1e16,1e15,123456789012345680.0,0.00001,0.000001,-1.5e300,"\x7f\\u001f/",{"é":[]},[],{}]}',
    "anything with long integers": '{"any":[18446744073709551616,0.00001,1e-7,1e16,"\\u001f"]}',
    "anything, and a long integer elsewhere": '{"any":[18446744073709551615,1e-7,-0],"id":1}',
    "anything, deep": '{"any":' + "[" * 254 + "1e-7" + "]" * 254 + "}",
    "anything, deeper": '{"any":' + "[" * 255 + "1e-7" + "]" * 255 + "}",
    "too deep": '{"z":' + "[" * 1024 + "]" * 1024 + "}",
    "of two faults the first column": '{"by":{"a":"x"},"id":"x"}',
    "of two faults in an array the first field": '{"points":[{"y":1},{"x":"a"}]}',
    "of three faults in an array the type": '{"many":[1e30,1.5,true,"x"]}',
    "of two faults in an array the fraction": '{"many":[1e30,1.5]}',
    "a null in place of all": '{"id":null,"name":null,"point":null,"points":null,"by":null,"ok":null,"many":[null]}',
    **{
        f"{name} for {kind}": f'{{"{name}":{value}}}'
        for name in ("id", "name", "price", "ok", "gone", "point", "points", "by", "texts", "flags")
        for kind, value in (("an integer", "1"), ("a text", '"a"'), ("an array", "[1]"), ("an object", '{"x":[]}'))
    },
}


def _columns(registry: ClientSettings, name: str, reader: Schema, columns: Sequence[str] | None = None) -> list[Column]:
    """Return the frames' column decoded on each path."""
    return [
        decode(name, registry=registry, reader_schema=reader, columns=columns, path=path).alias(f"{path}_{name}")
        for path in ("jvm", "python")
    ]


def _compared(decoded: DataFrame, name: str) -> list[tuple[Any, Any]]:
    return [(_plain(row[f"jvm_{name}"]), _plain(row[f"python_{name}"])) for row in decoded.collect()]


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return {name: _plain(inner) for name, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, float):
        return value.hex()
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _schema(document: Any, *references: Reference) -> Schema:
    return Schema(json.dumps(document), "JSON", references)


def _frames(spark: SparkSession, frames: Sequence[bytes | None]) -> DataFrame:
    return spark.createDataFrame(pa.table({"f": pa.array(frames, pa.binary())})).coalesce(1)


@pytest.mark.parametrize("columns", [None, ["by", "name", "points"]], ids=["all columns", "some"])
def test_odd_payloads(spark: SparkSession, client: RegistryClient, columns: list[str] | None) -> None:
    """Every form of JSON that writers or accidents make gives the same value or reason on both paths."""
    schema_id = client.register("json-paths", _schema(RICH)).schema_id
    texts = [text.encode("latin-1" if "\xff" in text else "utf-8") for text in ODD.values()]

    decoded = _frames(spark, [join(schema_id, one) for one in texts]).select(
        *_columns(client.settings, "f", _schema(RICH), columns)
    )
    compared = _compared(decoded, "f")

    assert {} == {name: pair for name, pair in zip(ODD, compared, strict=True) if pair[0] != pair[1]}
    assert decoded.schema["jvm_f"].dataType == decoded.schema["python_f"].dataType


@pytest.mark.parametrize("count", [800, pytest.param(40_000, marks=pytest.mark.slow)])
def test_damaged_frames(spark: SparkSession, client: RegistryClient, count: int) -> None:
    """No task fails; each frame is a value or a dead letter with exactly its bytes, the same on both paths."""
    chance = Random(2026)
    good = join(client.register("json-paths", _schema(RICH)).schema_id, json.dumps(GOOD).encode())
    frames = [
        damaged(good, chance) if chance.random() < 0.1 else good[:5] + damaged(good[5:], chance) for _ in range(count)
    ]
    patience = ClientSettings.of(client.settings.urls[0], missing_ttl=600)
    install(spark, registry=patience)

    compared = _compared(_frames(spark, frames).select(*_columns(patience, "f", _schema(RICH))), "f")

    assert [] == [one for one in compared if one[0] != one[1]][:3]
    dead = [jvm for jvm, _ in compared if jvm["error"] is not None]
    assert all(jvm["value"] is None for jvm in dead)
    assert not Counter(bytes(jvm["error"]["frame"]) for jvm in dead) - Counter(frames)
    assert count / 10 < len(dead) < count


def test_frames(spark: SparkSession, client: RegistryClient) -> None:
    """Ids, GUIDs, references that are not needed, nulls and frames of no schema mean the same on both paths."""
    schema_id = client.register("json-paths", _schema(RICH)).schema_id
    unit = client.register("json-paths-unit", _schema({"enum": ["m"]})).version
    reference = Reference("unit.json", "json-paths-unit", unit or 0)
    user = _schema({"properties": {"id": INT, "unit": {"$ref": "unit.json"}}}, reference)
    avro = client.register("json-paths-avro", '"string"').schema_id
    guid = JsonSerializer(client, json.dumps(RICH), conf={"schema.id.serializer": "guid"})
    frames = [
        join(schema_id, b'{"id":1}'),
        guid({"id": 2}, topic="json-paths-guid"),
        join(client.register("json-paths-user", user).schema_id, b'{"id":3,"unit":"m"}'),
        None,
        join(avro, b"{}"),
        join(99_999, b"{}"),
        b"\1" * 20,
        b"",
        b"\0\0",
        b'{"id": 1}',
        b"\3\0" + bytes(16) + b"{}",
    ]

    decoded = _frames(spark, frames).select(*_columns(client.settings, "f", _schema(RICH)))
    users = _frames(spark, frames[2:3]).select(*_columns(client.settings, "f", user))

    compared = _compared(decoded, "f")
    assert [python for _, python in compared] == [jvm for jvm, _ in compared]
    assert [1, 2, 3, None] == [(jvm["value"] or {}).get("id") for jvm, _ in compared[:4]]
    assert "unknown Glue schema version" == compared[-1][0]["error"]["reason"]
    assert [({"id": 3, "unit": "m"},) * 2] == [(a["value"], b["value"]) for a, b in _compared(users, "f")]


@pytest.mark.parametrize(
    ("document", "payload"),
    [(INT, "12"), (STR, '"a"'), ({}, '[1, "a"]'), ({"type": "array", "items": NUM}, "[1,2.5]"), (INT, "null")],
)
def test_other_values_than_objects(spark: SparkSession, client: RegistryClient, document: Any, payload: str) -> None:
    """A payload may be any value, as may the reader schema."""
    frame = join(client.register("json-paths-values", _schema(document)).schema_id, payload.encode())

    [(jvm, python)] = _compared(_frames(spark, [frame]).select(*_columns(client.settings, "f", _schema(document))), "f")

    assert jvm == python
    assert jvm["error"] is None


# payload, the error's message
FAILFAST = {
    '{"by":{"a":"x"}}': "invalid value: expected integer, got string (at field by{})",
    '{"many":[9223372036854775808]}': "out of range (at field many[])",
    '{"id":1e400}': "out of range: a number beyond doubles (near byte 6)",
}


@pytest.mark.parametrize(("payload", "says"), FAILFAST.items())
def test_failfast(spark: SparkSession, client: RegistryClient, payload: str, says: str) -> None:
    """FAILFAST says the same on both paths, and never the value."""
    schema_id = client.register("json-paths", _schema(RICH)).schema_id
    rows = _frames(spark, [join(schema_id, payload.encode())])
    for path in ("jvm", "python"):
        column = decode("f", registry=client.settings, reader_schema=_schema(RICH), mode="FAILFAST", path=path)

        with pytest.raises(Exception, match="a frame cannot be decoded") as caught:
            rows.select(column).collect()

        assert f"a frame cannot be decoded (schema id {schema_id}): {says}" in str(caught.value)


def test_validation_stays_in_python(
    spark: SparkSession, client: RegistryClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The JVM path is refused if requested by name; by default the call takes Python workers, and says why."""
    options: dict[str, Any] = {"registry": client.settings, "reader_schema": _schema(RICH), "validate": True}

    with pytest.raises(ValueError, match="path='jvm' does not decode JSON payloads with validate=True"):
        decode("value", **options, path="jvm")
    _log_once.cache_clear()
    with caplog.at_level(logging.INFO, "strata.spark_udfs"):
        decode("value", **options)

    assert "the JVM path does not decode JSON payloads with validate=True" in caplog.text
