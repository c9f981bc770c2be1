"""Progress of long steps: a bar on a terminal, plain lines elsewhere. All output goes to standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import click

__all__ = ["print_line", "silent", "step", "track"]

_T = TypeVar("_T")
_SILENT: ContextVar[bool] = ContextVar("silent", default=False)
_LINES = 5  # about this many per step


def print_line(text: str) -> None:
    """Print a line to standard error."""
    if not _SILENT.get():
        click.echo(text, err=True)


@contextmanager
def silent() -> Iterator[None]:
    """Report nothing in a block, which is part of a service."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)


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
    if sys.stderr.isatty() and not _SILENT.get():
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
