"""Progress of long steps: a bar on a terminal, plain lines elsewhere, or a function in a service.

All output goes to standard error.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import click

__all__ = ["Report", "print_line", "reported", "silent", "step", "track"]

_T = TypeVar("_T")
Report = Callable[[str, int, int], None]
"""Takes the title of a step, how many of its items are done, and how many there are; 0 if that is not known."""
_REPORT: ContextVar[Report | None] = ContextVar("report", default=None)
_LINES = 5  # about this many per step


def print_line(text: str) -> None:
    """Print a line to standard error."""
    if _REPORT.get() is None:
        click.echo(text, err=True)


@contextmanager
def reported(report: Report) -> Iterator[None]:
    """Pass the progress of a block, which is part of a service, to a function instead of printing it."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


def track(title: str, items: Iterable[_T], total: int | None = None) -> Iterator[_T]:
    """Yield items and report the progress.

    Args:
        title: the name of the step.
        items: the items.
        total: their number; None means `len(items)` if they have one.
    """
    count = total if total is not None else (len(items) if isinstance(items, Sized) else 0)
    with step(title, count) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def step(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Report the progress of a step; yield a function that takes the number of newly finished items.

    Args:
        title: the name of the step.
        total: the number of items; 0 if unknown.
    """
    if (report := _REPORT.get()) is not None:
        yield _Passed(title, total, report)
        return
    if sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ModuleNotFoundError:
            pass
        else:
            with Progress(console=Console(stderr=True)) as bar:
                task = bar.add_task(title, total=total or None)
                yield lambda count: bar.advance(task, count)
            return
    yield _Lines(title, total)


def silent(_title: str, _done: int, _total: int) -> None:
    """Report no progress."""


class _Passed:
    """Passes the progress of a step on, item by item."""

    def __init__(self, title: str, total: int, report: Report) -> None:
        self._title, self._total, self._report = title, total, report
        self._done = 0

    def __call__(self, count: int) -> None:
        self._done += count
        self._report(self._title, self._done, self._total)


class _Lines:
    """A progress report in lines: after the first progress, after each fifth of the total, and at the end."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._done = self._reported = 0

    def __call__(self, count: int) -> None:
        self._done += count
        due = not self._reported or self._done - self._reported >= self._total / _LINES or self._done == self._total
        if self._total and due:
            self._reported = self._done
            print_line(f"{self._title}: {self._done} of {self._total}")
