"""Encodes of Protobuf and JSON in SQL, and the framings of all formats: the bytes of the serializers."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from harness.payload_columns import kind_of, proto
from strata.serdes.avro import AvroSerializer
from strata.serdes.client import Reference, RegistryClient, Schema
from strata.serdes.framing import write_indexes
from strata.serdes.json_schema import JsonSerializer
from strata.serdes.protobuf import ProtobufSerializer
from strata.spark_udfs import encode, install

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]

STAMP = 'import "google/protobuf/timestamp.proto"; '
HEAD = 'syntax = "proto3"; package shop; '
MONEY = f"{HEAD} message Money {{ int64 units = 1; Currency currency = 2; }} enum Currency {{ EUR = 0; DKK = 5; }}"
BODY = (
    "message Head { string id = 1; } message Order { string id = 1; optional int32 count = 2; repeated int32 sizes = 4;"
    "map<string, sint64> extra = 5; message Line { int32 n = 1; } repeated Line lines = 6; "
    "google.protobuf.Timestamp at = 7;"
)
ORDER = f'{HEAD} {STAMP} import "shop/money.proto"; {BODY} Money price = 3; }}'
LINES = "array(named_struct('n', 1), named_struct('n', 0))"
ROW = f"""named_struct('id', 'o7', 'count', 0, 'price', named_struct('units', 5L, 'currency', 'DKK'),
    'sizes', array(1, 300), 'extra', map('a', -1L), 'lines', {LINES}, 'at', TIMESTAMP '2026-03-01 12:00:00')"""
VALUE = {
    "id": "o7", "count": 0, "price": {"units": 5, "currency": 5}, "sizes": [1, 300], "extra": {"a": -1},
    "lines": [{"n": 1}, {}], "at": datetime(2026, 3, 1, 12, tzinfo=UTC),
}  # fmt: skip
JSON_SCHEMA = json.dumps(
    {"type": "object", "required": ["note"], "properties": {"note": {"type": ["string", "null"]}, "n": {}}}
)
AVRO_SCHEMA = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]})


class Context(NamedTuple):
    """The context of a record with headers."""

    topic: str
    headers: dict[str, bytes]
    field: str = "value"


@pytest.fixture(scope="module")
def rows(spark: SparkSession, registry: RegistryClient) -> Iterator[SparkSession]:
    """Yield a session that knows the registry as `shop`, with one order as the view `orders`."""
    install(spark, registry=registry.settings, name="shop")
    registry.register("shop/money.proto", proto(MONEY))
    registry.register("goods-proto-value", proto(ORDER, Reference("shop/money.proto", "shop/money.proto", 1)))
    registry.register("goods-json-value", Schema(JSON_SCHEMA, "JSON"))
    registry.register("goods-avro-value", Schema(AVRO_SCHEMA))
    spark.sql(f"SELECT {ROW} AS o, named_struct('note', CAST(NULL AS STRING), 'n', 1) AS j").coalesce(
        1
    ).createOrReplaceTempView("orders")
    yield spark
    spark.catalog.dropTempView("orders")


def _proto_frame(registry: RegistryClient, value: dict[str, Any], place: int) -> bytes:
    """Return the frame of a message by the serializer."""
    kind = kind_of(proto(f"{HEAD} {STAMP} {BODY} Money price = 3; }} {MONEY.removeprefix(HEAD)}"), place)
    conf = {"auto.register.schemas": False, "use.latest.version": True, "latest.compatibility.strict": False}
    return bytes(ProtobufSerializer(registry, kind, conf)(kind(**value), topic="goods-proto") or b"")


def test_protobuf(rows: SparkSession, registry: RegistryClient) -> None:
    """A message, named or the first, with references and known types, in views, functions, GROUP BY and sessions."""
    call = "shop_encode(o, 'goods-proto-value?message=shop.Order')"
    rows.sql(f"CREATE OR REPLACE TEMP VIEW framed_orders AS SELECT {call} AS f FROM orders")
    rows.sql(
        "CREATE OR REPLACE TEMPORARY FUNCTION framed_head(name STRING) RETURNS BINARY "
        f"RETURN shop_encode(named_struct('id', name), '?id={registry.get_version('goods-proto-value').schema_id}')"
    )
    other = rows.newSession()
    install(other, registry=registry.settings, name="shop")

    made = rows.sql(
        f"""SELECT f FROM framed_orders UNION ALL SELECT framed_head(o.id) FROM orders
        UNION ALL SELECT {call} FROM orders GROUP BY {call}"""
    ).collect()
    [elsewhere] = other.sql(f"SELECT {call.replace('(o,', f'({ROW},')}").collect()

    head, order = _proto_frame(registry, {"id": "o7"}, 0), _proto_frame(registry, VALUE, 1)
    assert [order, head, order] == [bytes(row[0]) for row in made]
    assert order == elsewhere[0]


def test_json(rows: SparkSession, registry: RegistryClient) -> None:
    """JSON is validated; a required property is written when it is null, as the serializer writes it."""
    call = "shop_encode(j, 'goods-json-value')"
    rows.sql(f"CREATE OR REPLACE TEMP VIEW framed_json AS SELECT {call} AS f FROM orders")

    made = rows.sql(f"SELECT f FROM framed_json UNION ALL SELECT {call} FROM orders GROUP BY {call}").collect()

    expected = JsonSerializer(registry, JSON_SCHEMA)({"note": None, "n": 1}, topic="goods-json")
    assert [expected, expected] == [bytes(row[0]) for row in made]


MONEY_SCHEMA = {"$defs": {"code": {"enum": ["EUR", "DKK"]}}, "properties": {"units": {"minimum": 0}}}
SALE_SCHEMA = {
    "properties": {
        "price": {"allOf": [{"$ref": "money.json"}, {"properties": {"code": {"$ref": "money.json#/$defs/code"}}}]},
        "day": {"type": "string", "format": "date"},
        "sku": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$"},
    },
    "required": ["price"],
    "additionalProperties": False,
}
# SQL of a row -> why it does not fit, and where; None if it does
SALES = {
    "named_struct('price', named_struct('units', 1, 'code', 'EUR'), 'day', DATE '2026-03-01', 'sku', 'ABC-1')": None,
    "named_struct('price', named_struct('units', -1, 'code', 'EUR'))": (
        "expected a number of at least 0, got a smaller one (rule properties/units/minimum)",
        "price.units",
    ),
    "named_struct('price', named_struct('code', 'DK'))": (
        "expected 'EUR' or 'DKK', got another string; did you mean 'DKK'? (rule $defs/code/enum)",
        "price.code",
    ),
    "named_struct('price', named_struct('units', 1), 'sku', 'abc-1')": (
        "expected a string that matches '^[A-Z]{3}-[0-9]+$', got another string (rule properties/sku/pattern)",
        "sku",
    ),
    "named_struct('prize', 1)": (
        "the schema has no such field; did you mean 'price'? (rule additionalProperties)",
        "prize",
    ),
}


@pytest.fixture
def sales(registry: RegistryClient) -> str:
    """Return a subject whose JSON Schema refers to another one, which only its context has."""
    registry.register(":.shop:goods-money", Schema(json.dumps(MONEY_SCHEMA), "JSON"))
    money = (Reference("money.json", "goods-money", 1),)
    registry.register(":.shop:goods-sale", Schema(json.dumps(SALE_SCHEMA), "JSON", money))
    return ":.shop:goods-sale"


def test_rows_that_the_schema_does_not_allow(rows: SparkSession, registry: RegistryClient, sales: str) -> None:
    """Each row is validated by the schema and its references, with the words of `encode`."""
    columns = ", ".join(f"{row} AS c{place}" for place, row in enumerate(SALES))
    values = rows.sql(f"SELECT {columns} FROM orders")
    options: dict[str, Any] = {"registry": registry.settings, "subject": sales, "version": 1, "mode": "DEADLETTER"}

    [made] = values.selectExpr(*(f"shop_encode({one}, '{sales}?mode=DEADLETTER')" for one in values.columns)).collect()
    [encoded] = values.select(*(encode(one, path="jvm", **options) for one in values.columns)).collect()

    assert list(SALES.values()) == [one["error"] and tuple(one["error"]) for one in made]
    assert list(encoded) == list(made)


def test_a_row_that_fails_the_query(rows: SparkSession, sales: str) -> None:
    """Without a mode, a row that the schema does not allow fails the query with its reason and path."""
    with pytest.raises(Exception, match=r"at least 0, got a smaller one .* \(at field price.units\)"):
        rows.sql(f"SELECT shop_encode(named_struct('price', named_struct('units', -1)), '{sales}')").collect()


FRAMINGS = ("prefix", "guid", "header")


def test_framings(rows: SparkSession, registry: RegistryClient) -> None:
    """A record names its schema as the serializer's does: by id, by GUID, or in a header, which a function returns."""
    number, text, line = "named_struct('n', 7)", "named_struct('note', 'x')", "o.lines[0]"
    schema_id = registry.get_version("goods-avro-value").schema_id
    calls = {
        "avro": (number, f"?id={schema_id}&framing="),
        "json": (text, "goods-json-value?validate=false&framing="),
        "line": (line, "goods-proto-value?message=shop.Order.Line&framing="),
    }
    columns = [
        f"shop_encode({value}, '{name}{framing}') AS {kind}_{framing}"
        for kind, (value, name) in calls.items()
        for framing in FRAMINGS
    ]
    headers = """shop_headers('goods-avro-value') AS avro, shop_headers('goods-json-value?version=1&key=true') AS json,
    shop_headers('goods-proto-value?message=shop.Order.Line') AS line"""

    [row] = rows.sql(f"SELECT {', '.join(columns)}, {headers} FROM orders").collect()

    sent = {}
    for framing in FRAMINGS:
        conf = {"auto.register.schemas": False, "schema.id.serializer": framing}
        avro, json_value = Context("goods-avro", {}), Context("goods-json", {})
        sent[f"avro_{framing}"] = AvroSerializer(registry, AVRO_SCHEMA, None, conf)({"n": 7}, avro)
        sent[f"json_{framing}"] = JsonSerializer(registry, JSON_SCHEMA, None, conf)({"note": "x"}, json_value)
    registered = registry.get_version("goods-proto-value")
    named = b"\1" + UUID(str(registered.guid)).bytes + write_indexes((1, 0))
    by_id = registered.schema_id.to_bytes(5, "big") + write_indexes((1, 0))
    sent |= {"line_prefix": by_id + b"\x08\1", "line_guid": named + b"\x08\1", "line_header": b"\x08\1"}
    assert sent == {name: bytes(row[name]) for name in sent}
    assert [avro.headers] == [dict(row["avro"])]
    assert [("__key_schema_id", *json_value.headers.values())] == list(map(tuple, row["json"]))
    assert [("__value_schema_id", named)] == list(map(tuple, row["line"]))


def test_schemas(rows: SparkSession) -> None:
    """The text of a schema is that of the registry, in each format."""
    [row] = rows.sql("SELECT shop_schema('goods-proto-value'), shop_schema('goods-json-value')").collect()

    assert "message Order" in row[0]
    assert json.loads(JSON_SCHEMA) == json.loads(row[1])


# arguments, what the error says
REFUSED = [
    ("o, 'goods-none'", "no writer schema from goods-none version latest: .*not found"),
    ("o, 'goods-proto-value?message=shop.Nothing'", "the schema has no message shop.Nothing; the first is shop.Head"),
    ("o, 'goods-proto-value?message=shop.Money'", "the schema has no message shop.Money; the first is shop.Head"),
    ("o, 'goods-proto-value'", r"the schema has no such field.* \(at field count\)"),
    ("named_struct('id', 1), 'goods-proto-value'", r"expected a column of string, got int32 \(at field id\)"),
    (
        "named_struct('lines', array(named_struct('n', 'x'))), 'goods-proto-value?message=shop.Order'",
        r"expected a column of int32, got string \(at field lines\[\].n\)",
    ),
    ("o.id, 'goods-proto-value'", "expected a struct, got string"),
    ("o, 'goods-proto-required'", r"SQL does not encode the required field M\.a; make the column by strata"),
    (
        "j, 'goods-json-unique'",
        "SQL does not encode JSON with validation by `uniqueItems`: add validate=false, or make the column by strata",
    ),
    ("j, 'goods-json-lost'", r"SQL does not encode JSON with validation by `\$ref` to another document: add validate="),
    ("j, 'goods-json-value?validate=no'", "validate is no; allowed are true, false"),
    ("j, 'goods-json-value?message=M'", "message needs a Protobuf schema, and the schema is JSON"),
    (
        "named_struct('x', map(1, 1)), 'goods-json-value?validate=false'",
        r"expected map keys of type string, got int32 \(at field x\)",
    ),
    ("j, 'goods-json-value?framing=glue'", "framing is glue; allowed are prefix, guid, header"),
    ("j, 'goods-json-value?frame=guid'", "unknown option frame; allowed are version, id, mode, message, validate,"),
]


@pytest.mark.parametrize(("arguments", "told"), REFUSED)
def test_calls_that_are_refused(rows: SparkSession, registry: RegistryClient, arguments: str, told: str) -> None:
    """The error comes when the query is analyzed, and says what is wrong, with the path of a field."""
    registry.register("goods-proto-required", proto('syntax = "proto2"; message M { required int32 a = 1; }'))
    registry.register("goods-json-unique", Schema('{"properties": {"n": {"uniqueItems": true}}}', "JSON"))
    lost = '{"definitions": {"a": {"$ref": "http://json-schema.org/draft-07/schema"}}, "$ref": "#/definitions/a"}'
    registry.register("goods-json-lost", Schema(lost, "JSON"))

    with pytest.raises(PySparkException, match=told):
        rows.sql(f"SELECT shop_encode({arguments}) FROM orders")
