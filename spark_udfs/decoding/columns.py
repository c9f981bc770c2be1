"""The call `decode`: a column of registry frames becomes a column of values."""

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import Column, functions

from strata.serdes.client import Schema
from strata.spark_udfs.decoding.headers import column_of, with_header
from strata.spark_udfs.decoding.paths import Way, chosen_path
from strata.spark_udfs.decoding.plan import Mode, ReaderSource, Registry, one_of, plan, reader_type, settings_of

__all__ = ["decode"]


def decode(
    column: Column | str,
    *,
    registry: Registry,
    reader_schema: str | Schema | None = None,
    subject: str | None = None,
    version: int | Literal["latest"] = "latest",
    schema_id: int | None = None,
    format: Literal["AVRO", "PROTOBUF", "JSON"] | None = None,  # noqa: A002 - the registry's word, and Spark's
    message: str | None = None,
    validate: bool = False,
    mode: Literal["DEADLETTER", "PERMISSIVE", "FAILFAST"] = "DEADLETTER",
    columns: Sequence[str] | None = None,
    origin: Sequence[str] = (),
    headers: Column | str | None = None,
    key: bool = False,
    path: Literal["auto", "jvm", "python"] = "auto",
) -> Column:
    """Decode frames of the Confluent wire format (magic byte, schema id or GUID, payload) into one reader schema.

    Executors look writer schemas up when they meet their ids, including those registered while the query runs. The
    reader schema is fixed by this call: to read with a newer one, restart the query from its checkpoint (`run_stream`
    does).

    Args:
        column: the binary column of frames, such as `value` of Spark's Kafka source. A null frame gives a null value.
        registry: the registry's URL, several URLs of the same registry, or a `strata.serdes.client.ClientSettings` with
            credentials, timeouts and retries.
        reader_schema: the reader schema as text, or as a `strata.serdes.Schema` if it has references. Pass exactly one
            of `reader_schema`, `subject` and `schema_id`.
        subject: the subject to take the reader schema from.
        version: the version within `subject`, a number or `latest`.
        schema_id: the schema id of the reader schema.
        format: the format of a schema text, by default AVRO. For a schema in the registry, the format that it must
            have.
        message: for Protobuf, the full name of the message to read, by default the first of the reader schema. A frame
            with another message is a dead letter.
        validate: for JSON, validate each payload against its writer schema, instead of checking the column types only.
        mode: what a frame that cannot be decoded becomes.
            `DEADLETTER`: the result is `struct<value, error: struct<reason, schema_id, frame>>`, in which at most one
            field is set; `split_dead_letters` splits it into two data frames.
            `PERMISSIVE`: null.
            `FAILFAST`: the task fails.
        columns: the fields of the reader schema to decode, in this order; skipping the others is faster.
        origin: names of columns whose values a FAILFAST error shows, such as `["topic", "partition", "offset"]`.
        headers: the column of record headers of Kafka's source (option `includeHeaders`). A record whose header
            `__value_schema_id` names its schema is read by that header and has no frame prefix; other records are
            frames.
        key: the column holds record keys, whose header is `__key_schema_id`.
        path: `jvm` decodes inside Spark's executors; it needs Avro, and `install` called with the same registry
            settings. `python` decodes in Python workers, over Arrow. `auto` uses `jvm` if it can. The logger
            `spark_udfs` says which path was chosen and why.

    Returns:
        A column of the reader schema's Spark type, or of the struct above in mode `DEADLETTER`.

    Raises:
        UnsupportedSchema: If the reader schema has no Spark type; the error names the field.
        SchemaError: If the reader schema is invalid.
        RegistryError: If the registry does not have the reader schema.
        RegistryUnavailable: If the registry does not answer.
        NotInstalled: If `path` is `jvm`, and `install` was not called for these settings.
        ImportError: If the Python path is chosen, and numba is not installed.
        ModuleNotFoundError: If the extra of the reader schema's format is not installed.
        RuntimeError: If a column is given by name, and there is no Spark session.
        TypeError: If an argument has the wrong type.
        ValueError: If the arguments contradict each other, a value is not allowed, or `columns` names an unknown field.
    """
    chosen = one_of(Mode, "mode", mode)
    decided = plan(
        settings_of(registry),
        ReaderSource(reader_schema, subject, version, schema_id, format),
        mode=chosen,
        columns=columns,
        origin=_names(origin) if chosen is Mode.FAILFAST else (),
        message=message,
        validate=validate,
    )
    reader_type(decided)  # reject what Spark cannot express here, not in a task
    frames = column_of(column) if headers is None else with_header(column_of(column), column_of(headers), key=key)
    call = chosen_path(one_of(Way, "path", path), decided)
    return call(decided, [frames, *map(functions.col, decided.origin)])


def _names(origin: Sequence[str]) -> Sequence[str]:
    if isinstance(origin, str):
        raise TypeError(f"origin is a list of column names, not the text {origin!r}")
    return origin
