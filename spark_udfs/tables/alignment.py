"""Rows in the shape of a table: the same columns in the same order, each value as it was.

Rules of this file: types in, column expressions out; it casts only what `changes.holds` allows.
"""

from collections.abc import Callable, Mapping

from pyspark.sql import Column, functions
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from strata.spark_udfs.tables.changes import ELEMENT, KEY, VALUE, Path, same_type

__all__ = ["aligned"]


def aligned(
    field: Callable[[str], Column], rows: StructType, table: StructType, names: Mapping[Path, str]
) -> list[Column]:
    """Return the columns of a table, filled from the fields of rows.

    Args:
        field: returns the values of a field.
        rows: the type of the rows.
        table: the type of the table, which `compare_types` finds nothing missing in.
        names: the names of the columns whose names differ from those of the fields.

    Returns:
        One column for each column of the table, null where the rows have no field for it.
    """
    return _fields(field, (), rows, table, names)


def _fields(
    value_of: Callable[[str], Column], source: Path, rows: StructType, table: StructType, names: Mapping[Path, str]
) -> list[Column]:
    fields = {names.get((*source, field.name), field.name).lower(): field for field in rows}
    columns = []
    for column in table:
        field = fields.get(column.name.lower())
        if field is None:
            filled = functions.lit(None).cast(column.dataType)
        else:
            filled = _converted(value_of(field.name), (*source, field.name), field.dataType, column.dataType, names)
        columns.append(filled.alias(column.name))
    return columns


def _converted(value: Column, source: Path, rows: DataType, table: DataType, names: Mapping[Path, str]) -> Column:
    if same_type(rows, table) and not any(path[: len(source)] == source for path in names if len(path) > len(source)):
        return value
    if isinstance(rows, StructType) and isinstance(table, StructType):
        fields = functions.struct(*_fields(value.getField, source, rows, table, names))
        return functions.when(value.isNotNull(), fields)
    if isinstance(rows, ArrayType) and isinstance(table, ArrayType):
        element, wanted = rows.elementType, table.elementType
        return functions.transform(value, lambda item: _converted(item, (*source, ELEMENT), element, wanted, names))
    if isinstance(rows, MapType) and isinstance(table, MapType):
        key, wanted_key, item, wanted_item = rows.keyType, table.keyType, rows.valueType, table.valueType
        if not same_type(key, wanted_key):
            value = functions.transform_keys(value, lambda k, _: _converted(k, (*source, KEY), key, wanted_key, names))
        return functions.transform_values(value, lambda _, v: _converted(v, (*source, VALUE), item, wanted_item, names))
    return value.cast(table)
