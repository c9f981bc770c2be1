"""`strata codegen`: Python classes for the schema of a subject."""

from typing import Any

import click

from strata.gitops.commands.running import connected, reporting, service_at, version_at
from strata.gitops.errors import GitopsError

__all__ = ["codegen"]


@click.command(short_help="Write Python classes for a subject's schema.")
@click.argument("subject")
@click.argument("version", type=int, required=False)
@click.option("--as", "style", type=click.Choice(("dataclass", "pydantic", "msgspec")), default="dataclass",
              help="the library  [dataclass]")  # fmt: skip
@connected
@reporting
def codegen(*, subject: str, version: int | None, style: str, connection: dict[str, Any]) -> None:
    """Print a Python module with classes for a version of SUBJECT, by default the latest; Avro only.

    A serializer takes the class instead of a schema, and makes the same schema from it: AvroSerializer(client, Order).
    """
    from strata.compat.avro.model import AvroSchema
    from strata.compat.schema import SchemaParseError
    from strata.gitops.versions import Parser
    from strata.serdes.classes.code import class_source
    from strata.serdes.errors import SchemaError

    service = service_at(connection)
    known = version_at(service, subject, version)
    try:
        schema = Parser([service]).parse(known, strict=False)
        if not isinstance(schema, AvroSchema):
            raise GitopsError(f"{subject} has {known.format} schemas; classes are written for AVRO only")
        click.echo(class_source(schema, style, f"{subject}, version {known.version}"), nl=False)
    except (SchemaParseError, SchemaError) as error:
        raise GitopsError(f"version {known.version} of {subject} has no classes: {error}") from None
