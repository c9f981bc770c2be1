"""`strata ids`: show and lower the highest schema id of a context of a running service."""

from typing import TYPE_CHECKING

import click

from strata.registry.commands.exit_codes import ExitCode, reporting
from strata.registry.commands.service_options import auth_option, tls_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strata.registry.transfer.rest import Connection
    from strata.registry.transfer.tls_files import TlsFiles

__all__ = ["ids"]

_CONTEXT = click.option("--context", default=".", metavar="CONTEXT", help="the context  [.]")


@click.group()
def ids() -> None:
    """Show and lower the highest schema id of a context of a running service (docs/access.md)."""


@ids.command()
@click.argument("url")
@_CONTEXT
@auth_option("auth", "the service")
@tls_options
@reporting
def show(url: str, *, context: str, auth: str | None, tls: "TlsFiles") -> None:
    """Print the highest id that a context has assigned, and the highest that one of its versions has."""
    connection, path = _place(url, auth, tls, context)
    click.echo(_shown(connection.get(path)))


@ids.command()
@click.argument("url")
@_CONTEXT
@click.option("--to", type=click.IntRange(0), metavar="ID", help="the new highest id  [the highest that a version has]")
@click.option("--accept-reuse", is_flag=True, help="lower it: ids that clients may have seen get other schemas")
@auth_option("auth", "the service")
@tls_options
@reporting
def lower(url: str, *, context: str, to: int | None, accept_reuse: bool, auth: str | None, tls: "TlsFiles") -> ExitCode:
    """Lower the highest id of a context, so that ids which no version has any more are assigned again.

    This helps after an import under a far too high id. Delete what has the id for good first. Records and clients may
    hold the ids above the new one: they will read other schemas under them, so choose an id above all that were used.
    Without --accept-reuse the command only says what would happen, and exits with 1.

    \b
    strata ids lower http://localhost:8081 --auth @admin --to 5000 --accept-reuse
    """  # noqa: D301 - click wants the character itself
    connection, path = _place(url, auth, tls, context)
    before = connection.get(path)
    highest = before["highestInUse"] if to is None else to
    if highest >= before["highestId"]:
        click.echo(_shown(before))
        click.echo("strata: the highest id is not above that; nothing was changed", err=True)
        return ExitCode.DONE
    concerned = f"ids {highest + 1} to {before['highestId']}"
    if not accept_reuse:
        click.echo(f"{concerned} would be assigned again; records and clients may hold them")
        click.echo("strata: nothing was changed; add --accept-reuse to lower the highest id", err=True)
        return ExitCode.DIFFERENT
    after = connection.must("PUT", path, {"highestId": highest})
    click.echo(_shown(after))
    click.echo(f"strata: warning: {concerned} are assigned again; records and clients may hold them", err=True)
    return ExitCode.DONE


def _place(url: str, auth: str | None, tls: "TlsFiles", context: str) -> tuple["Connection", str]:
    from strata.http.paths import segment
    from strata.registry.transfer.rest import Connection

    return Connection(url, auth, tls), f"/v1/highest-ids/{segment(context)}"


def _shown(context: "Mapping[str, object]") -> str:
    return f"context {context['context']}: the highest id is {context['highestId']}, in use {context['highestInUse']}"
