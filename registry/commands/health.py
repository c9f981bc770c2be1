"""`strata health`: one request to a health route, for containers and scripts.

It runs every few seconds beside a node, so it imports the standard library and click alone.
"""

import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from strata.imports import deferred

if TYPE_CHECKING:
    import http.client as http_client
    import ssl
else:  # other commands do not need them
    http_client, ssl = deferred("http.client"), deferred("ssl")

__all__ = ["health"]

_READY = "/health/ready"
_LISTEN = "127.0.0.1:8081"
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - an address to compare with, not to listen on
_MOST_BYTES = 64 << 10
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("target", default=_READY, metavar="[URL|PATH]")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="S",
    help="seconds to wait for the connection, and for each part of the answer",
)
@click.option("--ca-file", envvar="STRATA_CA_FILE", type=_FILE, help="CA certificates to trust over https (PEM)")
@click.option("--cert-file", envvar="STRATA_CERT_FILE", type=_FILE, help="client certificate for https (PEM)")
@click.option("--key-file", envvar="STRATA_KEY_FILE", type=_FILE, help="its private key (PEM)  [in its file]")
@click.option("--insecure", is_flag=True, help="do not check the certificate of the node")
def health(
    target: str, *, timeout: float, ca_file: Path | None, cert_file: Path | None, key_file: Path | None, insecure: bool
) -> None:  # fmt: skip
    """Ask a node for its health: /health/ready, or the path in the URL.

    PATH alone asks the node on this machine, at the address of STRATA_LISTEN, over https if STRATA_TLS_CERTFILE is set.
    Its certificate is for its public name, so it is not checked then.

    Exit codes: 0 the node answers 200; 1 it answers anything else, or does not answer; 2 wrong arguments.
    """
    is_own = not target.lower().startswith(("http://", "https://"))
    if is_own and not target.startswith("/") and ":" in target:
        raise click.UsageError(f"{target} is not a URL; expected http://{target} or a path such as {_READY}")
    url = _own_url(target, os.environ) if is_own else target
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host:
        raise click.UsageError(f"{target} is not a URL such as http://localhost:8081 or a path such as {_READY}")
    connection = http_client.HTTPConnection(host, port, timeout=timeout)
    if parts.scheme == "https":
        context = _context(ca_file, cert_file, key_file, is_checked=not (is_own or insecure))
        connection = http_client.HTTPSConnection(host, port, timeout=timeout, context=context)
    try:
        with closing(connection):
            connection.request("GET", parts.path if len(parts.path) > 1 else _READY)
            with connection.getresponse() as response:
                said = response.read(_MOST_BYTES).decode("utf-8", "replace").strip()
                status = response.status
    except (OSError, http_client.HTTPException) as error:
        click.echo(f"strata: {parts.scheme}://{parts.netloc.rpartition('@')[2]} does not answer: {error}", err=True)
        raise SystemExit(1) from None
    click.echo(said if status == 200 else f"{status} {_reason(said)}")
    raise SystemExit(0 if status == 200 else 1)


def _own_url(path: str, variables: Mapping[str, str]) -> str:
    """Return the URL of the node that these variables configure."""
    host, _, port = variables.get("STRATA_LISTEN", _LISTEN).rpartition(":")
    scheme = "https" if variables.get("STRATA_TLS_CERTFILE") else "http"
    return f"{scheme}://{_ANYWHERE.get(host, host)}:{port}/{path.removeprefix('/')}"


def _context(
    ca_file: Path | None, cert_file: Path | None, key_file: Path | None, *, is_checked: bool
) -> "ssl.SSLContext":
    """Return a TLS context.

    Raises:
        UsageError: if a file cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if cert_file:
            context.load_cert_chain(cert_file, key_file)
    except OSError as error:
        raise click.UsageError(f"--ca-file, --cert-file or --key-file cannot be used: {error}") from None
    if not is_checked:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _reason(said: str) -> str:
    """Return the reason in an answer, or the answer."""
    try:
        return str(json.loads(said)["reason"])
    except (ValueError, KeyError, TypeError):
        return said
