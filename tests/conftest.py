"""How examples are chosen; and real services, one of each per session, started when the first test asks for one."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from harness.kafka import KafkaBroker
from harness.postgres import Postgres

# Unless told otherwise a test of random examples tries the same ones every time: a change of the code makes it fail,
# not a change of the weather. New ones come with `--hypothesis-profile=explore`, which is what `make test-all` does.
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")  # Hypothesis's own: no chance, no deadline, no complaint about a slow machine

_SLOW_S = 1800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give what is slow more time, unless it says itself how much."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SLOW_S))


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
