"""The commands for schemas in Git; each is imported when it is used."""

import builtins
from importlib import import_module

import click

from strata import __version__

__all__ = ["COMMANDS", "Commands", "command_named", "main"]

COMMANDS = {
    "apply": "plan",
    "check": "check",
    "codegen": "codegen",
    "compat": "subjects",
    "completion": "subjects",
    "config": "subjects",
    "contract": "contract",
    "delete": "subjects",
    "edit": "subjects",
    "diff": "dump",
    "dump": "dump",
    "get": "subjects",
    "keys": "keys",
    "list": "subjects",
    "mode": "subjects",
    "plan": "plan",
    "register": "subjects",
    "replay": "replay",
    "table-ddl": "tables",
    "undelete": "subjects",
}
"""Command -> the module in `commands` that defines it under the same name; an underscore follows a name of Python."""


class Commands(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        return command_named(cmd_name)


def command_named(name: str) -> click.Command:
    """Return one of the commands."""
    module = import_module(f"strata.gitops.commands.{COMMANDS[name]}")
    attribute = name.replace("-", "_")
    command: click.Command = getattr(module, f"{attribute}_" if hasattr(builtins, name) else attribute)
    return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="strata")
def main() -> None:
    """Check, plan and apply the schemas of a Git repository."""
