"""The exit codes of every command, and how a failure becomes one.

As with `diff` and `grep`, 1 is a finding and 2 is trouble.
"""

import sys
from collections.abc import Callable
from enum import IntEnum
from functools import wraps
from typing import Any

import click

__all__ = ["HELP", "ExitCode", "reporting"]


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    DIFFERENT = 1
    FAILED = 2
    INTERRUPTED = 130


HELP = (
    "Exit codes of every command: 0 done; 1 done, and something differs; 2 not done because of wrong arguments, wrong "
    "settings or a failure that standard error names; 130 interrupted."
)


def reporting(command: Callable[..., ExitCode | None]) -> Callable[..., None]:
    """End the process with a command's exit code; a failure is a line on standard error and `FAILED`."""

    @wraps(command)
    def run(**options: Any) -> None:
        from registry.server import StartError
        from registry.settings import SettingRefused
        from registry.transfer.copies import TransferError
        from storage.compaction import CompactionRefused
        from storage.log import LogError

        try:
            code = command(**options) or ExitCode.DONE
        except (SettingRefused, StartError, TransferError, LogError, CompactionRefused) as error:
            for line in str(error).splitlines():
                click.echo(f"strata: {line}", err=True)
            code = ExitCode.FAILED
        except KeyboardInterrupt:
            click.echo("strata: interrupted", err=True)
            code = ExitCode.INTERRUPTED
        sys.exit(code)

    return run
