"""The names of a schema's top-level fields, which reserved names must not match."""

from strata.compat.avro.model import AvroSchema, RecordType
from strata.compat.json_schema.model import JsonSchema
from strata.compat.protobuf.schema import ProtobufSchema
from strata.compat.schema import ParsedSchema

__all__ = ["top_fields"]


def top_fields(schema: ParsedSchema) -> tuple[str, ...]:
    """Return the field names of a record, the property names of an object, or the field names of a first message."""
    if isinstance(schema, AvroSchema):
        return tuple(field.name for field in schema.root.fields) if isinstance(schema.root, RecordType) else ()
    if isinstance(schema, JsonSchema):
        properties = schema.json.get("properties") if isinstance(schema.json, dict) else None
        return tuple(properties) if isinstance(properties, dict) else ()
    if isinstance(schema, ProtobufSchema) and (message := next(schema.file.messages, None)):
        return tuple(field.name for field in message.all_fields)
    return ()
