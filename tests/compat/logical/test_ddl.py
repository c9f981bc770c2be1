"""The statement that makes the table of a schema: its text, and what an engine makes of it."""

import json

import pytest

from harness.every_column import COMMENT, EVERYTHING, statement_of
from strata.compat.formats import FORMATS
from strata.compat.limits import DEFAULT_LIMITS
from strata.compat.logical.ddl import DIALECTS, table_statement
from strata.compat.logical.policy import translate
from strata.compat.logical.types import TranslationError
from strata.compat.schema import SchemaFormat


def avro(*fields: tuple[str, object], **more: str) -> str:
    """Return a record."""
    named = [{"name": name, "type": type_} | ({"doc": more[name]} if name in more else {}) for name, type_ in fields]
    return json.dumps({"type": "record", "name": "Order", "fields": named})


def statement(dialect: str, text: str, schema_format: str = "AVRO", **options: bool) -> str:
    """Return the statement for the table `orders`."""
    schema = FORMATS[SchemaFormat(schema_format)].parse(text, strict=False, references=())
    return table_statement(translate(schema, "", DEFAULT_LIMITS), "orders", dialect, **options)


def column(dialect: str, type_: object, **options: bool) -> str:
    """Return the type of a column as a dialect writes it."""
    line = statement(dialect, avro(("c", type_)), **options).partition("(\n  ")[2].splitlines()[0]
    return line.partition(" ")[2]


def logical(type_: str, name: str, **more: int) -> dict[str, object]:
    """Return a logical type."""
    return {"type": type_, "logicalType": name, **more}


LINE = {"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]}
# Avro type, then the column in Iceberg, Delta, Flink, ClickHouse, DuckDB
COLUMNS = [
    ("int", "INT", "INT", "INT", "Nullable(Int32)", "INT"),
    ("string", "STRING", "STRING", "STRING", "Nullable(String)", "VARCHAR"),
    ("bytes", "BINARY", "BINARY", "BYTES", "Nullable(String)", "BLOB"),
    ({"type": "fixed", "name": "F", "size": 4}, "BINARY", "BINARY", "BINARY(4)", "Nullable(String)", "BLOB"),
    (logical("bytes", "decimal", precision=9, scale=2),
     "DECIMAL(9, 2)", "DECIMAL(9, 2)", "DECIMAL(9, 2)", "Nullable(Decimal(9, 2))", "DECIMAL(9, 2)"),
    (logical("int", "date"), "DATE", "DATE", "DATE", "Nullable(Date32)", "DATE"),
    (logical("int", "time-millis"), "INT", "INT", "TIME(3)", "Nullable(Int32)", "TIME"),
    (logical("long", "time-micros"), "BIGINT", "BIGINT", "TIME(6)", "Nullable(Int64)", "TIME"),
    (logical("long", "timestamp-millis"),
     "TIMESTAMP", "TIMESTAMP", "TIMESTAMP_LTZ(3)", "Nullable(DateTime64(3, 'UTC'))", "TIMESTAMPTZ"),
    (logical("long", "timestamp-nanos"),
     "BIGINT", "BIGINT", "TIMESTAMP_LTZ(9)", "Nullable(DateTime64(9, 'UTC'))", "TIMESTAMP_NS"),
    (logical("long", "local-timestamp-micros"),
     "TIMESTAMP_NTZ", "TIMESTAMP_NTZ", "TIMESTAMP(6)", "Nullable(DateTime64(6))", "TIMESTAMP"),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "STRING", "STRING", "STRING", "Nullable(String)", "VARCHAR"),
    ({"type": "array", "items": LINE}, "ARRAY<STRUCT<`sku`: STRING>>", "ARRAY<STRUCT<`sku`: STRING>>",
     "ARRAY<ROW<`sku` STRING>>", "Array(Tuple(`sku` Nullable(String)))", 'STRUCT("sku" VARCHAR)[]'),
    ({"type": "map", "values": "long"}, "MAP<STRING, BIGINT>", "MAP<STRING, BIGINT>", "MAP<STRING, BIGINT>",
     "Map(String, Nullable(Int64))", "MAP(VARCHAR, BIGINT)"),
    (["null", "int", "string"], "STRUCT<`int`: INT, `string`: STRING>", "STRUCT<`int`: INT, `string`: STRING>",
     "ROW<`int` INT, `string` STRING>", "Tuple(`int` Nullable(Int32), `string` Nullable(String))",
     'STRUCT("int" INT, "string" VARCHAR)'),
]  # fmt: skip


@pytest.mark.parametrize("row", COLUMNS, ids=[json.dumps(row[0])[:40] for row in COLUMNS])
def test_columns(row):
    """Each engine has a column for each type."""
    type_, *expected = row

    assert expected == [column(name, type_) for name in ("iceberg", "delta", "flink", "clickhouse", "duckdb")]


def test_duckdb_makes_the_tables():
    """DuckDB takes its statements, comments included."""
    import duckdb  # here, for its import takes long

    with duckdb.connect() as database:
        for type_, *_ in COLUMNS:
            database.execute(statement("duckdb", avro(("c", type_), ('d"', "int"), c="it's \\ here")))
            comments = database.execute("SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'orders'")

            assert [("c", "it's \\ here"), ('d"', None)] == comments.fetchall(), type_
            database.execute("DROP TABLE orders")


def test_clickhouse_makes_the_table():
    """ClickHouse takes its statement for a schema with every type, comments included."""
    chdb = pytest.importorskip("chdb.session", reason="chdb has a hundred megabytes, and is not among the tools")
    with chdb.Session() as session:
        session.query(statement_of(EVERYTHING, "orders", "clickhouse"))
        described = str(session.query("DESCRIBE TABLE orders", "JSONEachRow"))

    columns = {row["name"]: row for row in map(json.loads, described.splitlines())}
    assert [field["name"] for field in EVERYTHING["fields"]] == list(columns)
    assert COMMENT == columns["b"]["comment"]


def test_comments():
    """The documentation of a field becomes the comment of its column, with its quotes."""
    text = avro(("id", "long"), id="it's \\ here")

    assert "COMMENT 'it\\'s \\\\ here'" in statement("iceberg", text)
    assert "COMMENT 'it''s \\ here'" in statement("flink", text)


def test_what_flink_cannot_read_is_said():
    """A comment above Flink's statement says what to declare for its format that reads a registry's records."""
    time = logical("long", "timestamp-millis")

    remarks = [statement(dialect, avro(("a", time), ("b", time))).count("avro-confluent") for dialect in DIALECTS]

    assert [name == "flink" for name in DIALECTS] == [count == 1 for count in remarks]
    assert not statement("flink", avro(("a", "long"))).startswith("--")


def test_what_always_has_a_value():
    """Columns may be null unless NOT NULL is asked for."""
    assert column("delta", "int", not_null=True) == "INT NOT NULL"
    assert column("delta", ["null", "int"], not_null=True) == "INT"
    assert column("clickhouse", "int", not_null=True) == "Int32"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_other_formats(dialect):
    """JSON Schema and Protobuf have tables too."""
    document = {"type": "object", "properties": {"id": {"type": "integer", "description": "the id"}}}
    message = 'syntax = "proto3"; message Order { int64 id = 1; repeated string tags = 2; }'

    assert "id" in statement(dialect, json.dumps(document), "JSON")
    assert "the id" in statement(dialect, json.dumps(document), "JSON")
    assert "tags" in statement(dialect, message, "PROTOBUF")


# schema, reason
NO_TABLE = [
    ('"int"', "a table needs a record"),
    ('{"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}', "contains itself"),
    ('{"type": "record", "name": "N", "fields": [{"name": "n", "type": "null"}]}', "NULL"),
]


@pytest.mark.parametrize(("text", "reason"), NO_TABLE)
def test_no_table(text, reason):
    """What no table can hold is an error with its reason."""
    with pytest.raises(TranslationError, match=reason):
        statement("delta", text)
