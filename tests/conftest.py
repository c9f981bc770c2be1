"""The choice of random examples; and real services, one of each per session, started when the first test needs one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from harness.environments import build_wheel
from harness.kafka import KafkaBroker
from harness.postgres import Postgres

# By default a test of random examples uses the same examples every time, so that only a change of the code makes it
# fail. `--hypothesis-profile=explore`, which `make test-all` uses, draws new ones.
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")  # no randomness, no deadline, no health check for slow machines

_SLOW_S = 1800
_SERVICES = {"spark": "spark", "kafka": "services", "postgres": "services"}


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests more time, unless a test sets its own time-out; group the tests that share fixtures.

    With `-n 2` the tests of a group run in one process: those on Spark, those on other real services, and each file.
    """
    for item in items:
        group = next((group for mark, group in _SERVICES.items() if item.get_closest_marker(mark)), item.path.name)
        item.add_marker(pytest.mark.xdist_group(group))
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_SLOW_S))


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker]:
    """Yield the session's one-node cluster; a test that kills nodes starts its own."""
    with KafkaBroker() as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Yield the session's server; a test that kills it starts its own."""
    with Postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> str:
    """Return an empty database on the session's server."""
    return postgres_server.new_database()


@pytest.fixture(scope="session")
def strata_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the session's wheel of this checkout; `harness.environments` installs it."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))
