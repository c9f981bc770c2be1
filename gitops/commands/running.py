"""How commands end, and the options that they share."""

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from strata.gitops.errors import GitopsError

if TYPE_CHECKING:
    from strata.gitops.service import Service
    from strata.gitops.versions import Held

__all__ = ["connected", "environment_option", "manifest_option", "reporting", "service_at", "version_at"]

_FAILED, _INTERRUPTED = 2, 130
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
manifest_option = click.option(
    "-f", "--file", "manifests", multiple=True, metavar="FILE", help="manifest; repeatable  [strata.yaml]"
)
environment_option = click.option("--env", "environment", metavar="NAME", help="section of `environments` to add")


def reporting(command: Callable[..., int | None]) -> Callable[..., None]:
    """Make a command end the process with its exit code; a failure is one line on standard error and ends with 2."""

    @wraps(command)
    def run(**options: object) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a schema may hold half of a character pair
                stream.reconfigure(errors="backslashreplace")
        try:
            code = command(**options) or 0
            sys.stdout.flush()
        except GitopsError as error:
            click.echo(f"strata: {error}", err=True)
            code = _FAILED
        except KeyboardInterrupt as interruption:
            click.echo(f"strata: interrupted: {interruption}".removesuffix(": "), err=True)
            code = _INTERRUPTED
        except BrokenPipeError:  # `| head` closes the pipe
            _drop_output()
            code = _FAILED
        except OSError as error:
            click.echo(f"strata: {error.strerror or error}", err=True)
            _drop_output()
            code = _FAILED
        except click.ClickException:
            raise
        except Exception as error:  # noqa: BLE001 - Python's own exit code 1 has a meaning here
            if _is_of_client(error):
                click.echo(f"strata: {error}", err=True)
            else:
                traceback.print_exc()
            code = _FAILED
        sys.exit(code)

    return run


def _drop_output() -> None:
    """Redirect standard output to /dev/null: otherwise Python's flush at exit would fail and change the exit code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def connected(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options for a registry to a command, which gets them as `connection`."""

    @wraps(command)
    def run(
        *, url: str | None, profile: str | None, auth: str | None, ca_file: Path | None, cert_file: Path | None,
        key_file: Path | None, **options: object,
    ) -> object:  # fmt: skip
        tls = {"ca_file": ca_file, "cert_file": cert_file, "key_file": key_file}
        connection = {"url": url, "profile": profile, "auth": auth, **tls}
        source = click.get_current_context().get_parameter_source
        by_name = source("profile") is ParameterSource.COMMANDLINE
        weak = {name for name in connection if by_name and source(name) is ParameterSource.ENVIRONMENT}
        return command(connection={**connection, "weak": weak}, **options)

    for option in reversed(_CONNECTION):
        run = option(run)
    return run


_CONNECTION = (
    click.option("--url", envvar="STRATA_URL", help="the registry  (STRATA_URL)"),
    click.option("--profile", envvar="STRATA_PROFILE", help="profile with URL and credentials  (STRATA_PROFILE)"),
    click.option(
        "--auth",
        envvar="STRATA_AUTH",
        metavar="AUTH",
        help="USER:PASSWORD or a bearer token; @FILE reads it from a file, which may also hold settings such as those "
        "of OAuth and a proxy  (STRATA_AUTH)",
    ),
    click.option("--ca-file", envvar="STRATA_CA_FILE", type=_FILE, help="CA certificates  (STRATA_CA_FILE)"),
    click.option("--cert-file", envvar="STRATA_CERT_FILE", type=_FILE, help="client certificate  (STRATA_CERT_FILE)"),
    click.option("--key-file", envvar="STRATA_KEY_FILE", type=_FILE, help="its private key  (STRATA_KEY_FILE)"),
)


def service_at(connection: dict[str, Any], url: str | None = None, planned: str | None = None) -> "Service":
    """Return the registry of the options of `connected`.

    Args:
        connection: the options.
        url: a URL that takes precedence.
        planned: the URL of a plan, if neither the options nor the profile has one.

    Raises:
        GitopsError: If there is no URL, or a setting is wrong.
    """
    from strata.gitops.profiles import connect

    if url is not None:
        connection = {**connection, "url": url, "weak": connection["weak"] - {"url"}}
    return connect(connection, planned)


def _is_of_client(error: Exception) -> bool:
    from strata.serdes.errors import SerdeError

    return isinstance(error, SerdeError)


def version_at(service: "Service", subject: str, number: int | None) -> "Held":
    """Return a version of a subject; None for the number is the latest.

    Raises:
        GitopsError: If the registry does not have it.
    """
    known = service.version(subject, number)
    if known is None:
        raise GitopsError(f"{subject} has no {'versions' if number is None else f'version {number}'}")
    return known
