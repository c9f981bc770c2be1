"""The ways in which Spark decodes frames, each as a function: rules in, their answers out, all rules in one query."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from harness.decode_rules import Answer, Rule
from harness.plain_values import plain
from strata.serdes.client import RegistryClient

__all__ = ["Answers", "Frames", "run_once", "settings"]

Answers: TypeAlias = dict[str, list[Answer]]
"""The name of each rule, and what became of each of its frames."""


@dataclass(frozen=True)
class _Column:
    """Frames that are read with one reader schema and the same options."""

    rules: list[Rule] = field(default_factory=list)
    frames: list[bytes | None] = field(default_factory=list)


class Frames:
    """The frames of rules as a table: a number `n` for each row, and a column for each reader schema.

    Args:
        client: registers the writer schemas.
        rules: the rules, of one format.
    """

    def __init__(self, client: RegistryClient, rules: Sequence[Rule]) -> None:
        self._columns: dict[Any, _Column] = {}
        for rule in rules:
            schema_id = client.register("rules", rule.writer).schema_id
            column = self._columns.setdefault(rule.column, _Column())
            column.rules.append(rule)
            column.frames.extend(rule.frame(schema_id, payload) for payload in rule.payloads)

    @property
    def table(self) -> pa.Table:
        """Return the frames; columns are filled up with nulls."""
        rows = max(len(column.frames) for column in self._columns.values())
        columns = {
            f"c{number}": pa.array([*column.frames, *[None] * (rows - len(column.frames))], pa.binary())
            for number, column in enumerate(self._columns.values())
        }
        return pa.table({"n": pa.array(range(rows), pa.int32()), **columns})

    def decoded(self, frames: DataFrame, decoded: Callable[[str, Rule], Column]) -> DataFrame:
        """Return a data frame of the frames decoded.

        Args:
            frames: the table.
            decoded: decodes the column of a name, by one of its rules.
        """
        return frames.select("n", *(decoded(name, rule).alias(name) for rule, name in self._named()))

    def _named(self) -> list[tuple[Rule, str]]:
        """Return the first rule and the name of each column."""
        return [(column.rules[0], f"c{number}") for number, column in enumerate(self._columns.values())]

    def answers(self, decoded: DataFrame) -> Answers:
        """Return what a decoded data frame says of each rule.

        Raises:
            AssertionError: a column has another type than its reader schema.
        """
        schema, named = decoded.schema, self._named()
        types = {rule.name: cast("StructType", schema[name].dataType)["value"].dataType for rule, name in named}
        assert {rule.name: rule.read_type.simpleString() for rule, _ in named} == {
            name: type_.simpleString() for name, type_ in types.items()
        }
        # `toArrow` would cast, and no cast allows a null struct of fields that are never null.
        rows = pa.Table.from_batches(decoded._collect_as_arrow()).sort_by("n")  # type: ignore[operator]
        return self._answers(rows[f"c{number}"].combine_chunks() for number in range(len(self._columns)))

    def answers_by(self, decode_column: Callable[[pa.Array, Rule], pa.Array]) -> Answers:
        """Return what a function makes of the frames of each column, which it gets with one of their rules."""
        return self._answers(
            decode_column(pa.array(column.frames, pa.binary()), column.rules[0]) for column in self._columns.values()
        )

    def _answers(self, decoded: Iterable[pa.Array]) -> Answers:
        answers: Answers = {}
        for column, array in zip(self._columns.values(), decoded, strict=True):
            outcomes = iter(_answers_of(array, column.frames))
            answers |= {rule.name: [next(outcomes) for _ in rule.payloads] for rule in column.rules}
        return answers


def _answers_of(decoded: pa.Array, frames: Sequence[bytes | None]) -> list[Answer]:
    """Return what a column of values and errors says of the first rows, which have these frames.

    Raises:
        AssertionError: an error has another frame or schema id than the row, or a value.
    """
    errors, values = decoded.field("error").to_pylist(), plain(decoded.field("value"))
    answers: list[Answer] = []
    for frame, error, value in zip(frames, errors, values, strict=False):
        if error is None:
            answers.append({"value": value})
        else:
            assert (frame, None) == (error["frame"], value)
            assert _id_of(frame or b"") == error["schema_id"]
            answers.append({"reason": error["reason"]})
    return answers


def _id_of(frame: bytes) -> int | None:
    """Return the schema id that a dead letter has: none if the frame has none that can be one."""
    schema_id = int.from_bytes(frame[1:5], "big") if len(frame) >= 5 and frame[0] == 0 else 2**31
    return schema_id if schema_id < 2**31 else None


def run_once(writer: DataStreamWriter, checkpoint: Path, *, timeout_s: int = 60) -> None:
    """Run a query over everything that its stream has.

    Args:
        writer: what becomes of the stream.
        checkpoint: the folder of the checkpoint.
        timeout_s: how long it may take, in seconds.
    """
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(timeout_s)
    finally:
        query.stop()


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session for a while."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)
