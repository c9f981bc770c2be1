"""The calls `encode` and `encoder`: a column of values becomes a column of registry frames."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Required, TypedDict, Unpack, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from strata.serdes.client import Schema
from strata.serdes.framing import header_name
from strata.spark_udfs.arguments import Mode, Registry, check_options, column_of, names_of, one_of, part_of, settings_of
from strata.spark_udfs.decoding.path_choice import PathOption, require_jvm
from strata.spark_udfs.encoding.jvm_function import jvm_column, uses_jvm
from strata.spark_udfs.encoding.plan import EncodePlan, Target, WriterSource, target_of
from strata.spark_udfs.rules import RuleOption, rule_conf
from strata.spark_udfs.waits import open_client

__all__ = ["ENCODE_ERROR_TYPE", "EncodeOptions", "Encoder", "encode", "encoder"]

ENCODE_ERROR_TYPE = StructType([StructField("reason", StringType()), StructField("path", StringType())])


class Framing(StrEnum):
    """The places where a record names its schema."""

    PREFIX = "prefix"
    GUID = "guid"
    HEADER = "header"


class EncodeOptions(TypedDict, total=False):
    """The options of `encode` and `encoder`.

    Attributes:
        registry: the registry's URL, several URLs of the same registry, or a `strata.serdes.client.ClientSettings` with
            credentials, timeouts and retries. The driver asks it when the column is created; executors ask it only for
            the references of a JSON Schema.
        subject: the subject of the schema.
        schema: the schema to write with: a schema text, a `strata.serdes.Schema` with its references, or the Spark type
            of the column (such as `df.schema`), from which an Avro or JSON schema is derived. Pass exactly one of
            `schema`, `version` and `schema_id`.
        version: the version of the subject to write with, a number or `latest`.
        schema_id: the id of the schema to write with.
        register: whether to register `schema` under the subject, the default; False requires that the subject has it.
        normalize: whether to register or look up the normalized form of `schema`, by default False.
        format: `AVRO`, `JSON` or `PROTOBUF`: the format of a schema text, by default AVRO. For a schema in the
            registry, the format that it must have.
        message: the full name of the Protobuf message, by default the first of the file.
        validate: whether to validate JSON against its schema, by default True.
        framing: `prefix`, the default, writes the schema id before the payload, and `guid` the schema's GUID. `header`
            writes the payload alone; the record then needs `Encoder.headers`.
        key: whether the column holds record keys, which have another header name.
        mode: what a row that does not fit the schema becomes.
            `FAILFAST`: the task fails, the default.
            `PERMISSIVE`: null, which Kafka treats as a deletion (a tombstone).
            `DEADLETTER`: the result is `struct<frame, error: struct<reason, path>>`, in which at most one field is set.
        rules: whether the rules of the data contract run, such as encryption (CSFLE); by default False, and a schema
            with rules for writing is rejected. A dict runs them with these settings, named as for the serializers of
            `strata.serdes`: `{"rule.executors._default_.param.secret": …}`. Needs `subject` and Python workers.
        path: `auto`, the default, encodes in the JVM if `install` was called with these registry settings and the JVM
            supports the schema and its validation, else in Python workers; `jvm` raises an error instead; `python` uses
            Python workers.
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
    rules: RuleOption
    path: Literal["auto", "jvm", "python"]


def encode(column: Column | str, *, origin: Sequence[str] = (), **options: Unpack[EncodeOptions]) -> Column:
    """Encode a column as frames of the Confluent wire format, in batch queries and streams.

    A null value is a null frame. A field that the schema lacks, or a value that does not fit it, is an error that names
    the path of the field; values are never changed to fit.

    Args:
        column: the column of values; for a record schema, a struct with its fields.
        origin: names of columns whose values a FAILFAST error shows, such as `["topic", "partition", "offset"]`.
        **options: see `EncodeOptions`; `registry` and exactly one of `schema`, `version` and `schema_id` are required.

    Returns:
        A binary column, or the struct that `EncodeOptions.mode` describes in mode `DEADLETTER`.

    Raises:
        UnsupportedType: If the Spark type given as `schema` has no schema; the error names the field.
        SchemaError: If the schema cannot be used, or has data contract rules for writing and `rules` is False.
        RuleError: If a rule cannot run, such as without a data key.
        RegistryError: If the registry does not have the schema, or refuses to register it.
        RegistryUnavailable: If the registry does not answer.
        NotImplementedError: If the path is Python's, and the installed Spark is older than 4.1 and has no `arrow_udf`;
            use `Encoder.with_column`.
        NotInstalled: If the path is `jvm`, and `install` was not called for this registry.
        RuntimeError: If the column is given by name, and there is no Spark session.
        TypeError: If an option is unknown or has the wrong type.
        ValueError: If the options contradict each other, or a value is not allowed.
    """
    values = column_of(column)  # check the column before registering a schema
    return encoder(**options)(values, origin=origin)


@dataclass(frozen=True, slots=True)
class Encoder:
    """A function that encodes columns with one schema of the registry.

    Attributes:
        plan: the schema and everything else that executors need.
        header: the name and bytes of the record header that names the schema; None unless the framing is `header`.
        path: which path its columns take, see `EncodeOptions`.
    """

    plan: EncodePlan
    header: tuple[str, bytes] | None
    path: PathOption = PathOption.AUTO

    @property
    def schema_id(self) -> int:
        """Return the id of the schema."""
        return self.plan.target.identity.id

    @property
    def schema(self) -> str:
        """Return the schema text."""
        return self.plan.target.schema.text

    @property
    def headers(self) -> Column:
        """Return the headers for every record, for Kafka's sink: `array<struct<key: string, value: binary>>`."""
        spark_type = "array<struct<key:string,value:binary>>"
        if self.header is None:
            return functions.array().cast(spark_type)
        name, value = map(functions.lit, self.header)
        return functions.array(functions.struct(name, value)).cast(spark_type)

    def __call__(self, column: Column | str, *, origin: Sequence[str] = ()) -> Column:
        """Return the column of frames.

        Args:
            column: the column of values.
            origin: names of columns whose values a FAILFAST error shows.

        Raises:
            NotImplementedError: If the installed Spark is older than 4.1 and has no `arrow_udf`; use `with_column`.
            NotInstalled: If the path is `jvm`, and `install` was not called for this registry.
            RuntimeError: If the column is given by name, and there is no Spark session.
            TypeError: If `origin` is a text instead of a list of names.
        """
        plan = self._with_origin(origin)
        columns = [column_of(column), *map(functions.col, plan.origin)]
        return jvm_column(plan, columns) if uses_jvm(self.path, plan) else _call(plan, columns)

    def with_column(self, df: DataFrame, name: str, column: Column | str, *, origin: Sequence[str] = ()) -> DataFrame:
        """Return `df.withColumn(name, encode(column))`, on Spark 4.0 too.

        On Spark 4.0 the whole data frame passes through Python workers (`mapInArrow`), so drop unneeded columns first.

        Args:
            df: the data frame, batch or stream.
            name: the name of the new column; an existing column of that name is replaced.
            column: the column of values.
            origin: names of columns whose values a FAILFAST error shows.

        Raises:
            RuntimeError: If the column is given by name, and there is no Spark session.
            TypeError: If `origin` is a text instead of a list of names.
        """
        if _has_arrow_udf() or uses_jvm(self.path, self.plan):
            return df.withColumn(name, self(column, origin=origin))
        plan = self._with_origin(origin)
        shown = [functions.col(column_).alias(f"origin{number}") for number, column_ in enumerate(plan.origin)]
        shown_frame = df.withColumn(name, functions.struct(column_of(column).alias("value"), *shown))
        return _mapped(plan, shown_frame, name)

    def _with_origin(self, origin: Sequence[str]) -> EncodePlan:
        """Return the plan with the columns that its errors show."""
        names = names_of("origin", origin, of="column")
        return replace(self.plan, origin=names if self.plan.mode is Mode.FAILFAST else ())


def encoder(**options: Unpack[EncodeOptions]) -> Encoder:
    """Return an `Encoder`, to encode several columns with one schema or to get the record headers.

    Args:
        **options: see `EncodeOptions`; `registry` and exactly one of `schema`, `version` and `schema_id` are required.

    Raises:
        UnsupportedType: If the Spark type given as `schema` has no schema; the error names the field.
        SchemaError: If the schema cannot be used, or has data contract rules for writing and `rules` is False.
        RuleError: If a rule cannot run, such as without a data key.
        RegistryError: If the registry does not have the schema, or refuses to register it.
        RegistryUnavailable: If the registry does not answer.
        TypeError: If an option is unknown or has the wrong type.
        ValueError: If the options contradict each other, or a value is not allowed.
    """
    check_options(options, EncodeOptions)
    mode = one_of(Mode, "mode", options.get("mode", "FAILFAST"))
    path = one_of(PathOption, "path", options.get("path", "auto"))
    framing = one_of(Framing, "framing", options.get("framing", "prefix"))
    settings = settings_of(options["registry"])
    conf, is_key = rule_conf(options.get("rules", False)), options.get("key", False)
    if conf is not None:
        _check_rules(options.get("subject"), path)
    if path is PathOption.JVM:  # check before registering a schema
        require_jvm(settings)
    source = part_of(options, WriterSource)
    message, with_guid, validate = options.get("message"), framing is not Framing.PREFIX, options.get("validate", True)
    with open_client(settings) as client:
        target = target_of(client, source, message=message, with_guid=with_guid, runs_rules=conf is not None)
    prefix, header = _framed(target, framing, key=is_key)
    plan = EncodePlan(settings, target, source.subject, prefix, mode, validate)
    if conf is not None:
        from strata.spark_udfs.encoding.ruled_rows import ask_for_rules  # needs the extra of the format

        rules = ask_for_rules(settings, target, source.subject or "", conf, validate=validate, is_key=is_key)
        plan = replace(plan, rules=rules)
    return Encoder(plan, header, path)


def _check_rules(subject: str | None, path: PathOption) -> None:
    """Check the options of an encode with rules, before a schema is registered."""
    if subject is None:
        raise ValueError("rules needs subject")
    if path is PathOption.JVM:
        raise ValueError("path='jvm' does not encode with rules")


def _framed(target: Target, framing: Framing, *, key: bool) -> tuple[bytes, tuple[str, bytes] | None]:
    """Return the prefix of each payload, and the record header."""
    if framing is Framing.PREFIX:
        return target.identity.id_to_bytes(), None
    named = target.identity.guid_to_bytes()
    if framing is Framing.GUID:
        return named, None
    return b"", (header_name("key" if key else "value"), named)


def _has_arrow_udf() -> bool:
    return hasattr(functions, "arrow_udf")


def _call(plan: EncodePlan, columns: Sequence[Column]) -> Column:
    """Return a call that Spark does not duplicate, as in `decoding/paths.py`."""
    if not _has_arrow_udf():
        raise NotImplementedError(
            "encode needs Spark 4.1 or later, for arrow_udf; on this version, "
            "use encoder(…).with_column(df, name, column)"
        )

    def encode_arrow(values: pa.Array, *origin: pa.Array) -> pa.Array:
        from strata.spark_udfs.encoding.row_encoder import row_encoder

        return row_encoder(plan).encode(values, origin)

    function = cast("Any", functions).arrow_udf(encode_arrow, _type(plan))
    return cast("Column", function.asNondeterministic()(*columns))


def _mapped(plan: EncodePlan, df: DataFrame, name: str) -> DataFrame:
    """Replace a struct of a value and its origin by the frame, using `mapInArrow`."""
    places = [place for place, column in enumerate(df.columns) if column == name]
    spark_type = StructType([StructField(name, _type(plan)) if field.name == name else field for field in df.schema])

    def encode_batches(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        from strata.spark_udfs.encoding.row_encoder import row_encoder

        write = row_encoder(plan).encode
        for batch in batches:
            columns = batch.columns
            for place in places:
                value, *origin = columns[place].flatten()
                columns[place] = write(value, origin)
            yield pa.RecordBatch.from_arrays(columns, names=spark_type.names)

    numbered = df.toDF(
        *map(str, range(len(spark_type)))
    )  # mapInArrow supports neither names with dots nor duplicate names
    return numbered.mapInArrow(encode_batches, spark_type)


def _type(plan: EncodePlan) -> DataType:
    """Return the type of the result."""
    if plan.mode is not Mode.DEADLETTER:
        return BinaryType()
    return StructType([StructField("frame", BinaryType()), StructField("error", ENCODE_ERROR_TYPE)])
