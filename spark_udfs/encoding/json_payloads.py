"""Rows as JSON payloads.

    binary     base64                    date           2026-03-01
    decimal    a number, digit by digit  timestamp      2026-03-01T12:30:00.000005Z
    map        an object                 timestamp_ntz  the same without Z

A null field is left out unless the schema requires it. JSON has no NaN and no infinities, so they are rejected.

Rules of this file: values come from Arrow and have its types; the validator decides what the schema allows.
"""

import base64
import math
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import unquote

import orjson
import pyarrow as pa

from strata.serdes.client import RegistryClient
from strata.serdes.errors import DecodeError, EncodeError
from strata.serdes.functions import Convert, Encode
from strata.serdes.json_schema.serializer import load, validator_of
from strata.spark_udfs.encoding.arrow_values import field_path, instant_of
from strata.spark_udfs.encoding.plan import EncodePlan

__all__ = ["json_writer"]

_LONGEST_CHAIN = 50
"""How many references are followed from one part of a schema."""
_DAY = 86_400_000_000
"""In microseconds."""


def json_writer(plan: EncodePlan, arrow_type: pa.DataType) -> Encode:
    """Return a function that writes values of an Arrow type as JSON.

    Args:
        plan: the plan of the encode.
        arrow_type: the type of the column.

    Raises:
        EncodeError: If JSON has no type for a part of the column.
        SchemaError: If the schema or a reference cannot be used.
        RegistryError: If the registry does not know a reference.
        RegistryUnavailable: If the registry does not answer.
    """
    schema = plan.target.schema
    document = load(schema.text.encode())
    convert = _Converters(document).of(arrow_type, document, "")
    if not plan.validate:
        return lambda value: orjson.dumps(convert(value))
    with RegistryClient.from_settings(plan.registry) as client:
        validator = validator_of(client, schema, plan.subject)

    def write(value: object) -> bytes:
        payload = orjson.dumps(convert(value))
        try:
            validator.in_order(load(payload))  # so that both paths report the same of several errors
        except DecodeError as error:
            raise EncodeError(error.detail, path=error.path) from None
        return payload

    return write


class _Converters:
    """A factory of functions that convert Arrow's Python values to what orjson writes, for one schema."""

    def __init__(self, document: object) -> None:
        self._document = document

    def of(self, arrow_type: pa.DataType, schema: object, path: str) -> Convert:
        """Return the converter for values of a type that a part of the schema describes."""
        schema = self._followed(schema)
        if pa.types.is_struct(arrow_type):
            return self._struct(arrow_type, schema, path)
        if pa.types.is_map(arrow_type):
            return self._map(arrow_type, schema, path)
        if pa.types.is_list(arrow_type):
            item = _or_none(self.of(arrow_type.value_type, _part(schema, "items"), f"{path}[]"))
            return lambda values: [item(value) for value in values]
        return _scalar(arrow_type, path)

    def _struct(self, arrow_type: pa.StructType, schema: object, path: str) -> Convert:
        properties, listed = _part(schema, "properties"), _part(schema, "required")
        required = listed if isinstance(listed, list) else []
        fields = [
            (
                field.name,
                self.of(field.type, _part(properties, field.name), field_path(path, field.name)),
                field.name in required,
            )
            for field in arrow_type
        ]

        def convert(value: Mapping[str, object]) -> dict[str, object]:
            made = {}
            for name, field, is_required in fields:
                part = value[name]
                if part is not None:
                    made[name] = field(part)
                elif is_required:
                    made[name] = None
            return made

        return convert

    def _map(self, arrow_type: pa.MapType, schema: object, path: str) -> Convert:
        if not pa.types.is_string(arrow_type.key_type):
            raise EncodeError(f"expected map keys of type string, got {arrow_type.key_type}", path=path)
        item = _or_none(self.of(arrow_type.item_type, _part(schema, "additionalProperties"), f"{path}{{}}"))
        return lambda pairs: {key: item(item_) for key, item_ in pairs}

    def _followed(self, schema: object) -> object:
        """Return the part of the document that has the keywords: follows local references and drops null branches."""
        for _ in range(_LONGEST_CHAIN):
            reference, branches = _part(schema, "$ref"), _part(schema, "oneOf") or _part(schema, "anyOf")
            if isinstance(reference, str):
                schema = self._pointed(reference)
            elif isinstance(branches, list):
                others = [branch for branch in branches if _part(branch, "type") != "null"]
                if len(others) != 1:
                    return schema
                schema = others[0]
            else:
                return schema
        return None

    def _pointed(self, reference: str) -> object:
        if not reference.startswith("#/"):
            return self._document if reference == "#" else None
        part = self._document
        for step in unquote(reference[2:]).split("/"):
            part = _part(part, step.replace("~1", "/").replace("~0", "~"))
        return part


def _part(schema: object, name: str) -> object:
    return schema.get(name) if isinstance(schema, dict) else None


def _or_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _scalar(arrow_type: pa.DataType, path: str) -> Convert:
    if pa.types.is_floating(arrow_type):
        return lambda value: _finite(value, path)
    if pa.types.is_binary(arrow_type) or pa.types.is_large_binary(arrow_type):
        return lambda value: base64.b64encode(value).decode()
    if pa.types.is_decimal(arrow_type):
        return lambda value: orjson.Fragment(format(value, "f"))
    if pa.types.is_date(arrow_type):
        return lambda days: instant_of(days * _DAY, path).date().isoformat()
    if pa.types.is_timestamp(arrow_type):
        zone = "" if arrow_type.tz is None else "Z"
        return lambda micros: _text(instant_of(micros, path)) + zone
    if (
        pa.types.is_integer(arrow_type)
        or pa.types.is_string(arrow_type)
        or pa.types.is_boolean(arrow_type)
        or pa.types.is_null(arrow_type)
    ):
        return lambda value: value
    raise EncodeError(f"JSON has no type for {arrow_type}", path=path)


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="microseconds" if instant.microsecond else "seconds")


def _finite(value: float, path: str) -> float:
    if not math.isfinite(value):
        raise EncodeError("expected a finite number, got NaN or infinity", path=path)
    return value
