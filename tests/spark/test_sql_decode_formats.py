"""Decodes of Protobuf and JSON in SQL: the types, values and dead letters of `decode` on the JVM path."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions

from harness.json_payloads import damaged
from harness.payload_columns import proto
from harness.protobuf_cases import fill
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.framing import join, write_indexes
from strata.serdes.protobuf.files import indexes_of, link, message_named
from strata.spark_udfs import decode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

MONEY = (
    'syntax = "proto3"; package shop; message Money { int64 units = 1; Currency currency = 2; } '
    "enum Currency { EUR = 0; DKK = 5; SEK = 5; option allow_alias = true; }"
)
_IMPORTS = "".join(f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers"))
_HEAD = f'syntax = "proto3"; package shop; {_IMPORTS} import "shop/money.proto"; message Head {{ string id = 1; }} '
_LINE = "message Line { int32 n = 1; optional string note = 2; }"
_BODY = (
    "optional int64 count = 2; string id = 1; repeated int32 sizes = 4; Money price = 3; map<string, Line> lines = 6;"
)
_NEW = (
    "oneof how { string card = 7; Money cash = 8; uint64 points = 9; } "
    "google.protobuf.Timestamp at = 10; google.protobuf.Duration took = 11; google.protobuf.Int32Value rank = 12; "
    "map<int32, Currency> rates = 13; repeated Line more = 14; bytes proof = 15; fixed32 mark = 16;"
)
# versions of one subject: a field more, another order, a wider number, a member of a oneof more
ORDERS = [
    f"{_HEAD} message Order {{ {_LINE} string id = 1; int32 count = 2; repeated int32 sizes = 4; Money price = 3; }}",
    f"{_HEAD} message Order {{ {_LINE} {_BODY} oneof how {{ string card = 7; Money cash = 8; }} }}",
    f"{_HEAD} message Order {{ {_LINE} {_BODY} {_NEW} }} message Last {{}}",
]
TEXT, INT, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
PRICE = {
    "$id": "http://shop.test/price.json",
    "definitions": {"currency": {"enum": ["EUR", "DKK", None]}},
    "properties": {"units": {"$ref": "units.json"}, "currency": {"$ref": "#/definitions/currency"}},
}
_PARTS = {
    "id": TEXT, "price": {"$ref": "http://shop.test/price.json"}, "count": {"type": ["integer", "null"]},
    "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
    "by": {"type": "object", "additionalProperties": NUMBER},
}  # fmt: skip
_NEWER = {
    "paid": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
    "how": {"oneOf": [TEXT, {"properties": {"card": TEXT}}]},
    "rest": {"allOf": [{"properties": {"a": NUMBER}}, {"properties": {"a": INT, "b": {"type": "null"}}}]},
    "state": {"const": "NEW"},
    "extra": {},
}
NOTES = [
    {"type": "object", "properties": parts, "definitions": {"line": {"properties": {"n": INT, "note": TEXT}}}}
    for parts in (_PARTS, {**_PARTS, "count": NUMBER}, {**_NEWER, **_PARTS})
]
MISFITS: list[Any] = [{"id": 7}, {"lines": [{"n": 2**70}]}, {"lines": [{"n": 1.5}]}, {"by": {"a": "x"}}, [], None]
NOTE = {
    "id": "o7", "price": {"units": 5, "currency": "DKK"}, "count": None, "lines": [{"n": 1}, {"note": "zürich"}],
    "by": {"a": 1.5, "": 2}, "paid": True, "how": {"card": "c"}, "rest": {"a": 1, "b": None}, "state": "NEW",
    "extra": [1, {"x": None}],
}  # fmt: skip


class Depot(NamedTuple):
    """A session that knows the registry as `depot`, and a view of frames for each format."""

    spark: SparkSession
    registry: RegistryClient

    def view(self, name: str, frames: list[bytes | None]) -> DataFrame:
        """Make a view of frames, numbered."""
        table = pa.table({"n": pa.array(range(len(frames))), "value": pa.array(frames, pa.binary())})
        df = self.spark.createDataFrame(table).coalesce(1)
        df.createOrReplaceTempView(name)
        return df


@pytest.fixture(scope="module")
def depot(spark: SparkSession, registry: RegistryClient) -> Iterator[Depot]:
    """Yield a session with the views `orders` and `notes`: three versions, other messages, damage and tombstones."""
    install(spark, registry=registry.settings, name="depot")
    made = Depot(spark, registry)
    registry.set_config("NONE")
    made.view("orders", [*_orders(registry), None, b"damaged"])
    made.view("notes", [*_notes(registry), None, b"damaged"])
    registry.set_config("BACKWARD")
    yield made
    for view in ("orders", "notes"):
        spark.catalog.dropTempView(view)


def _orders(client: RegistryClient) -> list[bytes | None]:
    chance = Random(5)
    client.register("shop/money.proto", proto(MONEY))
    reference = Reference("shop/money.proto", "shop/money.proto", 1)
    frames = []
    for text in ORDERS:
        schema_id = client.register("orders-value", proto(text, reference)).schema_id
        file = link(proto(text), {"shop/money.proto": proto(MONEY)})
        for name in ["Order"] * 30 + ["Head", "Order.Line"]:
            message: Any = message_named(file, f"shop.{name}")
            payload = fill(GetMessageClass(message)(), chance).SerializeToString()
            frames.append(join(schema_id, write_indexes(indexes_of(message)) + payload))
    return [*frames, *(one[:6] + damaged(one[6:], chance) for one in frames)]


def _notes(client: RegistryClient) -> list[bytes | None]:
    chance = Random(6)
    client.register("units", Schema(json.dumps(INT), "JSON"))
    units = Reference("http://shop.test/units.json", "units", 1)
    client.register("price", Schema(json.dumps(PRICE), "JSON", (units,)))
    reference = Reference("http://shop.test/price.json", "price", 1)
    payload = json.dumps(NOTE).encode()
    frames = []
    for document in NOTES:
        schema_id = client.register("notes-value", Schema(json.dumps(document), "JSON", (reference,))).schema_id
        payloads = [
            payload,
            *(damaged(payload, chance) for _ in range(40)),
            *(json.dumps(one).encode() for one in MISFITS),
        ]
        frames += [join(schema_id, one) for one in payloads]
    return frames


# the view, the name of the function, the same as options of `decode`
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "orders",
        "orders-value?version=1&message=shop.Order&mode=PERMISSIVE",
        {"subject": "orders-value", "version": 1, "message": "shop.Order", "mode": "PERMISSIVE"},
    ),
    (
        "orders",
        "orders-value?message=shop.Order&columns=points,id,price,card",
        {"subject": "orders-value", "message": "shop.Order", "columns": ["points", "id", "price", "card"]},
    ),
    ("notes", "notes-value?version=2&mode=PERMISSIVE", {"subject": "notes-value", "version": 2, "mode": "PERMISSIVE"}),
    ("notes", "notes-value?columns=rest,id&validate=false", {"subject": "notes-value", "columns": ["rest", "id"]}),
]


@pytest.mark.parametrize(("view", "name", "options"), CALLS, ids=[name for _, name, _ in CALLS])
def test_outcomes(depot: Depot, view: str, name: str, options: dict[str, Any]) -> None:
    """Type, values, nulls and dead letters are those of `decode`, for subjects, versions, ids and other options."""
    frames = depot.spark.table(view)
    found = depot.registry.get_version(options["subject"], options.get("version", "latest"))
    by_id = name.partition("?")[2].replace(f"version={found.version}&", "")
    names = [name, f"?id={found.schema_id}{'&' if by_id else ''}{by_id}"]
    known = decode("value", registry=depot.registry.settings, path="jvm", **options)

    decoded = frames.select(known.alias("known"), *(functions.expr(f"depot_decode(value, '{one}')") for one in names))

    assert ["known", "depot_decode(value)", "depot_decode(value)"] == decoded.columns
    assert 1 == len({one.dataType.json() for one in decoded.schema})
    rows = decoded.toDF("known", "sql", "by_id").selectExpr("string(known)", "string(sql)", "string(by_id)").collect()
    assert [] == [row for row in rows if not row[0] == row[1] == row[2]]
    assert len(set(rows)) > 3


HARD = (
    'syntax = "proto2"; import "google/protobuf/struct.proto"; message M { optional int32 n = 1; optional M next = 2; '
    "optional group G = 4 { optional int32 a = 1; } } message Open { optional google.protobuf.Struct s = 1; } "
    "message Closed { optional E e = 1; } enum E { ONE = 1; }"
)
LOOP = {"properties": {"n": INT, "next": {"$ref": "#"}}}
REMEDY = "make the column by strata.spark_udfs.decode"
# the name of the function, what the error says
REFUSED = [
    ("none", "no reader schema from none version latest: .*not found"),
    ("orders-value?message=shop.None", r"no message shop\.None; the reader schema has shop\.Head, shop\.Order"),
    ("orders-value?columns=x", r"no column x; the reader schema shop\.Head has id"),
    ("orders-value?validate=true", "SQL does not validate when it decodes: leave validate out, or make the column"),
    ("hard-value", r"at next\.next: the message M contains itself|at next: the message M contains itself"),
    ("hard-value?columns=g", rf"SQL does not decode the group M\.g; {REMEDY}"),
    ("hard-value?message=Open", rf"SQL does not decode the google\.protobuf\.Struct Open\.s; {REMEDY}"),
    ("hard-value?message=Closed", f"SQL does not decode the closed enum E; {REMEDY}"),
    ("loop-value", "no Spark type for the reader schema at next.next: the schema contains itself; leave the field out"),
    ("loop-value?columns=m", "no column m; the reader schema has n, next"),
    ("loop-value?message=M", "message needs a Protobuf schema, and the reader schema is JSON"),
    ("units?columns=a", "`columns` needs an object with properties as the reader schema"),
    ("avro-value?columns=n", "columns needs a Protobuf schema or a JSON Schema"),
    ("units?names=a", "unknown option names; allowed are version, id, mode, origin, message, columns, validate"),
]


def test_calls_that_are_refused(depot: Depot) -> None:
    """The error comes when the query is analyzed, and says what is wrong and what to do."""
    depot.registry.register("hard-value", proto(HARD))
    depot.registry.register("loop-value", Schema(json.dumps(LOOP), "JSON"))
    depot.registry.register("avro-value", Schema('{"type": "record", "name": "R", "fields": []}'))

    for name, told in REFUSED:
        with pytest.raises(PySparkException, match=told):
            depot.spark.sql(f"SELECT depot_decode(value, '{name}') FROM orders")
    [row] = depot.spark.sql("SELECT depot_decode(value, 'loop-value?columns=n').value.n FROM notes LIMIT 1").collect()
    assert row[0] is None


def test_failures_name_the_record(depot: Depot) -> None:
    """With `mode=FAILFAST`, the error names the record by its origin, as for Avro."""
    call = "depot_decode(value, 'notes-value?mode=FAILFAST&origin=n', struct(n))"
    last = depot.spark.table("notes").count() - 1

    with pytest.raises(Exception, match=rf"a frame cannot be decoded \(.*n {last}\)"):
        depot.spark.sql(f"SELECT {call} FROM notes WHERE n IN (0, {last})").collect()
