"""A micro-batch: its good rows, its deletions, and what is neither.

Rules of this file: data frames in, data frames out; nothing is written here.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame, Observation, Window, functions
from pyspark.sql.types import DataType, StructField, StructType

from strata.spark_udfs.arguments import names_of
from strata.spark_udfs.dead_letters import column_named
from strata.spark_udfs.tables.alignment import aligned
from strata.spark_udfs.tables.changes import Path, Refusal, holds
from strata.spark_udfs.tables.formats import DELETED

__all__ = ["Batch", "Source"]

_ORIGIN: Final = ("topic", "partition", "offset", "timestamp", "key")
"""The columns of Kafka's source that a dead letter keeps, where the stream has them."""
_DECODED: Final = "__strata_decoded"
_KEY: Final = "__strata_key"
_PLACE: Final = "__strata_place"
_TOMBSTONE: Final = "the record has no value; with keys= it would delete the row of its key"
_NO_KEY: Final = "the record has no value, and its key cannot be decoded"
_KEY_WAYS: Final = ("name other columns in keys=", "pass key= with a column of that type")


@dataclass(frozen=True, slots=True)
class Source:
    """The columns of a stream of frames.

    Attributes:
        value: the column of frames.
        kept: the columns that the table gets as well.
        origin: the columns that say where a record was.
        keys: the columns of the table that identify a row.
        key: the record's key as a column; None if the column `key` holds frames, or there are no keys.
    """

    value: str
    kept: tuple[StructField, ...]
    origin: tuple[str, ...]
    keys: tuple[str, ...]
    key: Column | None

    @classmethod
    def of(
        cls, stream: DataFrame, *, value: str, kept: Sequence[str], keys: Sequence[str], key: Column | str | None
    ) -> "Source":
        """Return the columns of a stream.

        Raises:
            TypeError: If a list of names is something else.
            ValueError: If the stream lacks a column.
        """
        kept, keys = names_of("with_columns", kept, of="column"), names_of("keys", keys, of="column")
        needed = [value, *kept, *(["offset"] if keys else []), *(["key"] if keys and key is None else [])]
        missing = sorted(set(needed) - set(stream.columns))
        if missing:
            raise ValueError(f"the stream has no column {', '.join(missing)}; it has {', '.join(stream.columns)}")
        origin = tuple(name for name in _ORIGIN if name in stream.columns)
        column = column_named(key) if isinstance(key, str) else key
        return cls(value, tuple(stream.schema[name] for name in kept), origin, keys, column)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch with its values decoded, and its keys where rows have keys.

    Attributes:
        df: the data frame.
        source: the columns of its stream.
        rows: the type of the decoded records.
    """

    df: DataFrame
    source: Source
    rows: StructType

    @classmethod
    def of(cls, df: DataFrame, source: Source, decoded: Column, key: Column | None, subject: str) -> "Batch":
        """Return a batch of a stream.

        Raises:
            ValueError: If the reader schema is not a record.
        """
        keys = [] if key is None else [key.alias(_KEY)]
        frame = df.select("*", decoded.alias(_DECODED), *keys)
        value = frame.select(column_named(_DECODED)["value"].alias(_DECODED)).schema[_DECODED].dataType
        if isinstance(value, StructType):
            return cls(frame, source, value)
        raise ValueError(f"a table needs a record; the values of {subject} are {value.simpleString()}")

    @property
    def type(self) -> StructType:
        """The type of the rows that the table gets."""
        return StructType([*self.source.kept, *self.rows])

    def observed(self, observation: Observation) -> "Batch":
        """Return the batch; reading it counts the records that are neither rows nor deletions as `others`."""
        others = functions.count_if(~(self._is_good | self._is_deletion)).alias("others")
        return replace(self, df=self.df.observe(observation, others))

    def kept(self) -> "Batch":
        """Return the batch, decoded once and for all: a MERGE reads its source twice, and wants it deterministic."""
        return replace(self, df=self.df.localCheckpoint())

    def good_rows(self, table: StructType, names: Mapping[Path, str]) -> DataFrame:
        """Return the decoded records in the shape of a table."""
        return self.df.where(self._is_good).select(*self._shaped(table, names))

    @contextmanager
    def last_of_each_key(self, table: StructType, names: Mapping[Path, str]) -> Iterator[str]:
        """Yield the name of a view of the last record of each key, in the shape of a table, and whether it deletes."""
        keys = self._keys_in(table)
        shaped = [
            functions.when(self._is_deletion, keys[name]).otherwise(value).alias(name) if name in keys else value
            for name, value in zip(table.names, self._shaped(table, names), strict=True)
        ]
        changes = self.df.where(self._is_good | self._is_deletion).select(
            *shaped, self._is_deletion.alias(DELETED), column_named("offset").alias(_PLACE)
        )
        last_first = Window.partitionBy(*map(column_named, self.source.keys)).orderBy(column_named(_PLACE).desc())
        rank = functions.row_number().over(last_first)
        view = f"strata_follow_{uuid4().hex}"
        changes.withColumn(_PLACE, rank).where(column_named(_PLACE) == 1).drop(_PLACE).createOrReplaceTempView(view)
        try:
            yield view
        finally:
            self.df.sparkSession.catalog.dropTempView(view)

    def key_refusals(self, table: StructType) -> list[Refusal]:
        """Return why the keys of rows or of records do not identify rows of a table."""
        refusals, fields = [], {field.name.lower() for field in self.type}
        columns = {column.name.lower(): column for column in table}
        for name in self.source.keys:
            part = _part(self.df.schema[_KEY].dataType, name)
            if name.lower() not in fields or name.lower() not in columns:
                refusals.append(Refusal((name,), "is a key, and the schema has no such field", _KEY_WAYS))
            elif part is None or (len(self.source.keys) > 1 and not self._has_struct_key):
                refusals.append(Refusal((name,), "is a key, and the record's key has no such field", _KEY_WAYS))
            elif not holds(columns[name.lower()].dataType, part):
                types = columns[name.lower()].dataType.simpleString(), part.simpleString()
                why = f"is {types[0]} in the table and {types[1]} in the record's key"
                refusals.append(Refusal((name,), why, _KEY_WAYS))
        return refusals

    @property
    def dead_letters(self) -> DataFrame:
        """The records that are neither rows nor deletions, with the reason and where they were."""
        error = column_named(_DECODED)["error"]
        why = functions.lit(_NO_KEY if self.source.keys else _TOMBSTONE)
        return self.df.where(~(self._is_good | self._is_deletion)).select(
            *map(column_named, self.source.origin),
            functions.coalesce(error["reason"], why).alias("reason"),
            error["schema_id"].alias("schema_id"),
            column_named(self.source.value).alias("frame"),
        )

    @property
    def _is_good(self) -> Column:
        decoded = column_named(_DECODED)
        return decoded["error"].isNull() & decoded["value"].isNotNull()

    @property
    def _is_deletion(self) -> Column:
        if not self.source.keys:
            return functions.lit(False)
        return column_named(self.source.value).isNull() & column_named(_KEY).isNotNull()

    @property
    def _has_struct_key(self) -> bool:
        return isinstance(self.df.schema[_KEY].dataType, StructType)

    def _shaped(self, table: StructType, names: Mapping[Path, str]) -> list[Column]:
        value = column_named(_DECODED)["value"]
        fields = [value.getField(field.name).alias(field.name) for field in self.rows]
        kept = [column_named(field.name) for field in self.source.kept]
        columns = dict(zip((field.name for field in self.type), [*kept, *fields], strict=True))
        return aligned(columns.__getitem__, self.type, table, names)

    def _keys_in(self, table: StructType) -> dict[str, Column]:
        """Return the keys of deletions by the table's columns."""
        key, wanted = column_named(_KEY), {name.lower(): name for name in self.source.keys}
        return {
            column.name: (key.getField(wanted[column.name.lower()]) if self._has_struct_key else key).cast(
                column.dataType
            )
            for column in table
            if column.name.lower() in wanted
        }


def _part(data_type: DataType, name: str) -> DataType | None:
    """Return the type of a field of a struct, None if it has none; the type itself if it is not a struct."""
    if not isinstance(data_type, StructType):
        return data_type
    return next((field.dataType for field in data_type if field.name == name), None)
