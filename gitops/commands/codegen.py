"""`strata codegen`: Python classes for the schema of a subject."""

import json
import re
from typing import TYPE_CHECKING

import click

from strata.gitops.commands.running import connected, reporting, service_at, version_at
from strata.gitops.errors import GitopsError

if TYPE_CHECKING:
    from strata.compat.schema import ParsedSchema
    from strata.serdes.classes.shapes import Shape

__all__ = ["codegen"]


@click.command(short_help="Write Python classes for a subject's schema.")
@click.argument("subject")
@click.argument("version", type=int, required=False)
@click.option("--as", "style", type=click.Choice(("dataclass", "pydantic", "msgspec")), default="dataclass",
              help="the library  [dataclass]")  # fmt: skip
@connected
@reporting
def codegen(*, subject: str, version: int | None, style: str, connection: dict[str, object]) -> None:
    """Print a Python module with classes for a version of SUBJECT, by default the latest.

    A serializer takes the class instead of a schema, and makes the same schema from it: AvroSerializer(client, Order).
    What a class cannot hold is left out: bounds in JSON Schema, comments in Protobuf.
    """
    from strata.compat.schema import SchemaParseError
    from strata.gitops.versions import Parser
    from strata.serdes.classes.code import class_source
    from strata.serdes.errors import SchemaError

    service = service_at(connection)
    known = version_at(service, subject, version)
    try:
        shapes = _shapes(Parser([service]).parse(known, strict=False), subject)
        click.echo(class_source(shapes, style, f"{subject}, version {known.version}"), nl=False)
    except (SchemaParseError, SchemaError) as error:
        raise GitopsError(f"version {known.version} of {subject} has no classes: {error}") from None


def _shapes(schema: "ParsedSchema", subject: str) -> "list[Shape]":
    """Return the classes of a schema.

    Raises:
        SchemaError: If a type has no class; the error names the field.
    """
    from strata.compat.avro.model import AvroSchema
    from strata.compat.json_schema.model import JsonSchema
    from strata.compat.protobuf.schema import ProtobufSchema
    from strata.serdes.classes.avro_shapes import avro_shape
    from strata.serdes.classes.json_shapes import json_shape

    match schema:
        case AvroSchema():
            return [avro_shape(schema)]
        case JsonSchema():
            return [json_shape(json.loads(schema.canonical), _class_name(subject))]
        case ProtobufSchema():
            from strata.serdes.client import Schema
            from strata.serdes.protobuf.class_shapes import message_shapes
            from strata.serdes.protobuf.files import link

            return message_shapes(link(Schema(schema.source, "PROTOBUF"), {}))
    raise AssertionError(schema)


def _class_name(subject: str) -> str:
    """Return a name for the class of a schema that has none: `orders-value` is `Orders`."""
    words = re.findall(r"[A-Za-z][A-Za-z0-9]*", subject.removesuffix("-value").removesuffix("-key"))
    return "".join(word[:1].upper() + word[1:] for word in words) or "Root"
