"""Registries with access control."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from harness.guarded_registry import Registry


@pytest.fixture
def guarded() -> Iterator[Callable[..., Registry]]:
    """Start registries with access control."""
    with asyncio.Runner() as runner:
        yield lambda rules=(), log=None, **settings: Registry(runner, rules, log, **settings)
