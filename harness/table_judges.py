"""The engines themselves judge changes of tables: Iceberg's library, Delta and Spark, Flink's types and Avro format.

A question names the columns before and after. The answer is a mapping that is empty if the engine has nothing against
the change: `create` says why it has no such table, `change` (Iceberg, Delta) or `cast` (Flink) why its columns cannot
change so, and `read` what is wrong with the rows that were written before.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from harness.jars import delta_jars, flink_sql_jars, iceberg_jars
from harness.spark_jar import compiled, spark_class_path
from strata.compat.logical.ddl import table_statement
from strata.compat.logical.types import UNBOUNDED, Column, Kind, LogicalSchema, LogicalType, TranslationError

__all__ = ["Answer", "Question", "columns_of", "flink_row", "iceberg_schema", "in_delta", "in_flink", "in_iceberg"]

Question = Mapping[str, Any]
Answer = Mapping[str, str]
_JVM: Final = Path(__file__).with_name("jvm")
_TIMEOUT_S: Final = 800
_QUIET: Final = """<Configuration status="OFF"><Loggers><Root level="OFF"/></Loggers></Configuration>"""


def in_iceberg(questions: Sequence[Question]) -> list[Answer]:
    """Return what Iceberg's library says of tables of format version 2.

    Args:
        questions: each has `before` and `after`, JSON of Iceberg schemas or columns in Spark's DDL. With `keep` the
            table keeps columns that are gone and types that hold the new values; with `read` rows are written and read.
    """
    return _answers("IcebergTables", questions, [*iceberg_jars(), *delta_jars()])


def in_delta(questions: Sequence[Question]) -> list[Answer]:
    """Return what Delta and Spark say of tables with type widening; `before` and `after` are columns in Spark's DDL."""
    return _answers("DeltaTables", questions, [*iceberg_jars(), *delta_jars()])


def in_flink(questions: Sequence[Question]) -> list[Answer]:
    """Return what Flink's type system and Avro format say.

    Args:
        questions: each has `after` and either `before`, both the text of a row type, or `writer`, an Avro schema.
    """
    return _answers("FlinkTables", questions, flink_sql_jars())


def _answers(program: str, questions: Sequence[Question], jars: Sequence[Path]) -> list[Answer]:
    sources = [_JVM / f"{program}.java", *([] if program == "FlinkTables" else [_JVM / "SparkColumns.java"])]
    with tempfile.TemporaryDirectory() as folder:
        quiet = Path(folder) / "quiet.xml"
        quiet.write_text(_QUIET)
        spark = [] if program == "FlinkTables" else [spark_class_path()]
        class_path = os.pathsep.join(map(str, (compiled(sources, *jars), *jars, *spark)))
        command = [
            "java",
            "-XX:+UseSerialGC",
            "-Xmx1g",
            f"-Dlog4j2.configurationFile={quiet}",
            "-cp",
            class_path,
            program,
        ]
        lines = "".join(f"{json.dumps(question)}\n" for question in questions)
        done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=_TIMEOUT_S, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(answers) != len(questions):
        raise RuntimeError(f"{program} ended after {len(answers)} answers: {done.stderr.decode()[-2000:]}")
    return answers


# What the engines read.

_ICEBERG: Final = {
    Kind.BOOLEAN: "boolean", Kind.TINYINT: "int", Kind.SMALLINT: "int", Kind.INT: "int", Kind.BIGINT: "long",
    Kind.FLOAT: "float", Kind.DOUBLE: "double", Kind.CHAR: "string", Kind.VARCHAR: "string", Kind.ENUM: "string",
    Kind.VARBINARY: "binary", Kind.DATE: "date", Kind.TIME: "time", Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMP_LTZ: "timestamptz", Kind.VARIANT: "variant",
}  # fmt: skip
_FLINK_SIZED: Final = {Kind.VARCHAR: "STRING", Kind.VARBINARY: "BYTES"}
_COUNT: Final = LogicalType(Kind.INT)


def iceberg_schema(schema: LogicalSchema) -> dict[str, Any]:
    """Return the columns of a table of Iceberg, with its own types, as the JSON that its library reads.

    Raises:
        TranslationError: a type contains itself or has no body.
    """
    numbers = count(1)

    def written(node: LogicalType) -> Any:
        match node.kind:
            case Kind.STRUCT | Kind.UNION:
                fields = [
                    {"id": next(numbers), "name": column.name, "required": not column.type.nullable,
                     "type": written(column.type)}
                    for column in node.columns
                ]  # fmt: skip
                return {"type": "struct", "fields": fields}
            case Kind.ARRAY:
                element = {"element-id": next(numbers), "element-required": not node.parts[0].nullable}
                return {"type": "list", **element, "element": written(node.parts[0])}
            case Kind.MAP | Kind.MULTISET:
                key, value = node.parts if node.kind is Kind.MAP else (*node.parts, _COUNT)
                ids = {"key-id": next(numbers), "value-id": next(numbers), "value-required": not value.nullable}
                return {"type": "map", **ids, "key": written(key), "value": written(value)}
            case Kind.DECIMAL:
                return f"decimal({node.numbers[0]}, {node.numbers[1]})"
            case Kind.BINARY:
                return f"fixed[{node.numbers[0]}]"
        return _ICEBERG[node.kind]

    made: dict[str, Any] = written(_inlined(schema))
    return made


def flink_row(schema: LogicalSchema) -> str:
    """Return the row type of a table of Flink, with what may be null.

    Raises:
        TranslationError: a type contains itself or has no body.
    """

    def written(node: LogicalType) -> str:
        text = typed(node)
        return text if node.nullable else f"{text} NOT NULL"

    def typed(node: LogicalType) -> str:
        match node.kind:
            case Kind.STRUCT | Kind.UNION:
                return f"ROW<{', '.join(f'`{column.name}` {written(column.type)}' for column in node.columns)}>"
            case Kind.ARRAY | Kind.MULTISET:
                return f"{node.kind}<{written(node.parts[0])}>"
            case Kind.MAP:
                return f"MAP<{written(node.parts[0])}, {written(node.parts[1])}>"
            case Kind.ENUM:
                return "STRING"
        return _FLINK_SIZED.get(node.kind, str(node)) if node.numbers == (UNBOUNDED,) else str(node)

    return typed(_inlined(schema))


def columns_of(schema: LogicalSchema, dialect: str) -> str:
    """Return the columns of the statement that makes the table of a schema; for Flink, its row type.

    Raises:
        TranslationError: the schema is not a record, a type contains itself or has no body.
    """
    statement = table_statement(LogicalSchema(_inlined(schema)), "t", dialect)
    columns = statement.partition("(\n")[2].rpartition("\n)")[0].replace("\n", "")
    return f"ROW<{columns.strip()}>" if dialect == "flink" else columns


def _inlined(schema: LogicalSchema) -> LogicalType:
    """Return the root without references and documentation."""

    def inline(node: LogicalType, outer: tuple[str, ...]) -> LogicalType:
        if node.kind is Kind.REFERENCE:
            body = schema.resolve(node)
            if body.kind is Kind.REFERENCE or node.name in outer:
                raise TranslationError(f"{node.name} is not a type of a table")
            return inline(body.or_null(node.nullable), (*outer, node.name))
        columns = tuple(Column(column.name, inline(column.type, outer), column.default) for column in node.columns)
        return replace(node, columns=columns, parts=tuple(inline(part, outer) for part in node.parts))

    return inline(schema.root, ())


def leaves(node: LogicalType) -> Iterator[LogicalType]:
    """Yield the types without parts in a type."""
    inner = [*(column.type for column in node.columns), *node.parts]
    if not inner:
        yield node
    for part in inner:
        yield from leaves(part)
