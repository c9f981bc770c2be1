"""Schemas derived from Spark types: what a column is in Avro, and in JSON Schema.

    boolean                  boolean                         boolean
    tinyint, smallint, int   int                             integer
    bigint                   long                            integer
    float, double            float, double                   number
    string, char, varchar    string                          string
    binary                   bytes                           string, base64
    date                     int, date                       string, date
    timestamp                long, timestamp-micros          string, date-time
    timestamp_ntz            long, local-timestamp-micros    string
    decimal                  bytes, decimal                  number
    array, map<string, …>    array, map                      array, object with additionalProperties
    struct                   record, named by its path       closed object with these properties
    nullable                 union with null, default null   or null; not a required property
    void                     null                            null

Avro reads back the same values; in JSON, dates, timestamps and binary become strings.

Rules of this file: types in, schemas out. A type that cannot be expressed is an error that names the field.
"""

import json
import re
from collections.abc import Mapping
from typing import TypeVar

from pyspark.sql import types

from strata.spark_udfs.encoding.arrow_values import field_path

__all__ = ["UnsupportedType", "avro_schema", "json_schema"]

_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXTS = (types.StringType, types.CharType, types.VarcharType)
_INTEGERS = (types.ByteType, types.ShortType, types.IntegerType)

_AVRO: dict[type[types.DataType], object] = {
    types.NullType: "null",
    types.BooleanType: "boolean",
    **dict.fromkeys(_INTEGERS, "int"),
    types.LongType: "long",
    types.FloatType: "float",
    types.DoubleType: "double",
    **dict.fromkeys(_TEXTS, "string"),
    types.BinaryType: "bytes",
    types.DateType: {"type": "int", "logicalType": "date"},
    types.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    types.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
_JSON: dict[type[types.DataType], dict[str, object]] = {
    types.NullType: {"type": "null"},
    types.BooleanType: {"type": "boolean"},
    **{type_: {"type": "integer"} for type_ in (*_INTEGERS, types.LongType)},
    **{type_: {"type": "number"} for type_ in (types.FloatType, types.DoubleType, types.DecimalType)},
    **{type_: {"type": "string"} for type_ in _TEXTS},
    types.BinaryType: {"type": "string", "contentEncoding": "base64"},
    types.DateType: {"type": "string", "format": "date"},
    types.TimestampType: {"type": "string", "format": "date-time"},
    types.TimestampNTZType: {"type": "string"},
}


class UnsupportedType(ValueError):
    """A Spark type that the schema language cannot express; `path` names the field."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"no schema for the column{f' at {path}' if path else ''}: {why}; cast it, or pass a schema")
        self.path = path


def avro_schema(spark_type: types.DataType, name: str) -> str:
    """Return the Avro schema of a column.

    Args:
        spark_type: the type of the column.
        name: the name of the record, with its namespace.

    Raises:
        UnsupportedType: If a part of the type, or the name of a field, cannot be expressed.
    """
    return json.dumps(_AvroBuilder().schema(spark_type, name, ""))


def json_schema(spark_type: types.DataType, title: str) -> str:
    """Return the JSON Schema of a column, draft 7.

    Args:
        spark_type: the type of the column.
        title: the title of the schema.

    Raises:
        UnsupportedType: If a part of the type cannot be expressed.
    """
    schema = _json(spark_type, "")
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "title": title} | schema)


class _AvroBuilder:
    """Builds one schema; keeps track of the record names that are taken."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def schema(self, spark_type: types.DataType, name: str, path: str) -> object:
        match spark_type:
            case types.StructType():
                return self._record(spark_type, name, path)
            case types.ArrayType():
                return {
                    "type": "array",
                    "items": self._nullable(spark_type.elementType, spark_type.containsNull, name, f"{path}[]"),
                }
            case types.MapType():
                _check_key(spark_type, path)
                values = self._nullable(spark_type.valueType, spark_type.valueContainsNull, name, f"{path}{{}}")
                return {"type": "map", "values": values}
            case types.DecimalType():
                return {
                    "type": "bytes",
                    "logicalType": "decimal",
                    "precision": spark_type.precision,
                    "scale": spark_type.scale,
                }
        return _scalar(_AVRO, spark_type, path)

    def _record(self, spark_type: types.StructType, name: str, path: str) -> dict[str, object]:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        _check_names(spark_type, path)
        fields = []
        for field in spark_type.fields:
            place = field_path(path, field.name)
            if not _NAME.fullmatch(field.name):
                raise UnsupportedType(place, "a name in Avro has only letters, digits and underscores")
            written: dict[str, object] = {
                "name": field.name,
                "type": self._nullable(field.dataType, field.nullable, f"{name}_{field.name}", place),
            }
            fields.append(written | ({"default": None} if field.nullable else {}))
        return {"type": "record", "name": name, "fields": fields}

    def _nullable(self, spark_type: types.DataType, nullable: bool, name: str, path: str) -> object:
        schema = self.schema(spark_type, name, path)
        return ["null", schema] if nullable and schema != "null" else schema


def _json(spark_type: types.DataType, path: str) -> dict[str, object]:
    match spark_type:
        case types.StructType():
            _check_names(spark_type, path)
            properties = {
                field.name: _or_null(_json(field.dataType, field_path(path, field.name)), field.nullable)
                for field in spark_type.fields
            }
            required = [field.name for field in spark_type.fields if not field.nullable]
            # A closed object makes adding a nullable column a compatible change.
            schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
            return schema | ({"required": required} if required else {})
        case types.ArrayType():
            return {
                "type": "array",
                "items": _or_null(_json(spark_type.elementType, f"{path}[]"), spark_type.containsNull),
            }
        case types.MapType():
            _check_key(spark_type, path)
            values = _or_null(_json(spark_type.valueType, f"{path}{{}}"), spark_type.valueContainsNull)
            return {"type": "object", "additionalProperties": values}
    return dict(_scalar(_JSON, spark_type, path))


def _or_null(schema: dict[str, object], nullable: bool) -> dict[str, object]:
    return {"oneOf": [{"type": "null"}, schema]} if nullable and schema != {"type": "null"} else schema


def _scalar(table: Mapping[type[types.DataType], _T], spark_type: types.DataType, path: str) -> _T:
    if type(spark_type) not in table:
        raise UnsupportedType(path, f"the schema language has no type for {spark_type.simpleString()}")
    return table[type(spark_type)]


def _check_key(spark_type: types.MapType, path: str) -> None:
    if not isinstance(spark_type.keyType, types.StringType):
        raise UnsupportedType(path, f"expected map keys of type string, got {spark_type.keyType.simpleString()}")


def _check_names(spark_type: types.StructType, path: str) -> None:
    duplicate = next((name for name in spark_type.names if spark_type.names.count(name) > 1), None)
    if duplicate is not None:
        raise UnsupportedType(field_path(path, duplicate), "two fields have this name")
