"""The command `strata`: the commands for schemas in Git, those of the registry, or a line that names an extra."""

import gc
import sys
from typing import Any

from strata.imports import MissingExtra

__all__ = ["main"]


def main() -> None:
    """Run the command line.

    Raises:
        SystemExit: always, with the exit code.
    """
    gc.disable()  # imports leave no garbage to collect
    try:
        command_line = _command_line(sys.argv[1:])
    except MissingExtra as error:
        sys.stderr.write("".join(f"strata: {line}\n" for line in str(error).splitlines()))
        sys.exit(2)
    gc.enable()
    command_line()


def _command_line(arguments: list[str]) -> Any:
    """Return the group with the named command.

    A check of schema files, which runs at each commit, imports nothing of the registry.

    Raises:
        MissingExtra: a package is not installed that the command needs.
    """
    name = next((one for one in arguments if not one.startswith("-")), None)
    if name == "health":
        return _health()
    try:
        from strata.gitops.cli import COMMANDS, command_named
        from strata.gitops.cli import main as for_schemas
    except MissingExtra as error:
        return _of_registry(error if name not in (None, "serve") else None)
    if name in COMMANDS:
        return for_schemas
    try:
        of_registry = _of_registry(None)
    except MissingExtra:
        if name is not None:
            raise
        return for_schemas
    for known in COMMANDS if name is None else ():  # for `--help` and completion
        of_registry.add_command(command_named(known), known)
    return of_registry


def _health() -> Any:
    """Return a group with the health check alone, which runs every few seconds beside a node.

    Raises:
        MissingExtra: the registry is not installed.
    """
    import click

    from strata.registry.commands.health import health

    return click.Group("strata", commands=[health])


def _of_registry(besides: MissingExtra | None) -> Any:
    """Return the commands of the registry.

    Raises:
        MissingExtra: the registry is not installed; the message also has that of another missing extra.
    """
    try:
        from strata.registry.commands.cli import main
    except MissingExtra as error:
        raise MissingExtra("\n".join(str(one) for one in (besides, error) if one)) from None
    return main
