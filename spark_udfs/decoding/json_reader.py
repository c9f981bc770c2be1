"""JSON payloads read into the columns of one JSON Schema.

The reader checks the types of the columns only, which is less than the schema may require; `validate` validates each
payload against its whole writer schema.

Rules of this file: `strata.serdes.json_schema.serializer` handles JSON, `json_types` handles columns.
"""

from strata.compat.json_schema import model
from strata.compat.json_schema.parser import parse
from strata.compat.schema import ResolvedReference, SchemaParseError
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import SchemaError
from strata.serdes.json_schema.serializer import load, validating, validator_of
from strata.serdes.model import JSON
from strata.spark_udfs.decoding.json_types import shape_of
from strata.spark_udfs.decoding.payload_reader import Writer
from strata.spark_udfs.decoding.payload_schema import PayloadSchema

__all__ = ["JsonReader", "parsed", "root_of"]


class JsonReader:
    """A reader of JSON values into columns."""

    format = JSON
    indexed = False

    def __init__(self, schema: PayloadSchema) -> None:
        self.shape = shape_of(root_of(schema), schema.columns)
        self._validates = schema.validate

    def writer(self, client: RegistryClient, schema: Schema) -> Writer:
        """Return the parsers for payloads of a writer schema; see `PayloadReader`."""
        parse_payload = validating(validator_of(client, schema)) if self._validates else load
        return lambda _: parse_payload


def root_of(schema: PayloadSchema) -> model.Node:
    """Return the root of the parsed reader schema.

    Raises:
        SchemaError: If it is not a valid JSON Schema.
    """
    return parsed(schema).root


def parsed(schema: PayloadSchema) -> model.JsonSchema:
    """Return the parsed reader schema.

    Raises:
        SchemaError: If it is not a valid JSON Schema.
    """
    references = [ResolvedReference(name, schema.text) for name, schema in schema.references]
    try:
        return parse(schema.schema.text, strict=False, references=references)
    except SchemaParseError as error:
        raise SchemaError(f"the reader schema is not a valid JSON Schema: {error}") from None
