"""JSON payloads read into the columns of one JSON Schema.

The reader checks the types of the columns only, which is less than the schema may require; `validate` validates each
payload against its whole writer schema.

Rules of this file: `serdes.json_schema` handles JSON, `json_types` handles columns.
"""

from collections.abc import Callable
from typing import Any

from compat.json_schema.parser import parse
from compat.schema import ResolvedReference, SchemaParseError
from serdes.client import RegistryClient, Schema
from serdes.errors import SchemaError
from serdes.json_schema import load, validator_of
from serdes.model import JSON
from spark_udfs.formats import PayloadSchema
from spark_udfs.json_types import shape_of
from spark_udfs.payloads import Parse, Writer

__all__ = ["JsonReader"]


class JsonReader:
    """A reader of JSON values into columns."""

    format = JSON
    indexed = False

    def __init__(self, schema: PayloadSchema) -> None:
        references = [ResolvedReference(name, one.text) for name, one in schema.references]
        try:
            root = parse(schema.schema.text, strict=False, references=references).root
        except SchemaParseError as error:
            raise SchemaError(f"the reader schema is no JSON Schema: {error}") from None
        self.shape = shape_of(root, schema.columns)
        self._validates = schema.validate

    def writer(self, client: RegistryClient, schema: Schema) -> Writer:
        """Return a function that parses payloads written with a schema.

        Args:
            client: the client to read references with.
            schema: the writer schema.

        Raises:
            SchemaError: If the schema or a reference cannot be used.
            SerdeError: If the registry did not return the references of the schema.
        """
        parse_payload = _validating(validator_of(client, schema)) if self._validates else load
        return lambda _: parse_payload


def _validating(validate: Callable[[Any], None]) -> Parse:
    def parsed(payload: bytes) -> Any:
        value = load(payload)
        validate(value)
        return value

    return parsed
