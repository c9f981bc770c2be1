"""`follow`: a streaming query that keeps a table in step with its topic while the schema changes.

For each micro-batch the follower takes the newest version of the subject as reader schema, changes the table as far as
no value is cast, and writes the good rows and then the dead letters, each in one commit with a mark (`formats.Mark`).
Spark repeats a batch that it has not noted as done. A repeated batch is read with the version that its first mark
names, so that no record is good in one attempt and dead in the other, and a part whose mark is there is left out.

The batch was planned before the version was asked for. So that version is not older than the writer of any record of
the batch that registered before it produced.

Rules of this file: it decides the order of things; `changes` decides what a table can become, `batches` shapes rows,
`formats` speaks SQL.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypedDict, Unpack, get_args

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from strata.serdes.client import RegistryClient
from strata.serdes.errors import RegistryUnavailable
from strata.serdes.model import RegisteredSchema
from strata.serdes.references import resolve
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Registry, check_options, settings_of
from strata.spark_udfs.decoding.columns import decode
from strata.spark_udfs.evolution import run_stream
from strata.spark_udfs.rules import RuleOption
from strata.spark_udfs.tables.batches import Batch, Source
from strata.spark_udfs.tables.changes import ChangeRefused, Comparison, OnChange, Path, Refusal, compare_types
from strata.spark_udfs.tables.formats import FORMATS, Mark, TableFormat, identifier, marked, merge, statement
from strata.spark_udfs.tables.notes import Notes, notes_of
from strata.spark_udfs.waits import open_client

__all__ = ["FollowOptions", "follow"]

TableFormatName = Literal["iceberg", "delta"]

_START_S: Final = 60.0
_DECODE_OPTIONS: Final = ("headers", "message", "columns", "rules", "union_names", "typed_formats", "path")

_log = logging.getLogger("strata.spark_udfs")


class FollowOptions(TypedDict, total=False):
    """The further options of `follow`.

    Attributes:
        keys: the columns of the table that identify a row. The table then holds the newest record of each key: a
            record replaces the row of its key, and a record without value (a tombstone) deletes it. By default every
            record is appended.
        key: the record's key as a column: a struct with the fields of `keys`, or the value of the only one. By default
            the column `key` is decoded with the newest version of the subject whose name ends in `-key` in place of
            `-value`.
        on_change: `evolve` changes the table where no value is cast, and refuses the rest. `refuse` never changes the
            table. `new_column` gives values that the column cannot hold a column of their own, such as `delay_double`.
        dead_letters: the table of dead letters; by default the name of the table with `_dead_letters` at its end.
        with_columns: columns of the stream that the table gets as well, such as `["offset"]`.
        trigger: the arguments of the query's trigger, such as `{"availableNow": True}`.
        query_name: the name of the query.
        value: the column of frames.
        headers: as for `decode`.
        message: as for `decode`.
        columns: as for `decode`.
        rules: as for `decode`.
        union_names: as for `decode`.
        typed_formats: as for `decode`.
        path: as for `decode`.
    """

    keys: Sequence[str] | None
    key: Column | str | None
    on_change: OnChange
    dead_letters: str | None
    with_columns: Sequence[str]
    trigger: Mapping[str, Any]
    query_name: str | None
    value: str
    headers: Column | str | None
    message: str | None
    columns: Sequence[str] | None
    rules: RuleOption
    union_names: Literal["member", "type"]
    typed_formats: bool
    path: Literal["auto", "jvm", "python"]


def follow(
    stream: DataFrame,
    *,
    table: str,
    subject: str,
    registry: Registry,
    checkpoint: str,
    format: TableFormatName,  # noqa: A002 - the word of Spark's writers
    **options: Unpack[FollowOptions],
) -> StreamingQuery:
    """Write a stream of frames to a table, which follows the newest version of a subject, until the query ends.

    A new field becomes a column, with the field's documentation as its comment; a column gets wider where the format
    can do it; a field with an alias renames its column where the format tracks columns by id. A change that would cast
    a value is refused before anything is written, and the checkpoint stays where it was. A field that the schema has no
    longer leaves its column, which is null from then on.

    A record that cannot be decoded goes to the table of dead letters, with its bytes, the reason and where it was. Each
    record is in one of the two tables once, even if the driver or an executor is killed at any moment.

    Args:
        stream: a streaming data frame of frames, such as that of Kafka's source.
        table: the name of the table, which is made if it does not exist.
        subject: the subject whose newest version is the reader schema.
        registry: the registry, as for `decode`.
        checkpoint: the folder of the query's checkpoint, which no other query uses.
        format: `iceberg` or `delta`.
        **options: see `FollowOptions`.

    Returns:
        The query that ended, because it was stopped or had read everything.

    Raises:
        ChangeRefused: If the table cannot follow a version, at the start or while the query runs.
        StreamingQueryException: If the query failed for another reason.
        SerdeError: If the registry does not have the subject, or does not answer at the start.
        TypeError: If an option is unknown or has the wrong type.
        ValueError: If an option has a value that is not allowed, or the stream lacks a column.
    """
    check_options(options, FollowOptions)
    if format not in get_args(TableFormatName):
        raise ValueError(f"format is {format!r}; allowed are {', '.join(get_args(TableFormatName))}")
    if not stream.isStreaming:
        raise ValueError("expected a streaming data frame; write a batch with decode and the table's own writer")
    source = Source.of(
        stream,
        value=options.get("value", "value"),
        kept=options.get("with_columns", ()),
        keys=options.get("keys") or (),
        key=options.get("key"),
    )
    follower = _Follower(source, settings_of(registry), subject, table, FORMATS[format], options)
    follower.prepare(stream)

    def start(_reader: RegisteredSchema) -> StreamingQuery:
        writer = stream.writeStream.foreachBatch(follower.write).option("checkpointLocation", checkpoint)
        if options.get("trigger"):
            writer = writer.trigger(**options["trigger"])
        if options.get("query_name"):
            writer = writer.queryName(str(options["query_name"]))
        return follower.started(writer)

    try:
        return run_stream(start, registry=registry, subject=subject)
    except StreamingQueryException as error:
        if follower.refusal is None:
            raise
        raise follower.refusal from error


@dataclass(frozen=True, slots=True)
class _Reader:
    """A version as reader schema: the columns that decode with it, and what the schema says of its fields."""

    version: int
    decoded: Column
    key: Column | None
    notes: Notes


class _Follower:
    """What `foreachBatch` calls."""

    def __init__(
        self,
        source: Source,
        settings: ClientSettings,
        subject: str,
        table: str,
        table_format: TableFormat,
        options: FollowOptions,
    ) -> None:
        self._source = source
        self._settings = settings
        self._subject = subject
        self._table = table
        self._dead_table = options.get("dead_letters") or _beside(table)
        self._format = table_format
        self._on_change: OnChange = options.get("on_change", "evolve")
        options_: Mapping[str, Any] = options
        self._decode = {name: options_[name] for name in _DECODE_OPTIONS if name in options_}
        self._client = RegistryClient.from_settings(replace(settings, wait=0))
        self._reader: _Reader | None = None
        self._query = ""
        self._has_begun = threading.Event()
        self._is_first = True
        self._caller: SparkSession | None = None
        self.refusal: ChangeRefused | None = None

    def prepare(self, stream: DataFrame) -> None:
        """Make the tables unless they exist.

        Raises:
            ChangeRefused: If the table cannot follow the newest version.
        """
        spark = self._caller = stream.sparkSession
        with open_client(self._settings) as client:
            self._reader = self._reader_of(client, client.get_version(self._subject))
        batch = self._batch(stream, self._reader)
        if self._exists(spark):
            _, comparison = self._compared(spark, self._reader, batch.type)
            self._refuse(comparison.refusals)
        else:
            rules = self._format.rules(spark, None)
            self._refuse(compare_types(StructType(), batch.type, rules, "evolve").refusals)
            self._format.create(spark, self._table, batch.type, self._reader.notes.docs)
        self._refuse(batch.key_refusals(self._table_type(spark)))
        self._format.create(spark, self._dead_table, batch.dead_letters.schema, {})

    def started(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start the query; its first batch may be a repetition."""
        self._has_begun.clear()
        self._is_first = True
        query = writer.start()
        self._query = str(query.id)
        self._has_begun.set()
        return query

    def write(self, df: DataFrame, number: int) -> None:
        """Write a batch, or what is left of it after a kill.

        Raises:
            ChangeRefused: If the table cannot follow; nothing was written.
        """
        try:
            self._write(df, number)
        except ChangeRefused as refusal:
            self.refusal = refusal
            raise

    def _write(self, df: DataFrame, number: int) -> None:
        if not self._has_begun.wait(_START_S):
            raise TimeoutError("the query did not start")
        spark = df.sparkSession
        rows_mark, dead_mark = self._earlier_marks(spark, number)
        reader = self._reader_for(rows_mark or dead_mark)
        mark = Mark(self._query, number, reader.version)
        batch = self._batch(df, reader)
        has_others = True
        if rows_mark is None:
            has_others = self._write_rows(spark, batch, reader, mark)
        if has_others and dead_mark is None:
            self._format.append(batch.dead_letters, self._dead_table, mark)
        if self._caller is not None:  # batches run in a session of their own, whose catalogs cache for themselves
            for table in (self._table, self._dead_table):
                self._format.refresh(self._caller, table)

    def _earlier_marks(self, spark: SparkSession, number: int) -> tuple[Mark | None, Mark | None]:
        """Return the marks that an earlier attempt at this batch left; only a query's first batch is a repetition."""
        if not self._is_first:
            return None, None
        self._is_first = False
        rows, dead = (self._format.last_mark(spark, table, self._query) for table in (self._table, self._dead_table))
        return rows if rows and rows.batch >= number else None, dead if dead and dead.batch >= number else None

    def _reader_for(self, first: Mark | None) -> _Reader:
        """Return the reader of a batch: the one of its first attempt, or else the newest version."""
        if first is not None:
            if self._reader is None or self._reader.version != first.version:
                with open_client(self._settings) as client:
                    self._reader = self._reader_of(client, client.get_version(self._subject, first.version))
            return self._reader
        try:
            newest = self._client.get_version(self._subject)
        except RegistryUnavailable as error:
            if self._reader is None:
                raise
            _log.warning("still reading %s with version %s: %s", self._subject, self._reader.version, error)
            return self._reader
        if self._reader is None or newest.version != self._reader.version:
            self._reader = self._reader_of(self._client, newest)
            _log.info("now reading %s with version %s", self._subject, newest.version)
        return self._reader

    def _reader_of(self, client: RegistryClient, version: RegisteredSchema) -> _Reader:
        number = version.version or 0
        decoded = decode(
            self._source.value, registry=self._settings, subject=self._subject, version=number, **self._decode
        )
        references = tuple(part.text for part in resolve(client, version.schema, self._subject).values())
        return _Reader(number, decoded, self._key_column(), notes_of(version.schema, references))

    def _key_column(self) -> Column | None:
        """Return the record's key as a column, null where it cannot be decoded; None if the table has no keys."""
        if not self._source.keys:
            return None
        if self._source.key is not None:
            return self._source.key
        subject = f"{self._subject.removesuffix('-value')}-key"
        return decode("key", registry=self._settings, subject=subject, mode="PERMISSIVE", key=True)

    def _batch(self, df: DataFrame, reader: _Reader) -> Batch:
        return Batch.of(df, self._source, reader.decoded, reader.key, self._subject)

    def _write_rows(self, spark: SparkSession, batch: Batch, reader: _Reader, mark: Mark) -> bool:
        """Change the table if it must follow, write the good rows, and return whether there are other records."""
        table_type, names = self._change(spark, reader, batch.type)
        if not self._source.keys:
            observed = Observation()
            good = batch.observed(observed).good_rows(table_type, names)
            self._format.append(good, self._table, mark)
            return bool(observed.get["others"])
        self._refuse(batch.key_refusals(table_type))
        kept = batch.kept()
        with marked(spark, self._format, mark), kept.last_of_each_key(table_type, names) as view:
            spark.sql(merge(self._table, view, table_type.names, self._source.keys))
        return not kept.dead_letters.isEmpty()

    def _change(
        self, spark: SparkSession, reader: _Reader, wanted: StructType
    ) -> tuple[StructType, Mapping[Path, str]]:
        """Make the table hold rows of a type, and return its type and which fields have another name there.

        Raises:
            ChangeRefused: If it cannot; it is as it was.
        """
        table_type, comparison = self._compared(spark, reader, wanted)
        self._refuse(comparison.refusals)
        for change in comparison.changes:
            told = statement(self._table, change, reader.notes.docs)
            _log.info("version %s of %s: %s", reader.version, self._subject, told)
            self._format.change(spark, self._table, change, reader.notes)
        if comparison.changes:
            table_type, comparison = self._compared(spark, reader, wanted)
        if comparison.changes or comparison.refusals:
            raise RuntimeError(f"the table {self._table} was changed by another writer meanwhile; start again")
        return table_type, comparison.names

    def _compared(self, spark: SparkSession, reader: _Reader, wanted: StructType) -> tuple[StructType, Comparison]:
        """Return the type of the table as it is now, and how the rows differ from it."""
        rules, table_type = self._format.rules(spark, self._table), self._table_type(spark)
        return table_type, compare_types(table_type, wanted, rules, self._on_change, reader.notes.aliases)

    def _table_type(self, spark: SparkSession) -> StructType:
        """Return the type of the table as it is now, also if another writer has changed it."""
        self._format.refresh(spark, self._table)
        return spark.table(identifier(self._table)).schema

    def _exists(self, spark: SparkSession) -> bool:
        try:
            return bool(spark.table(identifier(self._table)).schema)
        except AnalysisException:
            return False  # or a fault that making it will show

    def _refuse(self, refusals: Sequence[Refusal]) -> None:
        if refusals:
            raise ChangeRefused(self._table, refusals)


def _beside(table: str) -> str:
    """Return the name of the table of dead letters beside a table."""
    return f"{table[:-1]}_dead_letters`" if table.endswith("`") else f"{table}_dead_letters"
