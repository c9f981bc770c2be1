"""The output for the user: steps, two progress bars, a table; plain lines without a terminal.

All other output of this process and its children goes to a file: `quiet` keeps the screen and then redirects the
standard streams, which child processes inherit, to that file.

Rules of this file: output only; nothing about flights and records. `rich` is imported only if there is a terminal.
"""

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from demo.summary import Check

__all__ = ["PlainScreen", "Screen", "open_screen", "quiet"]

_LINE_EVERY_S: Final = 5.0
_HEADINGS: Final = ("", "expected", "found", "")


class Screen(Protocol):
    """The output of the run."""

    def say(self, text: str) -> None:
        """Show one step."""

    def progress(self, published: int, read: int, total: int) -> None:
        """Show the progress of both ends, in records."""

    def table(self, checks: Sequence[Check]) -> None:
        """Show the comparison."""

    def close(self) -> None:
        """Restore the terminal."""


class PlainScreen:
    """Lines of text."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._begun = time.monotonic()
        self._shown = ((-1, -1), 0.0)

    def say(self, text: str) -> None:
        """Print a line with the seconds since the beginning."""
        self._print(f"{time.monotonic() - self._begun:6.1f} s  {text}")

    def progress(self, published: int, read: int, total: int) -> None:
        """Print a line every few seconds, and the last one."""
        (before, at), now = self._shown, time.monotonic()
        done = read == total
        if (published, read) == before or (now - at < _LINE_EVERY_S and not done):
            return
        self._shown = ((published, read), now)
        self.say(f"published {published:>9,} of {total:,}   read {read:>9,}")

    def table(self, checks: Sequence[Check]) -> None:
        """Print the comparison in columns."""
        rows = [_HEADINGS, *map(_cells, checks)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
        for name, expected, found, verdict in rows:
            self._print(f"{name:<{widths[0]}}  {expected:>{widths[1]}}  {found:>{widths[2]}}  {verdict}".rstrip())

    def close(self) -> None:
        """Do nothing."""

    def _print(self, line: str) -> None:
        print(line, file=self._file, flush=True)


class RichScreen:
    """Progress bars at the bottom of the terminal, with lines scrolling above them."""

    def __init__(self, file: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = Console(file=file, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description:<16}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._tasks: tuple[Any, ...] = ()

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._console.print(f"[bold cyan]>[/] {_escaped(text)}")

    def progress(self, published: int, read: int, total: int) -> None:
        """Update the bars; the first call shows them."""
        if not self._tasks:
            self._tasks = tuple(self._bars.add_task(name, total=total) for name in ("published", "read by Spark"))
            self._bars.start()
        for task, done in zip(self._tasks, (published, read), strict=True):
            self._bars.update(task, completed=done)

    def table(self, checks: Sequence[Check]) -> None:
        """Print the comparison, with failed checks in red."""
        from rich.table import Table

        self.close()
        table = Table(*_HEADINGS)
        for column in table.columns[1:3]:
            column.justify = "right"
        for check in checks:
            table.add_row(*map(_escaped, _cells(check)), style="" if check.ok else "bold red")
        self._console.print(table)

    def close(self) -> None:
        """Stop the bars, and leave them on the screen."""
        self._bars.stop()


def open_screen(file: TextIO) -> Screen:
    """Return the screen that fits the file."""
    if file.isatty():
        with contextlib.suppress(ImportError):
            return RichScreen(file)
    return PlainScreen(file)


def quiet(log: Path) -> TextIO:
    """Redirect both standard streams to a file permanently, and return the old standard output.

    The redirection is permanent, since threads of libraries may write until the very end.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    screen = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with log.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    return screen


def _cells(check: Check) -> tuple[str, str, str, str]:
    return check.name, _number(check.expected), _number(check.found), "ok" if check.ok else "FAILED"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
