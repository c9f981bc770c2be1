"""The exit codes of all commands, and the mapping of failures to them.

As with `diff` and `grep`, 1 means a finding and 2 means trouble.
"""

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from functools import wraps

import click

__all__ = ["HELP", "ExitCode", "reporting"]


class ExitCode(IntEnum):
    """The result of a command."""

    DONE = 0
    DIFFERENT = 1
    FAILED = 2
    INTERRUPTED = 130


HELP = (
    "Exit codes: 0 success; 1 differences found (verify, migrate, diff), changes to make (plan), refused (acl test, "
    "ids lower, promote), incompatible (check, compat) or not healthy (health); 2 wrong arguments, wrong settings or a "
    "failure, described on standard error; 130 interrupted."
)


def reporting(command: Callable[..., ExitCode | None]) -> Callable[..., None]:
    """Make a command end the process with its exit code; a failure prints a line to standard error and ends with 2."""

    @wraps(command)
    def run(**options: object) -> None:
        try:
            code = command(**options) or ExitCode.DONE
            sys.stdout.flush()
        except _explained() as error:
            for line in str(error).splitlines():
                click.echo(f"strata: {line}", err=True)
            code = ExitCode.FAILED
        except click.UsageError:
            raise  # click prints it with the usage of the command, and ends with 2
        except (KeyboardInterrupt, click.Abort):  # click raises the latter at a prompt
            click.echo("strata: interrupted", err=True)
            code = ExitCode.INTERRUPTED
        except OSError as error:
            if not isinstance(error, BrokenPipeError):  # `| head` closes the pipe
                click.echo(f"strata: {_system_error(error)}", err=True)
            _drop_output()
            code = ExitCode.FAILED
        except Exception:  # noqa: BLE001 - Python's own exit code 1 would mean a difference
            traceback.print_exc()
            code = ExitCode.FAILED
        sys.exit(code)

    return run


def _explained() -> tuple[type[Exception], ...]:
    """Return the failures whose message is all that the user needs; only a failure needs their modules."""
    from strata.registry.features.access.fields import AuthFileError
    from strata.registry.node.log_opening import StartError
    from strata.registry.node.settings import SettingRefused
    from strata.registry.transfer.copies import TransferError
    from strata.storage.log import LogError
    from strata.storage.sql.compaction import CompactionRefused

    return SettingRefused, StartError, TransferError, LogError, CompactionRefused, AuthFileError


def _system_error(error: OSError) -> str:
    reason = error.strerror or str(error)
    return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"


def _drop_output() -> None:
    """Redirect standard output to /dev/null: otherwise Python's flush at exit would fail and change the exit code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
