"""The registry that the tools of this folder talk to."""

from collections.abc import Iterator

import pytest

from harness.registry import RegistryNode


@pytest.fixture(scope="session")
def node() -> Iterator[RegistryNode]:
    """Yield a registry without access control for this test session."""
    with RegistryNode("memory:") as node:
        yield node
