"""Writer and reader schemas with references work on both paths."""

import json
from collections.abc import Callable
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from strata.serdes.client import ClientSettings, RegistryClient, Schema
from strata.serdes.model import Reference
from strata.spark_udfs import decode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MakeFrame = Callable[[int, Any, Any], bytes]


def _record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    listed = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": listed, **more}


POINT = _record("geo.Point", ("x", "int"))
LINE = _record("geo.Line", ("to", "geo.Point"))
PATH = _record("geo.Path", ("line", "geo.Line"))
WHOLE_PATH = _record("geo.Path", ("line", _record("geo.Line", ("to", POINT))))

BARE = _record("Bare", ("x", "int"))
TRACK = _record("geo.Track", ("at", "Bare"))
WHOLE_TRACK = _record("geo.Track", ("at", BARE | {"namespace": ""}))

# name, the referenced schemas with their own references, the schema, the same written out, a value
CASES: list[tuple[str, list[tuple[Any, list[int]]], Any, Any, Any]] = [
    ("two steps", [(POINT, []), (LINE, [0])], PATH, WHOLE_PATH, {"line": {"to": {"x": 5}}}),
    ("a name without namespace", [(BARE, [])], TRACK, WHOLE_TRACK, {"at": {"x": 1}}),
]


def _register(registry: RegistryClient, case: int) -> int:
    """Return the id of the case's schema, which refers to the last of the others; register those first."""
    name, others, schema, _, _ = CASES[case]
    made: list[Reference] = []
    for number, (other, needs) in enumerate(others):
        subject = f"a/{name}/äöü {number}"
        registry.register(subject, Schema(json.dumps(other), references=tuple(made[need] for need in needs)))
        made.append(Reference(other["name"], subject, 1))
    return registry.register(f"refers {name}", Schema(json.dumps(schema), references=(made[-1],))).schema_id


@pytest.mark.parametrize("path", ["jvm", "python"])
def test_schemas_that_refer_to_others(
    spark: SparkSession, registry: RegistryClient, frame: MakeFrame, path: Any
) -> None:
    """Writer schemas and reader schemas are assembled from the registry."""
    install(spark, registry=registry.settings)
    frames, columns = {}, []
    for number, (name, _, _, whole, value) in enumerate(CASES):
        schema_id = _register(registry, number)
        frames[name] = pa.array([frame(schema_id, whole, value)], pa.binary())
        for reader in ({"schema_id": schema_id}, {"subject": f"refers {name}"}, {"reader_schema": json.dumps(whole)}):
            column = functions.col(f"`{name}`")
            columns.append(decode(column, registry=registry.settings, mode="FAILFAST", path=path, **reader))
    rows = spark.createDataFrame(pa.table(frames)).coalesce(1)

    decoded = rows.select(*(functions.to_json(one) for one in columns)).first()

    assert decoded is not None
    assert [value for *_, value in CASES for _ in range(3)] == [json.loads(text) for text in decoded]


INT = _record("Bare", ("x", "int"), namespace="")
TEXT = _record("geo.Bare", ("y", "string"))

# name, schema, payload, value
DOTTED: list[tuple[str, Any, bytes, Any]] = [
    (
        "a type without namespace",
        _record("geo.A", ("first", INT), ("again", ["null", ".Bare"])),
        b"\2\2\4",
        {"first": {"x": 1}, "again": {"x": 2}},
    ),
    (
        "hidden by one of the namespace",
        _record("geo.B", ("own", TEXT), ("first", INT), ("all", {"type": "array", "items": ".Bare"})),
        b"\2a\2\2\4\0",
        {"own": {"y": "a"}, "first": {"x": 1}, "all": [{"x": 2}]},
    ),
    (
        "a full name",
        _record("geo.C", ("own", TEXT), ("by", {"type": "map", "values": {"type": ".geo.Bare"}})),
        b"\2a\2\2k\2b\0",
        {"own": {"y": "a"}, "by": {"k": {"y": "b"}}},
    ),
    ("a dot where no type is named", _record("D", ("s", "string")) | {"doc": ".Bare"}, b"\2a", {"s": "a"}),
    ("a type that is not there", _record("geo.E", ("s", ".string")), b"\2a", "unusable writer schema"),
]


def test_names_with_a_leading_dot(spark: SparkSession, scripted_registry: Any) -> None:
    """`.X` is the type X without namespace, on both paths, though Avro's own Java parser does not find it."""
    settings = ClientSettings.of(scripted_registry.url)
    install(spark, registry=settings)
    paths: list[Literal["jvm", "python"]] = ["jvm", "python"]
    frames, columns = {}, []
    for name, schema, payload, value in DOTTED:
        schema_id = scripted_registry.add(schema)
        frames[name] = pa.array([b"\0" + schema_id.to_bytes(4, "big") + payload], pa.binary())
        reader = schema if isinstance(value, dict) else INT
        for path in paths:
            column = functions.col(f"`{name}`")
            columns.append(decode(column, registry=settings, reader_schema=json.dumps(reader), path=path))
    rows = spark.createDataFrame(pa.table(frames)).coalesce(1)

    decoded = rows.select(*(functions.to_json(one) for one in columns)).first()

    assert decoded is not None
    found = [json.loads(text) for text in decoded]
    assert [value for *_, value in DOTTED for _ in paths] == [
        one["value"] if "value" in one else one["error"]["reason"] for one in found
    ]
