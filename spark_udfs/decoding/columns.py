"""The call `decode`: a column of registry frames becomes a column of values."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, Required, TypedDict, Unpack

from pyspark.sql import Column, functions

from strata.serdes.client import Schema
from strata.serdes.model import JSON
from strata.spark_udfs.arguments import Mode, Registry, check_options, column_of, names_of, one_of, part_of, settings_of
from strata.spark_udfs.decoding.headers import with_header
from strata.spark_udfs.decoding.path_choice import PathOption
from strata.spark_udfs.decoding.paths import DecodePath, choose_path
from strata.spark_udfs.decoding.plan import DecodePlan, ReaderSource, plan_decode, reader_type
from strata.spark_udfs.rules import RuleOption, rule_conf

__all__ = ["DecodeOptions", "decode", "planned"]


class UnionNames(StrEnum):
    """The ways of naming the members of a union."""

    MEMBER = "member"
    TYPE = "type"


class DecodeOptions(TypedDict, total=False):
    """The options of `decode`.

    Attributes:
        registry: the registry's URL, several URLs of the same registry, or a `strata.serdes.client.ClientSettings` with
            credentials, timeouts and retries.
        reader_schema: the reader schema as text, or as a `strata.serdes.Schema` if it has references. Pass exactly one
            of `reader_schema`, `subject` and `schema_id`.
        subject: the subject to take the reader schema from.
        version: the version within `subject`, a number or `latest` (the default).
        schema_id: the schema id of the reader schema.
        format: the format of a schema text, by default AVRO. For a schema in the registry, the format that it must
            have.
        message: for Protobuf, the full name of the message to read, by default the first of the reader schema. A frame
            with another message is a dead letter.
        validate: for JSON, validate each payload against its writer schema, instead of checking the column types only.
            By default False.
        mode: what a frame that cannot be decoded becomes.
            `DEADLETTER`: the result is `struct<value, error: struct<reason, schema_id, frame>>`, in which at most one
            field is set; `split_dead_letters` splits it into two data frames. The default.
            `PERMISSIVE`: null.
            `FAILFAST`: the task fails.
        columns: the fields of the reader schema to decode, in this order; the others are skipped, unchecked.
        origin: names of columns whose values a FAILFAST error shows, such as `["topic", "partition", "offset"]`.
        headers: the column of record headers of Kafka's source (option `includeHeaders`). A record whose header
            `__value_schema_id` names its schema is read by that header and has no frame prefix; other records are
            frames.
        key: the column holds record keys, whose header is `__key_schema_id`. By default False.
        rules: whether the rules of data contracts run: decryption (CSFLE), migrations from the writer's version to the
            reader's, and rules for reading; by default False. A dict runs them with these settings, named as for the
            deserializers of `strata.serdes`: `{"rule.executors._default_.param.secret": …}`. A record that a rule
            fails on is a dead letter. Needs `subject` and Python workers.
        union_names: what the members of a union of several types are called: `member` (`member0`, `member1`, …, as with
            `from_avro`), or `type`, by which each has the name of its type, such as `int` or that of its record. Only
            Avro has such columns: branches of other formats are the fields of a oneof, or JSON text.
        typed_formats: for JSON, whether strings whose `format` is `date-time`, `date`, `time` or `uuid` become a
            timestamp, a date, a bigint of microseconds since midnight, and a string that is a UUID. A record with
            another value is not decoded (reason `invalid date-time`). By default False: they are strings.
        path: `jvm` decodes inside Spark's executors; it needs `install` called with the same registry settings, and
            does not validate JSON or decode a few parts of Protobuf. `python` decodes in Python workers, over Arrow.
            `auto`, the default, uses `jvm` if it can. The logger `strata.spark_udfs` says which path was chosen and
            why.
    """

    registry: Required[Registry]
    reader_schema: str | Schema | None
    subject: str | None
    version: int | Literal["latest"]
    schema_id: int | None
    format: Literal["AVRO", "PROTOBUF", "JSON"] | None
    message: str | None
    validate: bool
    mode: Literal["DEADLETTER", "PERMISSIVE", "FAILFAST"]
    columns: Sequence[str] | None
    origin: Sequence[str]
    headers: Column | str | None
    key: bool
    rules: RuleOption
    union_names: Literal["member", "type"]
    typed_formats: bool
    path: Literal["auto", "jvm", "python"]


def decode(column: Column | str, **options: Unpack[DecodeOptions]) -> Column:
    """Decode frames of the Confluent wire format (magic byte, schema id or GUID, payload) into one reader schema.

    Executors look writer schemas up when they meet their ids, including those registered while the query runs. The
    reader schema is fixed by this call: to read with a newer one, restart the query from its checkpoint (`run_stream`
    does).

    Args:
        column: the binary column of frames, such as `value` of Spark's Kafka source. A null frame gives a null value.
        **options: see `DecodeOptions`; `registry` and exactly one of `reader_schema`, `subject` and `schema_id` are
            required.

    Returns:
        A column of the reader schema's Spark type, or the struct that `DecodeOptions.mode` describes in mode
        `DEADLETTER`.

    Raises:
        UnsupportedSchema: If the reader schema has no Spark type; the error names the field.
        SchemaError: If the reader schema is invalid.
        RegistryError: If the registry does not have the reader schema.
        RegistryUnavailable: If the registry does not answer.
        NotInstalled: If `path` is `jvm`, and `install` was not called for these settings.
        MissingExtra: If the extra of the reader schema's format is not installed.
        RuntimeError: If a column is given by name, and there is no Spark session.
        TypeError: If an option is unknown or has the wrong type.
        ValueError: If the options contradict each other, a value is not allowed, or `columns` names an unknown field.
    """
    frames, plan, path = planned(column, options)
    decoded = path(plan, [frames, *map(functions.col, plan.origin)])
    if not options.get("typed_formats", False):
        return decoded
    from strata.spark_udfs.decoding.json_formats import with_formats  # it needs the extra of JSON

    return with_formats(decoded, plan, frames, has_headers=options.get("headers") is not None)


def planned(column: Column | str, options: DecodeOptions) -> tuple[Column, DecodePlan, DecodePath]:
    """Return the column of frames, with headers if they are asked for, and how to decode it; see `decode`."""
    check_options(options, DecodeOptions)
    plan = _plan(options)
    if options.get("typed_formats", False) and (plan.payload is None or plan.payload.schema.format != JSON):
        raise ValueError("typed_formats needs a JSON Schema as reader schema")
    reader_type(plan)  # reject what Spark cannot express here, not in a task
    frames, headers = column_of(column), options.get("headers")
    if headers is not None:
        frames = with_header(frames, column_of(headers), key=options.get("key", False))
    return frames, plan, choose_path(one_of(PathOption, "path", options.get("path", "auto")), plan)


def _plan(options: DecodeOptions) -> DecodePlan:
    mode = one_of(Mode, "mode", options.get("mode", "DEADLETTER"))
    return plan_decode(
        settings_of(options["registry"]),
        part_of(options, ReaderSource),
        mode=mode,
        columns=options.get("columns"),
        origin=names_of("origin", options.get("origin", ()), of="column") if mode is Mode.FAILFAST else (),
        message=options.get("message"),
        validate=options.get("validate", False),
        rules=rule_conf(options.get("rules", False)),
        is_key=options.get("key", False),
        members_by_type=one_of(UnionNames, "union_names", options.get("union_names", "member")) is UnionNames.TYPE,
    )
