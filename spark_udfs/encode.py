"""The public call that turns a column of values into registry frames."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Required, TypedDict, Unpack, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from serdes.client import RegistryClient, Schema
from serdes.framing import header_name
from spark_udfs.encode_plan import Target, WritePlan, WriterSource, target_of
from spark_udfs.headers import column_of
from spark_udfs.plan import Mode, Registry, one_of, settings_of

__all__ = ["ENCODE_ERROR_TYPE", "Encoder", "Options", "encode", "encoder"]

ENCODE_ERROR_TYPE = StructType([StructField("reason", StringType()), StructField("path", StringType())])


class Framing(StrEnum):
    """Where the schema of a record is written."""

    PREFIX = "prefix"
    GUID = "guid"
    HEADER = "header"


class Options(TypedDict, total=False):
    """What `encode` and `encoder` take.

    Attributes:
        registry: the registry's URL, several of the same registry, or a `serdes.client.ClientSettings` with
            credentials, time-outs and retries. It is asked on the driver alone, when the column is made.
        subject: the subject of the schema.
        schema: what to write with: a schema text, a `serdes.client.Schema` with its references, or the Spark type of
            the column, such as `df.schema`, of which an Avro or JSON schema is made.
        version: instead, the version of the subject, a number or `latest`; or
        schema_id: its id.
        register: register `schema` under the subject; False means that it must be there.
        normalize: in its normalised form.
        format: `AVRO`, `JSON` or `PROTOBUF`: of a schema text, AVRO unless told. One of the registry has its own.
        message: the full name of the Protobuf message, the first of the file unless told.
        validate: hold JSON against its schema, which is the default.
        framing: `prefix` writes the schema's id before the payload, `guid` its GUID; `header` writes the payload alone,
            and the record needs `Encoder.headers`.
        key: the records' keys are written, whose header is another one.
        mode: what becomes of a row that does not fit the schema.
            `FAILFAST`: the task fails, which is the default.
            `PERMISSIVE`: it gives null, which in Kafka is a deletion.
            `DEADLETTER`: the result is `struct<frame, error: struct<reason, path>>`, of which one is set.
    """

    registry: Required[Registry]
    subject: str | None
    schema: str | Schema | DataType | None
    version: int | Literal["latest"] | None
    schema_id: int | None
    register: bool
    normalize: bool
    format: Literal["AVRO", "JSON", "PROTOBUF"] | None
    message: str | None
    validate: bool
    framing: Literal["prefix", "guid", "header"]
    key: bool
    mode: Literal["DEADLETTER", "PERMISSIVE", "FAILFAST"]


def encode(column: Column | str, *, origin: Sequence[str] = (), **options: Unpack[Options]) -> Column:
    """Encode a column as registry frames, for batch and streams.

    A null value is a null frame. What the schema does not have, or a value that does not fit it, is refused with the
    path of the field; nothing is bent.

    Args:
        column: the column of values; for a schema that is a record, a struct with its fields.
        origin: names of columns that a FAILFAST error tells.
        **options: see `Options`; `registry` is needed, and one of `schema`, `version`, `schema_id`.

    Raises:
        UnsupportedType: the Spark type given as `schema` has no schema; the error says where.
        SchemaError: the schema cannot be used, or has rules that writing would have to run.
        RegistryError: the registry does not have the schema, or refuses to register it.
        RegistryUnavailable: the registry does not answer.
        NotImplementedError: the installed Spark has no `arrow_udf`: it came with 4.1. On 4.0 there is
            `Encoder.with_column`.
        ValueError: the options do not fit each other.
    """
    values = column_of(column)  # before anything is registered
    return encoder(**options)(values, origin=origin)


@dataclass(frozen=True, slots=True)
class Encoder:
    """What writes columns with one schema, which the registry knows.

    Attributes:
        plan: what was decided.
        header: what a header of the record says of the schema; None unless the framing is `header`.
    """

    plan: WritePlan
    header: tuple[str, bytes] | None

    @property
    def schema_id(self) -> int:
        """The id of the schema."""
        return self.plan.target.identity.id

    @property
    def schema(self) -> str:
        """The schema text."""
        return self.plan.target.schema.text

    @property
    def headers(self) -> Column:
        """The headers of every record, as Kafka's sink takes them: `array<struct<key: string, value: binary>>`."""
        pairs = [] if self.header is None else [self.header]
        made = [
            functions.struct(functions.lit(name).alias("key"), functions.lit(value).alias("value"))
            for name, value in pairs
        ]
        return functions.array(*made).cast("array<struct<key:string,value:binary>>")

    def __call__(self, column: Column | str, *, origin: Sequence[str] = ()) -> Column:
        """The column of frames, see `encode`."""
        plan = self._telling(origin)
        return _call(plan, [column_of(column), *map(functions.col, plan.origin)])

    def with_column(self, df: DataFrame, name: str, column: Column | str, *, origin: Sequence[str] = ()) -> DataFrame:
        """`df.withColumn(name, encode(column))`, also on Spark 4.0.

        There the whole data frame goes through Python workers, by `mapInArrow`: leave out before what is not needed.
        """
        if _has_arrow_udf():
            return df.withColumn(name, self(column, origin=origin))
        plan = self._telling(origin)
        told = [functions.col(one).alias(f"origin{number}") for number, one in enumerate(plan.origin)]
        given = df.withColumn(name, functions.struct(column_of(column).alias("value"), *told))
        return _mapped(plan, given, name)

    def _telling(self, origin: Sequence[str]) -> WritePlan:
        """The plan, with the columns that its errors tell."""
        if isinstance(origin, str):
            raise TypeError(f"origin is a list of column names, not the text {origin!r}")
        return replace(self.plan, origin=tuple(origin) if self.plan.mode is Mode.FAILFAST else ())


def encoder(**options: Unpack[Options]) -> Encoder:
    """Decide on an encode once, for several columns or for the headers of the records; see `encode`."""
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        raise TypeError(f"no option is called {', '.join(unknown)}; allowed are {', '.join(Options.__annotations__)}")
    given: Any = {
        "registry": None,
        "mode": "FAILFAST",
        "framing": "prefix",
        "key": False,
        "message": None,
        "validate": True,
    } | options
    mode, framing = one_of(Mode, "mode", given.pop("mode")), one_of(Framing, "framing", given.pop("framing"))
    key, message, validate = (given.pop(name) for name in ("key", "message", "validate"))
    settings = settings_of(given.pop("registry"))
    source = WriterSource(**given)
    with RegistryClient.from_settings(settings) as client:
        target = target_of(client, source, message=message, with_guid=framing is not Framing.PREFIX)
    prefix, header = _framed(target, framing, key=key)
    return Encoder(WritePlan(settings, target, source.subject, prefix, mode, validate), header)


def _framed(target: Target, framing: Framing, *, key: bool) -> tuple[bytes, tuple[str, bytes] | None]:
    """What stands before payloads, and in a header."""
    if framing is Framing.PREFIX:
        return target.identity.id_to_bytes(), None
    named = target.identity.guid_to_bytes()
    if framing is Framing.GUID:
        return named, None
    return b"", (header_name("key" if key else "value"), named)


def _has_arrow_udf() -> bool:
    return hasattr(functions, "arrow_udf")


def _call(plan: WritePlan, columns: Sequence[Column]) -> Column:
    """A call that is not to be repeated, as that of the decode."""
    if not _has_arrow_udf():
        raise NotImplementedError(
            "a column of encode needs Spark 4.1 or later, for its arrow_udf; on this one "
            "encoder(…).with_column(df, name, column) adds the column to a data frame"
        )

    def encode_arrow(values: pa.Array, *origin: pa.Array) -> pa.Array:
        from spark_udfs.encode_executor import batch_encoder

        return batch_encoder(plan).encode(values, origin)

    function = cast("Any", functions).arrow_udf(encode_arrow, _type(plan))
    return cast("Column", function.asNondeterministic()(*columns))


def _mapped(plan: WritePlan, df: DataFrame, name: str) -> DataFrame:
    """The data frame with frames in place of a struct, of a value and of what errors tell beside it."""
    places = [place for place, one in enumerate(df.columns) if one == name]
    kind = StructType([StructField(name, _type(plan)) if one.name == name else one for one in df.schema])

    def encode_batches(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        from spark_udfs.encode_executor import batch_encoder

        write = batch_encoder(plan).encode
        for batch in batches:
            columns = batch.columns
            for place in places:
                value, *origin = columns[place].flatten()
                columns[place] = write(value, origin)
            yield pa.RecordBatch.from_arrays(columns, names=kind.names)

    numbered = df.toDF(*map(str, range(len(kind))))  # mapInArrow finds no names with dots, and none that is there twice
    return numbered.mapInArrow(encode_batches, kind)


def _type(plan: WritePlan) -> DataType:
    """The type of what comes out."""
    if plan.mode is not Mode.DEADLETTER:
        return BinaryType()
    return StructType([StructField("frame", BinaryType()), StructField("error", ENCODE_ERROR_TYPE)])
