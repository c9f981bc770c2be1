"""The command for tables: the statement that makes the table that a schema means."""

import click

from strata.compat.logical.ddl import DIALECTS
from strata.gitops.commands.running import connected, reporting, service_at, version_at
from strata.gitops.errors import GitopsError

__all__ = ["table_ddl"]

_UNION = "confluent:union"


@click.command("table-ddl", short_help="Print the table that a subject's schema means.")
@click.argument("subject")
@click.argument("version", type=int, required=False)
@click.option("--format", "dialect", type=click.Choice(list(DIALECTS)), required=True, help="the engine")
@click.option("--table", help="the name of the table  [the subject without -value, as a name]")
@click.option("--not-null", is_flag=True, help="columns that always have a value are NOT NULL")
@connected
@reporting
def table_ddl(
    *, subject: str, version: int | None, dialect: str, table: str | None, not_null: bool, connection: dict[str, object]
) -> None:
    """Print the statement that makes the table that a version of SUBJECT means, by default the latest.

    Documentation of fields becomes comments. Columns may be null, so that the table can follow later versions. In
    Spark, `strata.spark_udfs.tables.follow` makes and changes such a table by itself.
    """
    from strata.compat.limits import DEFAULT_LIMITS
    from strata.compat.logical.ddl import table_name, table_statement
    from strata.compat.logical.policy import translate
    from strata.compat.logical.types import TranslationError
    from strata.compat.schema import SchemaParseError
    from strata.gitops.versions import Parser

    service = service_at(connection)
    known = version_at(service, subject, version)
    try:
        schema = Parser([service]).parse(known, strict=False)
        properties = (known.metadata or {}).get("properties") or {}
        logical = translate(schema, properties.get(_UNION, ""), DEFAULT_LIMITS)
        text = table_statement(
            logical, table or table_name(subject.rpartition(":")[2].removesuffix("-value")), dialect, not_null=not_null
        )
    except (SchemaParseError, TranslationError) as error:
        raise GitopsError(f"version {known.version} of {subject} is not a table: {error}") from None
    click.echo(text, nl=False)
