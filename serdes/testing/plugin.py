"""Fixtures of pytest: put `pytest_plugins = ["strata.serdes.testing.plugin"]` into conftest.py."""

from collections.abc import Iterator

import pytest

from strata.serdes.client import RegistryClient

__all__ = ["registry_client"]


@pytest.fixture
def registry_client() -> Iterator[RegistryClient]:
    """Yield a client of an empty registry in this process, a new one for each test."""
    with RegistryClient("mock://") as client:
        yield client
