"""Registries that follow each other, and the command line."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from click.testing import CliRunner

from harness.neighbours import Registry, served
from strata.registry.commands.cli import main


@pytest.fixture
def serve() -> Iterator[Callable[..., Registry]]:
    """Yield a function that serves a log until the test ends."""
    with ExitStack() as stack:
        yield lambda log_url, **settings: stack.enter_context(served(log_url, **settings))


@pytest.fixture
def strata() -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs a command of `strata` and returns its exit code, output and errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
        return result.exit_code, result.stdout, result.stderr

    return run
