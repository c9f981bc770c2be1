"""What a candidate makes of the frames of a data frame: a lake, a topic, or a stream of one.

In the JVM an aggregate function judges each frame with the candidate, and counts. In Python
workers, frames of Avro are decoded in mode DEADLETTER, and the dead letters are grouped; one frame of each group is
read again, by the deserializer, to find the place in the record. Messages of Protobuf are parsed there by the writer's
file and by the candidate's, and compared. Documents of JSON Schema are always validated there (`decode` validates
against the writer's schema), and searched for the integers that the candidate makes doubles of. Both are done as
`strata replay` does it.

Rules of this file: one plan over a data frame, batch or stream; nothing runs here.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pyspark.sql import Column, DataFrame, Row, functions
from pyspark.sql.types import StringType, StructType

from strata.serdes.avro.serializer import AvroDeserializer
from strata.serdes.client import Schema, schema_named
from strata.serdes.deserializer import Deserializer
from strata.serdes.errors import DecodeError, FrameError, SchemaError, SerdeError
from strata.serdes.framing import SchemaName, open_frame
from strata.serdes.model import AVRO, JSON, PROTOBUF
from strata.serdes.references import resolve, resolved
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.arguments import Registry, names_of, settings_of
from strata.spark_udfs.dead_letters import column_named
from strata.spark_udfs.decoding.columns import DecodeOptions, planned
from strata.spark_udfs.decoding.jvm_function import jvm_path, replay_in_jvm
from strata.spark_udfs.decoding.writer_schemas import RegistryNotUsable, client_of, is_unknown

if TYPE_CHECKING:
    from strata.compat.json_schema.containment.decision import Containment
    from strata.compat.json_schema.model import JsonSchema
    from strata.serdes.protobuf.readings import Readings

__all__ = ["judge_document", "judge_message", "replay"]

Outcome: TypeAlias = tuple[str | None, int | None, str | None, str | None, str | None]

_ERROR: Final = "__strata_error"
_OUTCOMES: Final = "array<struct<reason string, schema_id int, path string, written_as string, read_as string>>"
_READ: Final[Outcome] = (None, None, None, None, None)
_LONGEST: Final = 200
_CHANGED: Final = "another value is read"
_COLUMNS: Final = ("reason", "schema_id", "path", "count", "first", "last", "frame", "written_as", "read_as")


def replay(
    frames: DataFrame,
    candidate: str | Schema,
    *,
    registry: Registry,
    value: str = "value",
    place: Sequence[str] = ("topic", "partition", "offset"),
    format: str | None = None,  # noqa: A002 - the option of decode
    message: str | None = None,
    headers: Column | str | None = None,
    path: Literal["auto", "jvm", "python"] = "auto",
) -> DataFrame:
    """Count what a candidate makes of frames, so that a job can guard a deployment.

    Values that the candidate reads as others without an error are found in Protobuf, in JSON, and in Avro in the JVM;
    Python workers do not find those of Avro (see `path`). In Protobuf they are those that a parser has, whatever a
    column could hold; what `decode` refuses in the JVM is a row of its own.

    Args:
        frames: a data frame of frames, batch or stream. On a stream the output mode is `complete` or `update`.
        candidate: the schema, as text or with its references.
        registry: the registry, as for `decode`.
        value: the column of frames.
        place: the columns that say where a record is, those that the data frame has.
        format: the format of a schema text, by default AVRO.
        message: as for `decode`.
        headers: as for `decode`.
        path: as for `decode`.

    Returns:
        A row for the records that are read, whose `reason` is null, and one for each reason, schema id and path of the
        others: `reason`, `schema_id`, `path` (where in the record the first of them fails; null if it is not a place),
        `count`, `first` and `last` (the least and the greatest place), and `frame`, the bytes of the first. A value
        that changes has the reason `another value is read`, and `written_as` and `read_as` of the first; its record
        counts as read too.

    Raises:
        ValueError: If the data frame lacks a column, or an option has a value that is not allowed.
        UnsupportedSchema: If the candidate has no Spark type.
        SerdeError: If the registry does not have a reference, or does not answer.
    """
    if value not in frames.columns:
        raise ValueError(f"the data frame has no column {value}; it has {', '.join(frames.columns)}")
    schema = candidate if isinstance(candidate, Schema) else Schema(candidate, format or AVRO)
    places = [name for name in names_of("place", place, of="column") if name in frames.columns]
    where = functions.struct(*map(column_named, places)) if places else functions.lit(None).cast("string")
    settings = settings_of(registry)
    if schema.format == JSON:
        return _of_single(frames, where, column_named(value), _judged(schema, settings))
    options: DecodeOptions = {
        "registry": settings, "reader_schema": schema, "message": message, "headers": headers, "path": path
    }  # fmt: skip
    column, plan, chosen = planned(column_named(value), options)
    if chosen is jvm_path:
        outcomes = frames.agg(replay_in_jvm(plan, column, where).alias("outcomes"))
        return outcomes.select(functions.explode("outcomes").alias("outcome")).select("outcome.*")
    if schema.format == PROTOBUF:
        return _of_single(frames, where, column, _judged_messages(schema, settings, message))
    groups = _grouped(frames, where, value, chosen(plan, [column])["error"])
    return groups.withColumn("path", _place_in_record(schema, settings)(column_named("frame"))).select(*_COLUMNS)


def _grouped(frames: DataFrame, place: Column, value: str, error: Column) -> DataFrame:
    """Return outcomes by the errors of dead letters."""
    letters = frames.select(place.alias("place"), column_named(value).alias("frame"), error.alias(_ERROR)).select(
        "place",
        functions.when(column_named(_ERROR).isNotNull(), column_named("frame")).alias("frame"),
        column_named(_ERROR)["reason"].alias("reason"),
        column_named(_ERROR)["schema_id"].alias("schema_id"),
    )
    nothing = functions.lit(None).cast("string")
    groups = letters.groupBy("reason", "schema_id").agg(
        functions.count(functions.lit(1)).alias("count"),
        functions.min("place").alias("first"),
        functions.max("place").alias("last"),
        functions.min_by("frame", "place").alias("frame"),
    )
    return groups.withColumns({"written_as": nothing, "read_as": nothing})


def _of_single(frames: DataFrame, place: Column, column: Column, judged: Callable[[Column], Column]) -> DataFrame:
    """Return outcomes of records that are judged one by one, which have each its reason, schema id and path."""
    exploded = functions.explode(judged(column)).alias("outcome")
    rows = frames.select(place.alias("place"), column.alias("frame"), exploded)
    is_with_header = isinstance(rows.schema["frame"].dataType, StructType)
    rows = rows.withColumn("frame", functions.col("frame.value")) if is_with_header else rows
    groups = rows.groupBy(*(functions.col(f"outcome.{name}").alias(name) for name in ("reason", "schema_id", "path")))
    counted = groups.agg(
        functions.count(functions.lit(1)).alias("count"),
        functions.min("place").alias("first"),
        functions.max("place").alias("last"),
        functions.min_by("frame", "place").alias("frame"),
        *(functions.min_by(f"outcome.{name}", "place").alias(name) for name in ("written_as", "read_as")),
    )
    frame = functions.when(functions.col("reason").isNotNull(), functions.col("frame"))
    return counted.withColumn("frame", frame).select(*_COLUMNS)


def _place_in_record(candidate: Schema, settings: ClientSettings) -> Callable[[Column], Column]:
    """Return the function from a frame to the path at which it cannot be read."""

    def path(frame: bytes | None) -> str | None:
        if frame is None:
            return None
        error = _refusal(candidate, settings, bytes(frame))
        return error.path if isinstance(error, DecodeError) else None

    return functions.udf(path, StringType(), useArrow=False)


def _judged(candidate: Schema, settings: ClientSettings) -> Callable[[Column], Column]:
    """Return the function from a frame of JSON Schema to its outcomes; one without a reason if it is read."""

    def outcomes(frame: bytes | None) -> list[Outcome]:
        return [_READ] if frame is None else judge_document(candidate, settings, bytes(frame))

    return functions.udf(outcomes, _OUTCOMES, useArrow=False)


def _judged_messages(candidate: Schema, settings: ClientSettings, message: str | None) -> Callable[[Column], Column]:
    """Return the function from a frame of Protobuf, or a row of it and its header, to its outcomes."""

    def outcomes(record: Any) -> list[Outcome]:
        frame, header = (record.value, record.header) if isinstance(record, Row) else (record, None)
        if frame is None:
            return [_READ]
        return judge_message(candidate, settings, bytes(frame), None if header is None else bytes(header), message)

    return functions.udf(outcomes, _OUTCOMES, useArrow=False)


def judge_message(
    candidate: Schema, settings: ClientSettings, frame: bytes, header: bytes | None, message: str | None
) -> list[Outcome]:
    """Return what a candidate of Protobuf makes of a frame: reason, schema id, path, written as, read as.

    Args:
        candidate: the schema.
        settings: the registry.
        frame: the bytes of the record.
        header: the record header that names the schema, if there is one.
        message: the full name of the message; None is the first of the candidate.

    Raises:
        RegistryNotUsable: If the registry did not answer.
    """
    client = client_of(settings)
    schema_id = None
    try:
        opened = open_frame(frame, header, indexed=True)
        schema_id = opened.schema if isinstance(opened.schema, int) else None
        readings, wanted = _messages(candidate, settings, message)
        schema = schema_named(client, opened.schema)
        reading = readings.read(schema, opened.schema, opened.indexes, opened.payload)
    except DecodeError as error:
        return [(f"{error.reason}: {error.detail}", schema_id, error.path or None, None, None)]
    except (FrameError, SchemaError) as error:
        return [(str(error), schema_id, None, None, None)]
    except SerdeError as error:
        if is_unknown(error):
            return [(f"unknown schema id: {error}", schema_id, None, None, None)]
        raise RegistryNotUsable(str(error)) from None
    name = reading.written.DESCRIPTOR.full_name
    if name != wanted:
        return [(f"message is {name}", schema_id, None, None, None)]
    changes: list[Outcome] = [
        (_CHANGED, schema_id, path, _shown(written), _shown(read)) for path, written, read in reading.differences
    ]
    return [_READ, *changes]


def _shown(value: object) -> str | None:
    """Return a value as a text that is not too long; None for a field that is not set."""
    text = None if value is None else str(value)
    return text if text is None or len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


@lru_cache(maxsize=8)
def _messages(candidate: Schema, settings: ClientSettings, message: str | None) -> "tuple[Readings, str]":
    """Return this process's readings with a candidate, and the full name of its message."""
    from strata.serdes.protobuf.files import link
    from strata.serdes.protobuf.readings import Readings
    from strata.spark_udfs.decoding.protobuf_reader import message_of

    client = client_of(settings)
    wanted = message_of(link(candidate, resolve(client, candidate)), message)
    return Readings(candidate, client), wanted.full_name


def judge_document(candidate: Schema, settings: ClientSettings, frame: bytes) -> list[Outcome]:
    """Return what a candidate of JSON Schema makes of a frame: reason, schema id, path, written as, read as.

    Raises:
        RegistryNotUsable: If the registry did not answer.
    """
    error = _refusal(candidate, settings, frame)
    if isinstance(error, DecodeError):
        return [(f"{error.reason}: {error.detail}", _id_of(frame), error.path, None, None)]
    if error is not None:
        return [(str(error), _id_of(frame), None, None, None)]
    from strata.serdes.json_schema import json_text

    opened = open_frame(frame)
    reading = _reading(candidate, settings, opened.schema)
    if not reading.may_round:
        return [_READ]  # the document is not parsed a second time
    numbers = reading.rounded_numbers(json_text.load(opened.payload))
    outcomes: list[Outcome] = [
        (_CHANGED, _id_of(frame), path, str(number), str(float(number))) for path, number in numbers
    ]
    return [_READ, *outcomes]


@lru_cache(maxsize=256)
def _reading(candidate: Schema, settings: ClientSettings, name: SchemaName) -> "Containment":
    """Return what compares documents of a writer's schema as it and the candidate have them read."""
    from strata.compat.json_schema.containment.decision import Containment
    from strata.compat.json_schema.parser import parse

    client = client_of(settings)

    def parsed(schema: Schema) -> "JsonSchema":
        return parse(schema.text, strict=False, references=resolved(client, schema))

    return Containment(parsed(schema_named(client, name)), parsed(candidate))


def _refusal(candidate: Schema, settings: ClientSettings, frame: bytes) -> SerdeError | None:
    """Return the error of the format's deserializer for a frame; None if it reads it.

    Raises:
        RegistryNotUsable: If the registry did not answer.
    """
    try:
        _deserializer(candidate, settings)(frame)
    except (DecodeError, FrameError, SchemaError) as error:
        return error
    except SerdeError as error:
        if is_unknown(error):
            return error
        raise RegistryNotUsable(str(error)) from None
    return None


@lru_cache(maxsize=8)
def _deserializer(candidate: Schema, settings: ClientSettings) -> Deserializer:
    """Return this process's deserializer with a candidate."""
    client = client_of(settings)
    if candidate.format == JSON:
        from strata.serdes.json_schema.serializer import JsonDeserializer

        return JsonDeserializer(client, candidate)
    return AvroDeserializer(client, candidate)


def _id_of(frame: bytes) -> int | None:
    try:
        name = open_frame(frame).schema
    except FrameError:
        return None
    return name if isinstance(name, int) else None
