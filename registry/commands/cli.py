"""The command line: `strata serve` and the other commands. Heavy imports wait until a command needs them."""

import os
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import TypeVar

import click

from strata import __version__
from strata.registry.commands.acls import acl
from strata.registry.commands.exit_codes import HELP, ExitCode, reporting
from strata.registry.commands.health import health
from strata.registry.commands.ids import ids
from strata.registry.commands.promote import promote
from strata.registry.commands.transfer import COMMANDS
from strata.registry.commands.usage import usage
from strata.registry.commands.users import user
from strata.registry.node.process import begin_start
from strata.registry.variables import unknown_variables

__all__ = ["main"]

_Command = TypeVar("_Command", bound=Callable[..., object])


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=HELP)
@click.version_option(__version__, prog_name="strata")
@click.pass_context
def main(context: click.Context) -> None:
    """Run Strata, a schema registry, or work on its data."""
    if context.invoked_subcommand != serve.name:  # serve logs them
        for sentence in unknown_variables(os.environ):
            click.echo(f"strata: {sentence}", err=True)


@cache
def _setting_options() -> list[click.Parameter]:
    """Return an option for each setting, with the setting's description; those of other classes come last."""
    from strata.registry.node.settings import PREFIX, CoreSettings
    from strata.registry.settings import Settings

    fields = sorted(Settings.model_fields.items(), key=lambda field: field[0] not in CoreSettings.__annotations__)
    bearer = click.Command(None)
    for name, field in reversed(fields):
        is_flag = field.annotation is bool
        default = "" if field.default is None or is_flag else f"  [{field.default}]"
        click.option(
            f"--{name.replace('_', '-')}",
            name,
            is_flag=is_flag,
            metavar=None if is_flag else _metavar(field.annotation),
            default=None,
            help=f"{field.description}{default}  ({PREFIX}{name.upper()})",
        )(bearer)
    return bearer.params[::-1]


def _metavar(type_: object) -> str:
    if isinstance(type_, type) and issubclass(type_, StrEnum):
        return "|".join(type_)
    return "NUMBER" if type_ in (int, float, int | None) else "TEXT"


class _ServeCommand(click.Command):
    """A command whose setting options are built on use instead of on import."""

    _complete = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._complete:
            begin_start()
            self.params = [*_setting_options(), *self.params]
            self._complete = True
        return super().get_params(ctx)


@main.command(cls=_ServeCommand)
@reporting
def serve(**flags: object) -> ExitCode:
    """Serve the registry over HTTP until SIGTERM or SIGINT.

    Every flag can also be set by the environment variable in parentheses; a flag takes precedence over its variable.
    """
    from strata.registry.node.settings import PREFIX, LogFormat
    from strata.registry.settings import load_settings

    try:
        settings = load_settings(**flags)
        from strata.registry.server import run

        run(settings)
    except Exception as error:
        if (str(flags["log_format"] or "") or os.environ.get(f"{PREFIX}LOG_FORMAT", "")).lower() != LogFormat.JSON:
            raise
        from strata.registry.server import report_failure

        report_failure(error)
        return ExitCode.FAILED
    return ExitCode.DONE


def _log_arguments(command: _Command) -> _Command:
    """Add the log's URL and the option for its client's settings to a command."""
    config = click.option(
        "--kafka-config", help="file with librdkafka settings for a Kafka log (TLS, SASL), one NAME=VALUE per line"
    )
    return click.argument("log")(config(command))


@main.command()
@_log_arguments
@click.option("--dry-run", is_flag=True, help="report what would be dropped, and drop nothing")
@reporting
def compact(log: str, kafka_config: str | None, dry_run: bool) -> None:
    """Drop superseded records from a SQL log.

    LOG is the URL of the log, such as sqlite:///strata.db. Nodes may serve it meanwhile.

    Offsets do not change, and no schema id is ever reused. Before anything is dropped, the command checks that the
    remaining records result in the same schemas, ids and settings.
    """
    from strata.registry.commands.log import compact_log
    from strata.registry.settings import load_settings

    compact_log(load_settings(log=log, kafka_config=kafka_config), dry_run=dry_run, say=click.echo)


@main.command("log")
@_log_arguments
@click.option("--set-aside", is_flag=True, help="only records that nodes ignore as invalid, with the reason")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="only the last N of them")
@reporting
def show_log(log: str, kafka_config: str | None, set_aside: bool, tail: int | None) -> None:
    """List the records of a log as JSON lines.

    LOG is the URL of the log, such as sqlite:///strata.db. Nodes may serve it meanwhile.
    """
    from strata.registry.commands.log import listed_lines
    from strata.registry.settings import load_settings

    for line in listed_lines(load_settings(log=log, kafka_config=kafka_config), set_aside=set_aside, tail=tail):
        sys.stdout.buffer.write(line)


for _command in (*COMMANDS, promote, user, acl, ids, usage, health):
    main.add_command(_command)


if __name__ == "__main__":
    main()
