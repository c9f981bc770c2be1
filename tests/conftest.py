"""Real services, one of each per test session, started when the first test asks for one."""

from collections.abc import Iterator

import pytest

from harness.kafka import KafkaBroker
from harness.postgres import Postgres


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    """The session's one-node cluster; a test that kills nodes starts its own."""
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """The session's server; a test that kills it starts its own."""
    with Postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> str:
    """An empty database of the session's server."""
    return postgres_server.new_database()
