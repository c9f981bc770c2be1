"""Arrow columns as Python values, for formats that are written value by value.

Timestamps and dates stay numbers, because Python's own types end with the year 9999; the writers report what does not
fit.

Rules of this file: Arrow in, Python out; no format.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import pyarrow as pa

from strata.serdes.errors import EncodeError, unknown_field

__all__ = ["check_fields", "field_path", "instant_of", "values_of"]

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the writers add the zone


def values_of(array: pa.Array) -> list[object]:
    """Return structs as dicts, maps as lists of pairs, times in microseconds and dates in days since 1970."""
    numbered = _numbered(array.type)
    values: list[object] = (array if numbered == array.type else array.cast(numbered)).to_pylist()
    return values


def _numbered(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(_numbered(field.type)) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(
            arrow_type.key_field.with_type(_numbered(arrow_type.key_type)),
            arrow_type.item_field.with_type(_numbered(arrow_type.item_type)),
        )
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(_numbered(arrow_type.value_type)))
    if pa.types.is_timestamp(arrow_type) or pa.types.is_duration(arrow_type):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(arrow_type) else arrow_type


def instant_of(micros: int, path: str) -> datetime:
    """Return microseconds since 1970 as a datetime without a zone.

    Raises:
        EncodeError: If the year is outside 1 to 9999.
    """
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise EncodeError("expected a year from 1 to 9999", path=path) from None


def field_path(path: str, name: str) -> str:
    """Return the path of a field of the value at a path."""
    return f"{path}.{name}" if path else name


def check_fields(arrow_type: pa.StructType, known: Mapping[str, object], path: str) -> None:
    """Check that a struct has no field that the schema lacks.

    Args:
        arrow_type: the type of the struct.
        known: the fields of the schema, by name.
        path: the path of the struct, for the error.

    Raises:
        EncodeError: If the struct has such a field.
    """
    extra = next((field.name for field in arrow_type if field.name not in known), None)
    if extra is not None:
        raise unknown_field(extra, known, path)
