"""Strings of JSON as the columns that their `format` means.

    date-time   timestamp; RFC 3339 with an offset, at most six digits of a second
    date        date
    time        bigint, microseconds since midnight, as Avro's time-micros; in UTC or without an offset
    uuid        string, which is a UUID

A record with another value is not decoded: null would hide the value, and a cast that guesses would change it. So is
one with digits that a timestamp does not hold, a leap second, or a time whose offset is not zero.

Rules of this file: expressions above the decoded column, the same for each path; no bytes are read here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, functions

from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.headers import VALUE
from strata.spark_udfs.decoding.json_reader import root_of
from strata.spark_udfs.decoding.json_types import Tree, tree_of
from strata.spark_udfs.decoding.paths import ERROR_TYPE
from strata.spark_udfs.decoding.plan import DecodePlan

__all__ = ["with_formats"]

_DATE: Final = r"\d{4}-\d{2}-\d{2}"
_CLOCK: Final = r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_TIME: Final = f"{_CLOCK}0*"
_PATTERNS: Final = {
    "date-time": rf"^{_DATE}[Tt ]{_TIME}([Zz]|[+-]\d{{2}}:\d{{2}})\z",
    "date": rf"^{_DATE}\z",
    "time": rf"^{_TIME}([Zz]|[+-]00:00)?\z",
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\z",
}
_TYPES: Final = {"date-time": "timestamp", "date": "date"}
_MAGIC_0: Final = "00"


@dataclass(frozen=True, slots=True)
class _Part:
    """What a part of a value becomes: its column, and the first format that does not fit, or null."""

    value: Column
    wrong: Column


def with_formats(decoded: Column, plan: DecodePlan, frames: Column, *, has_headers: bool) -> Column:
    """Return a decoded column whose strings have the types of their formats.

    Args:
        decoded: the decoded column.
        plan: its plan, of a JSON Schema.
        frames: the column of frames, or of records with headers.
        has_headers: whether it is of records with headers.
    """
    if plan.payload is None:
        raise AssertionError(plan)
    tree = tree_of(root_of(plan.payload), plan.payload.columns)
    if not _has_format(tree):
        return decoded
    sent = frames[VALUE] if has_headers else frames

    def convert(column: Column) -> Column:
        if plan.mode is Mode.DEADLETTER:
            part = _part(column["value"], tree)
            error = functions.struct(
                functions.concat(functions.lit("invalid "), part.wrong).alias("reason"),
                _schema_id(sent).alias("schema_id"),
                sent.alias("frame"),
            )
            is_bad = part.wrong.isNotNull()
            columns = {"value": functions.when(~is_bad, part.value)}
            columns["error"] = functions.when(is_bad, error.cast(ERROR_TYPE)).otherwise(column["error"])
            return functions.struct(*(column.alias(name) for name, column in columns.items()))
        part = _part(column, tree)
        if plan.mode is Mode.PERMISSIVE:
            return functions.when(part.wrong.isNull(), part.value)
        return functions.when(part.wrong.isNull(), part.value).otherwise(
            functions.raise_error(_message(part.wrong, plan.origin))
        )

    # The lambda's variable is computed once; an expression that stands in several places may be computed in each.
    return functions.get(functions.transform(functions.array(decoded), convert), functions.lit(0))


def _part(value: Column, tree: Tree) -> _Part:
    if tree.format:
        return _string(value, tree.format)
    if tree.kind == "object" and tree.fields:
        parts = {name: _part(value.getField(name), field) for name, field in tree.fields.items()}
        struct = functions.struct(*(part.value.alias(name) for name, part in parts.items()))
        wrong = [parts[name].wrong for name, field in tree.fields.items() if _has_format(field)]
        return _Part(functions.when(value.isNotNull(), struct), functions.coalesce(*wrong, functions.lit(None)))
    if tree.item is None or not _has_format(tree.item):
        return _Part(value, functions.lit(None).cast("string"))
    item = tree.item
    if tree.kind == "array":
        items, converted = value, functions.transform(value, lambda item_: _part(item_, item).value)
    else:
        items = functions.map_values(value)
        converted = functions.transform_values(value, lambda _, item_: _part(item_, item).value)
    wrong_items = functions.filter(functions.transform(items, lambda item_: _part(item_, item).wrong), _is_set)
    return _Part(converted, functions.get(wrong_items, functions.lit(0)))


def _string(value: Column, format_: str) -> _Part:
    text = functions.when(functions.regexp_like(value, functions.lit(_PATTERNS[format_])), functions.upper(value))
    match format_:
        case "uuid":
            typed, is_known = value, text.isNotNull()
        case "time":
            # Spark 4.0 has no type for it; a timestamp of a day without changes of the clock counts for it.
            clock = functions.regexp_extract(text, f"^({_CLOCK})", 1)
            day = functions.concat(functions.lit("1970-01-01T"), clock, functions.lit("Z"))
            typed = functions.unix_micros(day.try_cast("timestamp"))
            is_known = typed.isNotNull()
        case _:
            typed = text.try_cast(_TYPES[format_])
            is_known = typed.isNotNull()
    return _Part(typed, functions.when(value.isNotNull() & ~is_known, functions.lit(format_)))


def _has_format(tree: Tree) -> bool:
    return bool(tree.format) or any(map(_has_format, _parts(tree)))


def _parts(tree: Tree) -> Iterator[Tree]:
    yield from tree.fields.values()
    if tree.item is not None:
        yield tree.item


def _is_set(column: Column) -> Column:
    return column.isNotNull()


def _schema_id(frames: Column) -> Column:
    """Return the schema id of frames, null where they have none."""
    number = functions.conv(functions.hex(functions.substring(frames, 2, 4)), 16, 10).cast("int")
    return functions.when(functions.hex(functions.substring(frames, 1, 1)) == _MAGIC_0, number)


def _message(wrong: Column, origin: tuple[str, ...]) -> Column:
    places = [functions.concat(functions.lit(f", {name} "), functions.col(name).cast("string")) for name in origin]
    return functions.concat(functions.lit("a frame cannot be decoded (invalid "), wrong, *places, functions.lit(")"))
