"""Registries with access control."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from harness.guarded_registry import Registry


@pytest.fixture(scope="session")
def document() -> None:
    """Let the tests that ask for the OpenAPI document run in the process that makes it (`harness/groups.py`)."""


@pytest.fixture
def guarded() -> Iterator[Callable[..., Registry]]:
    """Start registries with access control."""
    with asyncio.Runner() as runner:
        yield lambda rules=(), log=None, **settings: Registry(runner, rules, log, **settings)
