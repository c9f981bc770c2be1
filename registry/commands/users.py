"""`strata user add`, `remove` and `list`, which change the auth file of `strata serve`."""

import sys
from pathlib import Path

import click

from strata.registry.commands.exit_codes import reporting

__all__ = ["user"]

_MOST_BYTES = 1024
_LEAST_CHARACTERS = 8
_auth_file = click.option(
    "--auth-file",
    required=True,
    envvar="STRATA_AUTH_FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="the auth file, which --auth-file of `strata serve` names  (STRATA_AUTH_FILE)",
)


@click.group()
def user() -> None:
    """Add, remove and list the users of an auth file.

    A running service reads the changed file within two seconds. The file is written for its owner only; comments in
    it are not kept.
    """


@user.command()
@click.argument("name")
@_auth_file
@click.option("--password-stdin", is_flag=True, help="read the password from standard input  [ask for it]")
@click.option("--generate", is_flag=True, help="draw a random password and print it, for a program")
@click.option("--role", help="role of the user: consumer, producer, owner, viewer or admin")
@click.option("--on", multiple=True, metavar="SUBJECT", help="subject of the role, PREFIX* or *; repeatable")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="group of the user; repeatable")
@click.option("--replace", is_flag=True, help="change the password, role or groups of a user")
@reporting
def add(
    name: str,
    *,
    auth_file: Path,
    password_stdin: bool,
    generate: bool,
    role: str | None,
    on: tuple[str, ...],
    groups: tuple[str, ...],
    replace: bool,
) -> None:
    """Add a user with a password.

    The file is created if there is none.

    \b
    strata user add ci --auth-file auth.yaml --generate --role producer --on 'orders-*'
    strata user add ada --auth-file auth.yaml --password-stdin --role admin < password.txt
    """  # noqa: D301 - click wants the character itself
    from secrets import token_urlsafe

    from strata.registry.features.access.auth_file_edits import add_user
    from strata.registry.features.access.passwords import hash_password

    if on and role is None:
        raise click.UsageError("--on needs --role")
    if generate and password_stdin:
        raise click.UsageError("--generate and --password-stdin exclude each other")
    password = token_urlsafe(32) if generate else _password(from_stdin=password_stdin)
    hashed = hash_password(password)
    had_comments = add_user(auth_file, name, hashed, role=role, on=on, groups=groups, replace=replace)
    if generate:
        click.echo(password)
    _note(had_comments, auth_file)


@user.command()
@click.argument("name")
@_auth_file
@reporting
def remove(name: str, *, auth_file: Path) -> None:
    """Remove a user, with the roles and rules of the file that name the user; rules in the log stay."""
    from strata.registry.features.access.auth_file_edits import remove_user

    _note(remove_user(auth_file, name), auth_file)


@user.command("list")
@_auth_file
@reporting
def list_(*, auth_file: Path) -> None:
    """List the users with their groups, and with the roles given to them alone."""
    from strata.registry.features.access.auth_file_edits import list_users

    for name, groups, roles in list_users(auth_file):
        facts = [*roles, *(f"group {group}" for group in groups)]
        click.echo(f"{name}: {', '.join(facts) or 'no role'}")


def _password(*, from_stdin: bool) -> str:
    from strata.registry.node.settings import SettingRefused

    if from_stdin:
        data = sys.stdin.buffer.read(_MOST_BYTES + 3)
        try:
            password = data.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError:
            raise SettingRefused("the password is not UTF-8") from None
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    if len(password) < _LEAST_CHARACTERS or len(password.encode()) > _MOST_BYTES:
        raise SettingRefused(
            f"expected a password of at least {_LEAST_CHARACTERS} characters and at most {_MOST_BYTES} bytes"
        )
    return password


def _note(had_comments: bool, path: object) -> None:
    if had_comments:
        click.echo(f"strata: the comments in {path} were removed", err=True)
