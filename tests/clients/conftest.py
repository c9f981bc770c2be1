"""The registry that the clients of this folder talk to."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import certifi
import pytest

from harness.clients import CLIENTS
from harness.passwords import cheap_hash
from harness.registry import RegistryNode
from strata.registry.features.access.auth_file_edits import add_user


@pytest.fixture(scope="session")
def node_url() -> Iterator[str]:
    """Yield the address of a registry for this test session."""
    with RegistryNode("memory:") as node:
        yield node.url


@pytest.fixture(scope="session")
def superuser(tmp_path_factory) -> Iterator[dict[str, str]]:
    """Yield the settings of a client that is a superuser of a registry with access control, for this test session."""
    auth_file = tmp_path_factory.mktemp("access") / "auth.yaml"
    add_user(auth_file, "root", cheap_hash("a password"))
    with RegistryNode("memory:", f"--auth-file={auth_file}", "--superusers=User:root") as node:
        yield {"url": node.url, "basic.auth.user.info": "root:a password"}


@pytest.fixture(scope="session", params=["no access control", "superuser"])
def conf(request, node_url) -> dict[str, str]:
    """Return the settings of a client: of a registry without access control, and of a superuser."""
    return request.getfixturevalue("superuser") if request.param == "superuser" else {"url": node_url}


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
