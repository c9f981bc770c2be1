"""Says how far a long step is: a bar on a terminal, plain lines elsewhere. Everything goes to standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

import click

__all__ = ["step", "tell", "walk"]

_T = TypeVar("_T")
_LINES = 5  # about so many for one step


def tell(text: str) -> None:
    """Say one line."""
    click.echo(text, err=True)


def walk(title: str, items: Iterable[_T], total: int | None = None) -> Iterator[_T]:
    """Yield the items, and say how many are done."""
    count = total if total is not None else (len(items) if isinstance(items, Sized) else 0)
    with step(title, count) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def step(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Begin a step of so many parts; the call that it gives says that some more are done."""
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


class _Lines:
    """One line when a step has begun to move, then each time another fifth is done, and at the end."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total = title, total
        self._done = self._told = 0

    def __call__(self, count: int) -> None:
        self._done += count
        due = not self._told or self._done - self._told >= self._total / _LINES or self._done == self._total
        if self._total and due:
            self._told = self._done
            tell(f"{self._title}: {self._done} of {self._total}")
