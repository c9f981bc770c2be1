"""The registry that the clients of this folder talk to."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import certifi
import pytest

from harness.clients import CLIENTS
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


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a file with one of the certificates that clients trust, for those that read the file often."""
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    file = tmp_path_factory.mktemp("trust") / "one.pem"
    file.write_text(first + end)
    return str(file)


@pytest.fixture(scope="session")
def commands() -> Callable[[str], list[str]]:
    """Return a function that builds a client on first use; the test is skipped if the client's toolchain is missing."""
    built: dict[str, list[str]] = {}

    def command(name: str) -> list[str]:
        client = CLIENTS[name]
        if client.missing:
            pytest.skip(f"{name} needs {' and '.join(client.missing)} on the PATH")
        if name not in built:
            built[name] = client.command()
        return built[name]

    return command
