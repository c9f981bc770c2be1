"""The public call that turns a column of registry frames into values."""

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import Column, functions

from serdes.client import Schema
from spark_udfs.headers import column_of, with_header
from spark_udfs.paths import Way, chosen_path
from spark_udfs.plan import Mode, ReaderSource, Registry, one_of, plan, reader_type, settings_of

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
    """Decode registry frames (magic byte, schema id or GUID, payload) into one reader schema.

    Executors look writer schemas up as they meet their ids, those registered while the query runs too. The reader
    schema is fixed here: for a newer one start the query again from its checkpoint (`run_stream` does).

    Args:
        column: the binary column of frames, such as `value` of Spark's Kafka source. A null frame gives a null value.
        registry: the registry's URL, several of the same registry, or a `serdes.client.ClientSettings` with
            credentials, time-outs and retries.
        reader_schema: the reader schema as a text, or as a `serdes.client.Schema` when it has references; or
        subject: the subject to take it from, with
        version: the version there, a number or `latest`; or
        schema_id: its schema id.
        format: what a text is, Avro unless told. Of a schema in the registry the format is known.
        message: of Protobuf, the full name of the message to read, the first of the reader schema unless told. A frame
            with another message is a dead letter.
        validate: of JSON, hold each payload against all of the schema it was written with, and not the types alone.
        mode: what becomes of a frame that cannot be decoded.
            `DEADLETTER`: the result is `struct<value, error: struct<reason, schema_id, frame>>`, of which one is set;
            `split_dead_letters` makes two data frames of it. `PERMISSIVE`: it gives null. `FAILFAST`: the task fails.
        columns: the fields of the reader schema to decode, in this order; skipping the others is quicker.
        origin: names of columns that a FAILFAST error tells, such as `["topic", "partition", "offset"]`.
        headers: the column of record headers that Kafka's source gives with `includeHeaders`. A record whose header
            `__value_schema_id` names its schema is read by that, and has no frame; the others are frames as ever.
        key: the column holds keys, whose header is `__key_schema_id`.
        path: `jvm` decodes inside Spark's executors and wants `install` to have been called with the same settings of
            the registry, and Avro; `python` decodes in Python workers, over Arrow; `auto` takes the first where it can.
            The logger `spark_udfs` tells which and why.

    Raises:
        UnsupportedSchema: the reader schema has no Spark type; it says where.
        SchemaError: the reader schema cannot be read.
        RegistryError: the registry does not have the reader schema.
        RegistryUnavailable: the registry does not answer.
        NotInstalled: `path` is `jvm`, and the session has no such function.
        ModuleNotFoundError: the extra of the reader schema's format is not installed.
        ValueError: the arguments do not fit each other.
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
    reader_type(decided)  # what Spark cannot express is refused here, not in a task
    frames = column_of(column) if headers is None else with_header(column_of(column), column_of(headers), key=key)
    call = chosen_path(one_of(Way, "path", path), decided)
    return call(decided, [frames, *map(functions.col, decided.origin)])


def _names(origin: Sequence[str]) -> Sequence[str]:
    if isinstance(origin, str):
        raise TypeError(f"origin is a list of column names, not the text {origin!r}")
    return origin
