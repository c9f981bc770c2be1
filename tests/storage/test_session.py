"""The process that forks nodes starts, and PostgreSQL.

Each takes a second or more, which would be that of the first test that needs it.
"""

import pytest

from faults.nursery import Nursery
from harness.postgres import Postgres
from harness.registry import RegistryNode

pytestmark = pytest.mark.postgres


def test_a_forked_node(nursery: Nursery) -> None:
    """A node that was forked is ready."""
    with RegistryNode("memory:", start=nursery.start) as node:
        assert node.port > 0


def test_the_session_s_server(postgres_server: Postgres) -> None:
    """Each new database has its own address."""
    assert postgres_server.new_database() != postgres_server.new_database()
