"""The command line: `strata serve` and what stands beside it. Heavy imports wait until a command needs them."""

import sys
from enum import StrEnum
from typing import Any

import click

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="strata-registry", prog_name="strata")
def main() -> None:
    """Strata, a schema registry: versioned schemas, and the rules by which they evolve."""


def _setting_options(command: Any) -> Any:
    """Give a command one flag for each setting, described as the setting is."""
    from registry.settings import PREFIX, Settings

    for name, field in reversed(Settings.model_fields.items()):
        is_flag = field.annotation is bool
        default = "" if field.default is None or is_flag else f"  [{field.default}]"
        command = click.option(
            f"--{name.replace('_', '-')}",
            name,
            is_flag=is_flag,
            metavar=None if is_flag else _metavar(field.annotation),
            default=None,
            help=f"{field.description}{default}  ({PREFIX}{name.upper()})",
        )(command)
    return command


def _metavar(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "|".join(kind)
    return "NUMBER" if kind in (int, float) else "TEXT"


class _ServeCommand(click.Command):
    """Adds the flags of the settings when the command is used, not when the module is imported."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._complete = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._complete:
            bearer = _setting_options(lambda: None)
            self.params = [*reversed(bearer.__click_params__), *self.params]
            self._complete = True
        return super().get_params(ctx)


@main.command(cls=_ServeCommand)
def serve(**flags: Any) -> None:
    """Serve the registry over a log, until SIGTERM or SIGINT.

    Every flag can also be given as the environment variable in round brackets; a flag wins over its variable.
    """
    from registry.server import StartError, run
    from registry.settings import SettingRefused, load_settings

    try:
        settings = load_settings(**flags)
    except SettingRefused as error:
        for line in str(error).splitlines():
            click.echo(f"strata: {line}", err=True)
        sys.exit(2)
    try:
        run(settings)
    except StartError as error:
        click.echo(f"strata: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
