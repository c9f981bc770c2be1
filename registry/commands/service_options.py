"""Options that commands share: who asks a service, which certificates are trusted, and the format of the output."""

import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click

__all__ = ["auth_option", "output_option", "print_json", "tls_options"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_TLS = {
    "ca_file": "CA certificates to trust over https (PEM)  [the system's]",
    "cert_file": "client certificate for https (PEM)",
    "key_file": "private key of the client certificate (PEM)  [in its file]",
}

output_option = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", help="format of what is printed  [text]"
)

_Command = TypeVar("_Command", bound=Callable[..., object])


def print_json(content: dict[str, object], *, err: bool = False) -> None:
    """Print one object as JSON, on standard output or on standard error."""
    click.echo(json.dumps(content, indent=2, ensure_ascii=False), err=err)


def auth_option(name: str, of: str) -> Callable[[_Command], _Command]:
    """Return a decorator that adds an option for credentials.

    Args:
        name: the name of the option.
        of: the service that they are for, for the help.
    """
    variable = f"STRATA_{name.upper().replace('-', '_')}"
    text = (
        f"USER:PASSWORD or a bearer token for {of}; @FILE reads it from a file, which may also hold settings such as "
        f"those of OAuth and a proxy, and @- from standard input, so that the list of processes does not show it  "
        f"({variable})"
    )
    return click.option(f"--{name}", envvar=variable, metavar="AUTH", help=text, callback=_secret)


def tls_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for https to a command, which gets them as `tls`."""

    @wraps(command)
    def run(*, ca_file: Path | None, cert_file: Path | None, key_file: Path | None, **options: object) -> None:
        from strata.registry.transfer.tls_files import TlsFiles

        command(tls=TlsFiles(ca_file, cert_file, key_file), **options)

    for name, text in reversed(_TLS.items()):
        variable = f"STRATA_{name.upper()}"
        option = click.option(
            f"--{name.replace('_', '-')}", name, envvar=variable, type=_FILE, help=f"{text}  ({variable})"
        )
        run = option(run)
    return run


def _secret(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Return credentials without the line end of a variable or file, read from the file that `@FILE` names."""
    if value is None or not value.startswith("@"):
        return value and value.rstrip("\r\n")
    try:
        if value == "@-":
            return sys.stdin.readline().rstrip("\r\n")
        return Path(value[1:]).read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise click.BadParameter(f"{value[1:]} cannot be read; expected a text file with the credentials") from None
