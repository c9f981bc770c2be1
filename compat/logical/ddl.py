"""The statement that makes the table that a schema means, in the SQL of an engine.

Types that an engine lacks become the ones that lose nothing: a time without a zone is a number of milliseconds or
microseconds in Iceberg and Delta, a union is a struct with a column for each branch, an enum is a text, since its
symbols change. A comment says so where the type does not.

Columns may be null unless NOT NULL is asked for: a table that follows its topic has rows of versions without the field.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from strata.compat.logical.types import UNBOUNDED, Column, Kind, LogicalSchema, LogicalType, TranslationError

__all__ = ["DIALECTS", "column_type", "counted_unit", "table_name", "table_statement"]

_MICROSECONDS: Final = 6
_MILLISECONDS: Final = 3
_Word = Callable[[LogicalType], str]


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How an engine writes tables.

    Attributes:
        words: the type of each kind without parts.
        struct: the form of a struct, with `{}` for its fields.
        field: the form of a field of a struct: name and type.
        array: the form of an array.
        map: the form of a map.
        quote: the quote of names.
        has_comments: whether a column takes `COMMENT '…'` inside the statement.
        has_escapes: whether a backslash escapes a character in a text; otherwise a quote is doubled.
        tail: what follows the columns.
        nullable: the form of a type that may be null, but for structs, arrays and maps; None if every type may.
        remarks: what a comment above the statement says about a kind of column that it has.
    """

    words: Mapping[Kind, str | _Word]
    struct: str
    field: str
    array: str
    map: str
    quote: str
    has_comments: bool = True
    has_escapes: bool = True
    tail: str = ""
    nullable: str | None = None
    remarks: tuple[tuple[Kind, str], ...] = ()


def _number_of_time(node: LogicalType) -> str:
    return "INT" if node.numbers[0] <= _MILLISECONDS else "BIGINT"


def _spark_timestamp(word: str) -> _Word:
    return lambda node: word if node.numbers[0] <= _MICROSECONDS else "BIGINT"


def _with_numbers(word: str) -> _Word:
    return lambda node: f"{word}({', '.join(map(str, node.numbers))})"


def _with_length(word: str, unbounded: str) -> _Word:
    return lambda node: unbounded if node.numbers[0] == UNBOUNDED else f"{word}({node.numbers[0]})"


_SPARK: Final[Mapping[Kind, str | _Word]] = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.TINYINT: "TINYINT",
    Kind.SMALLINT: "SMALLINT",
    Kind.INT: "INT",
    Kind.BIGINT: "BIGINT",
    Kind.FLOAT: "FLOAT",
    Kind.DOUBLE: "DOUBLE",
    Kind.DECIMAL: _with_numbers("DECIMAL"),
    Kind.CHAR: "STRING",
    Kind.VARCHAR: "STRING",
    Kind.BINARY: "BINARY",
    Kind.VARBINARY: "BINARY",
    Kind.DATE: "DATE",
    Kind.TIME: _number_of_time,
    Kind.TIMESTAMP: _spark_timestamp("TIMESTAMP_NTZ"),
    Kind.TIMESTAMP_LTZ: _spark_timestamp("TIMESTAMP"),
    Kind.VARIANT: "VARIANT",
    Kind.ENUM: "STRING",
}


def _spark(words: Mapping[Kind, str | _Word], engine: str) -> _Dialect:
    tail = f"\nUSING {engine}"
    return _Dialect(words, "STRUCT<{}>", "{}: {}", "ARRAY<{}>", "MAP<{}, {}>", "`", tail=tail)


_ICEBERG: Final = {**_SPARK, Kind.TINYINT: "INT", Kind.SMALLINT: "INT"}
_FLINK: Final[Mapping[Kind, str | _Word]] = {
    **_SPARK,
    Kind.CHAR: _with_numbers("CHAR"),
    Kind.VARCHAR: _with_length("VARCHAR", "STRING"),
    Kind.BINARY: _with_numbers("BINARY"),
    Kind.VARBINARY: _with_length("VARBINARY", "BYTES"),
    Kind.TIME: _with_numbers("TIME"),
    Kind.TIMESTAMP: _with_numbers("TIMESTAMP"),
    Kind.TIMESTAMP_LTZ: _with_numbers("TIMESTAMP_LTZ"),
}
_NO_LTZ: Final = (
    "Flink's format avro-confluent (2.1) cannot read TIMESTAMP_LTZ: declare TIMESTAMP(3) where the schema has "
    "milliseconds."
)
_CLICKHOUSE: Final[Mapping[Kind, str | _Word]] = {
    Kind.BOOLEAN: "Bool",
    Kind.TINYINT: "Int8",
    Kind.SMALLINT: "Int16",
    Kind.INT: "Int32",
    Kind.BIGINT: "Int64",
    Kind.FLOAT: "Float32",
    Kind.DOUBLE: "Float64",
    Kind.DECIMAL: _with_numbers("Decimal"),
    Kind.CHAR: "String",
    Kind.VARCHAR: "String",
    Kind.BINARY: "String",
    Kind.VARBINARY: "String",
    Kind.DATE: "Date32",
    Kind.TIME: lambda node: "Int32" if node.numbers[0] <= _MILLISECONDS else "Int64",
    Kind.TIMESTAMP: _with_numbers("DateTime64"),
    Kind.TIMESTAMP_LTZ: lambda node: f"DateTime64({node.numbers[0]}, 'UTC')",
    Kind.VARIANT: "String",
    Kind.ENUM: "String",
}
_DUCKDB: Final[Mapping[Kind, str | _Word]] = {
    **_SPARK,
    Kind.CHAR: "VARCHAR",
    Kind.VARCHAR: "VARCHAR",
    Kind.BINARY: "BLOB",
    Kind.VARBINARY: "BLOB",
    Kind.TIME: lambda node: "TIME" if node.numbers[0] <= _MICROSECONDS else "BIGINT",
    Kind.TIMESTAMP: lambda node: "TIMESTAMP" if node.numbers[0] <= _MICROSECONDS else "TIMESTAMP_NS",
    Kind.TIMESTAMP_LTZ: lambda node: "TIMESTAMPTZ" if node.numbers[0] <= _MICROSECONDS else "TIMESTAMP_NS",
    Kind.VARIANT: "JSON",
    Kind.ENUM: "VARCHAR",
}

DIALECTS: Final[Mapping[str, _Dialect]] = {
    "iceberg": _spark(_ICEBERG, "iceberg"),
    "delta": _spark(_SPARK, "delta"),
    "parquet": _spark(_SPARK, "parquet"),
    "flink": _Dialect(
        _FLINK,
        "ROW<{}>",
        "{} {}",
        "ARRAY<{}>",
        "MAP<{}, {}>",
        "`",
        has_escapes=False,
        remarks=((Kind.TIMESTAMP_LTZ, _NO_LTZ),),
    ),
    "clickhouse": _Dialect(
        _CLICKHOUSE,
        "Tuple({})",
        "{} {}",
        "Array({})",
        "Map({}, {})",
        "`",
        tail="\nENGINE = MergeTree ORDER BY tuple()",
        nullable="Nullable({})",
    ),
    "duckdb": _Dialect(
        _DUCKDB, "STRUCT({})", "{} {}", "{}[]", "MAP({}, {})", '"', has_comments=False, has_escapes=False
    ),
}
"""The engines by name. Iceberg, Delta and Parquet are written as Spark reads them."""


def table_name(name: str) -> str:
    """Return a name as that of a table: letters, digits and underscores."""
    return "".join(letter if letter.isalnum() else "_" for letter in name) or "records"


def table_statement(schema: LogicalSchema, table: str, dialect: str, *, not_null: bool = False) -> str:
    """Return the statement that makes a table.

    Args:
        schema: the logical type of the schema.
        table: the name of the table; a dot separates the parts of a name.
        dialect: the name of the engine, one of `DIALECTS`.
        not_null: whether the columns that always have a value are NOT NULL.

    Raises:
        TranslationError: the schema is not a record, or it contains itself.
    """
    return _Writer(schema, dialect, not_null).statement(table)


def column_type(node: LogicalType, dialect: str) -> str:
    """Return the type of a column without parts in the words of an engine; of another one, the name of its kind."""
    word = DIALECTS[dialect].words.get(node.kind)
    return str(node) if word is None else word if isinstance(word, str) else word(node)


def counted_unit(node: LogicalType, word: str) -> str:
    """Return what a column counts that holds times as numbers: `milliseconds`; an empty text if it does not."""
    if node.kind not in (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ) or word not in ("INT", "BIGINT"):
        return ""
    precision = node.numbers[0]
    return (
        "milliseconds"
        if precision <= _MILLISECONDS
        else "microseconds"
        if precision <= _MICROSECONDS
        else "nanoseconds"
    )


class _Writer:
    def __init__(self, schema: LogicalSchema, dialect: str, not_null: bool) -> None:
        self._schema, self._name, self._dialect, self._not_null = schema, dialect, DIALECTS[dialect], not_null
        self._open: list[str] = []
        self._kinds: set[Kind] = set()

    def statement(self, table: str) -> str:
        root = self._schema.resolve(self._schema.root)
        if root.kind not in (Kind.STRUCT, Kind.UNION):
            raise TranslationError(f"a table needs a record; the schema is {root}")
        with_root = [self._schema.root.name] if self._schema.root.kind is Kind.REFERENCE else []
        self._open += with_root
        lines = [self._line(column) for column in root.columns]
        name = ".".join(map(self._quoted, table.split(".")))
        text = "".join(f"-- {remark}\n" for kind, remark in self._dialect.remarks if kind in self._kinds)
        text += f"CREATE TABLE {name} (\n  {f',{chr(10)}  '.join(lines)}\n){self._dialect.tail};\n"
        if not self._dialect.has_comments:
            text += "".join(
                f"COMMENT ON COLUMN {name}.{self._quoted(column.name)} IS {self._literal(column.doc)};\n"
                for column in root.columns
                if column.doc
            )
        return text

    def _line(self, column: Column) -> str:
        required = " NOT NULL" if self._not_null and not column.type.nullable and not self._dialect.nullable else ""
        comment = f" COMMENT {self._literal(column.doc)}" if column.doc and self._dialect.has_comments else ""
        return f"{self._quoted(column.name)} {self._type(column.type)}{required}{comment}"

    def _type(self, node: LogicalType, *, is_key: bool = False) -> str:
        if node.kind is Kind.REFERENCE:
            return self._reference(node)
        dialect = self._dialect
        match node.kind:
            case Kind.STRUCT | Kind.UNION:
                if not node.columns:
                    raise TranslationError("a struct without fields is not a type of any table")
                fields = ", ".join(
                    dialect.field.format(self._quoted(column.name), self._type(column.type)) for column in node.columns
                )
                return dialect.struct.format(fields)
            case Kind.ARRAY:
                return dialect.array.format(self._type(node.parts[0]))
            case Kind.MAP:
                return dialect.map.format(self._type(node.parts[0], is_key=True), self._type(node.parts[1]))
            case Kind.MULTISET:
                count = LogicalType(Kind.INT)
                return dialect.map.format(self._type(node.parts[0], is_key=True), self._type(count))
        text = column_type(node, self._name)
        self._kinds.add(node.kind)
        may_be_null = (node.nullable or not self._not_null) and not is_key
        return dialect.nullable.format(text) if dialect.nullable and may_be_null else text

    def _reference(self, node: LogicalType) -> str:
        if node.name in self._open:
            raise TranslationError(f"{node.name} contains itself, and no table can hold that")
        body = self._schema.resolve(node)
        if body.kind is Kind.REFERENCE:
            raise TranslationError(f"{node.name} is not defined")
        self._open.append(node.name)
        text = self._type(body.or_null(node.nullable))
        self._open.pop()
        return text

    def _quoted(self, name: str) -> str:
        quote = self._dialect.quote
        return f"{quote}{name.replace(quote, quote * 2)}{quote}"

    def _literal(self, text: str) -> str:
        escaped = text.replace("\n", " ")
        if self._dialect.has_escapes:
            return "'{}'".format(escaped.replace("\\", "\\\\").replace("'", "\\'"))
        return "'{}'".format(escaped.replace("'", "''"))
