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
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

__all__ = ["UnsupportedType", "avro_schema", "json_schema"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXTS = (StringType, CharType, VarcharType)
_INTEGERS = (ByteType, ShortType, IntegerType)

_AVRO: dict[type[DataType], Any] = {
    NullType: "null",
    BooleanType: "boolean",
    **dict.fromkeys(_INTEGERS, "int"),
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    **dict.fromkeys(_TEXTS, "string"),
    BinaryType: "bytes",
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
_JSON: dict[type[DataType], dict[str, Any]] = {
    NullType: {"type": "null"},
    BooleanType: {"type": "boolean"},
    **{one: {"type": "integer"} for one in (*_INTEGERS, LongType)},
    **{one: {"type": "number"} for one in (FloatType, DoubleType, DecimalType)},
    **{one: {"type": "string"} for one in _TEXTS},
    BinaryType: {"type": "string", "contentEncoding": "base64"},
    DateType: {"type": "string", "format": "date"},
    TimestampType: {"type": "string", "format": "date-time"},
    TimestampNTZType: {"type": "string"},
}


class UnsupportedType(ValueError):
    """A Spark type that the schema language cannot express; `path` names the field."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"no schema for the column{f' at {path}' if path else ''}: {why}; cast it, or give a schema")
        self.path = path


def avro_schema(kind: DataType, name: str) -> str:
    """Return the Avro schema of a column.

    Args:
        kind: the type of the column.
        name: the name of the record, with its namespace.

    Raises:
        UnsupportedType: If a part of the type, or the name of a field, cannot be expressed.
    """
    return json.dumps(_Avro().schema(kind, name, ""))


def json_schema(kind: DataType, title: str) -> str:
    """Return the JSON Schema of a column, draft 7.

    Args:
        kind: the type of the column.
        title: the title of the schema.

    Raises:
        UnsupportedType: If a part of the type cannot be expressed.
    """
    schema = _json(kind, "")
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "title": title} | schema)


class _Avro:
    """A schema under construction; it knows which names are taken."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def schema(self, kind: DataType, name: str, path: str) -> Any:
        match kind:
            case StructType():
                return self._record(kind, name, path)
            case ArrayType():
                return {
                    "type": "array",
                    "items": self._nullable(kind.elementType, kind.containsNull, name, f"{path}[]"),
                }
            case MapType():
                _check_key(kind, path)
                values = self._nullable(kind.valueType, kind.valueContainsNull, name, f"{path}{{}}")
                return {"type": "map", "values": values}
            case DecimalType():
                return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
        return _scalar(_AVRO, kind, path)

    def _record(self, kind: StructType, name: str, path: str) -> dict[str, Any]:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        _check_names(kind, path)
        fields = []
        for one in kind.fields:
            place = _inside(path, one.name)
            if not _NAME.fullmatch(one.name):
                raise UnsupportedType(place, "Avro's names are letters, digits and underscores")
            written = {
                "name": one.name,
                "type": self._nullable(one.dataType, one.nullable, f"{name}_{one.name}", place),
            }
            fields.append(written | ({"default": None} if one.nullable else {}))
        return {"type": "record", "name": name, "fields": fields}

    def _nullable(self, kind: DataType, nullable: bool, name: str, path: str) -> Any:
        schema = self.schema(kind, name, path)
        return ["null", schema] if nullable and schema != "null" else schema


def _json(kind: DataType, path: str) -> dict[str, Any]:
    match kind:
        case StructType():
            _check_names(kind, path)
            properties = {
                one.name: _or_null(_json(one.dataType, _inside(path, one.name)), one.nullable) for one in kind.fields
            }
            required = [one.name for one in kind.fields if not one.nullable]
            # A closed object makes adding a nullable column a compatible change.
            schema = {"type": "object", "properties": properties, "additionalProperties": False}
            return schema | ({"required": required} if required else {})
        case ArrayType():
            return {"type": "array", "items": _or_null(_json(kind.elementType, f"{path}[]"), kind.containsNull)}
        case MapType():
            _check_key(kind, path)
            values = _or_null(_json(kind.valueType, f"{path}{{}}"), kind.valueContainsNull)
            return {"type": "object", "additionalProperties": values}
    return dict(_scalar(_JSON, kind, path))


def _or_null(schema: dict[str, Any], nullable: bool) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]} if nullable and schema != {"type": "null"} else schema


def _scalar(table: dict[type[DataType], Any], kind: DataType, path: str) -> Any:
    if type(kind) not in table:
        raise UnsupportedType(path, f"there is nothing for {kind.simpleString()}")
    return table[type(kind)]


def _check_key(kind: MapType, path: str) -> None:
    if not isinstance(kind.keyType, StringType):
        raise UnsupportedType(path, f"the keys of a map are strings, and not {kind.keyType.simpleString()}")


def _check_names(kind: StructType, path: str) -> None:
    twice = next((name for name in kind.names if kind.names.count(name) > 1), None)
    if twice is not None:
        raise UnsupportedType(_inside(path, twice), "there are two fields of that name")


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
