"""The registry that the clients of this folder talk to."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from harness.registry import RegistryNode


@pytest.fixture(scope="session")
def node_url() -> Iterator[str]:
    """Yield the address of a registry for this test session."""
    with RegistryNode("memory:") as node:
        yield node.url


@pytest.fixture
def name() -> str:
    """Return a name that no other test uses: for topics, subjects and contexts."""
    return f"t{uuid4().hex[:12]}"
