"""Which tests run in one process, and which begin first.

Tests that share the session's Spark, a JVM for classes in Java, another real service, a browser, a Prometheus,
identity providers, the OpenAPI document or the wheel are one group each; every other file is a group.
"""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

import pytest

__all__ = ["LONGEST", "SERVICES", "WAITING", "group_of", "ordered", "turn_of"]

_TESTS: Final = Path(__file__).resolve().parents[1] / "tests"
# By fixture of a session: the group of the tests that share it, the first that fits.
_FIXTURES: Final = {
    "spark": "spark", "started_jvm": "spark", "run_java": "java", "run_library": "libraries",
    "kafka_broker": "services", "postgres_server": "services",
    "document": "document", "scraped": "prometheus", "identity_providers": "oidc",
    "strata_wheel": "wheel", "chromium_browser": "browser",
}  # fmt: skip
# By file: when a group's tests of it begin, 1 if no entry. `test_session.py` starts the services, each of which takes
# seconds; what the streams of `test_follow.py` need is loaded and compiled when they come last.
_TURNS: Final = {"test_session.py": 0, "test_follow.py": 2}
# By mark: the group of tests that start or ask for such a service themselves.
_MARKS: Final = {"kafka": "services", "postgres": "services"}
SERVICES: Final = frozenset({*_FIXTURES.values(), *_MARKS.values()})
"""The groups of tests that share a service."""
LONGEST: Final = (
    "spark", "services", "wheel", "browser", "java", "document", "docs/test_documents.py",
    "neighbours/test_standby.py", "libraries", "transfer/test_migrate.py", "packaging/test_imports.py",
    "gitops/test_plan.py", "serdes/test_rules_interop.py", "gitops/test_automation.py",
    "registry/test_kept_answers.py", "gitops/test_histories.py",
)  # fmt: skip
"""The groups that take longest and keep a core busy: they begin first, so that all processes end at about one time.

The browser does not start while Spark and brokers do.
"""
WAITING: Final = (
    "access/test_tls.py", "registry/test_workers.py", "registry/test_serve.py", "oidc",
    "access/test_tls_reload.py", "registry/test_forward.py", "prometheus",
    "registry/test_connections.py", "events/test_service.py", "registry/test_traces.py", "events/test_tls.py",
    "registry/test_metrics_of_a_node.py", "registry/test_operator_log.py", "registry/test_metrics_of_limits.py",
    "gitops/test_closed.py", "registry/test_usage.py", "faults/test_runs.py", "registry/test_health.py",
    "serdes/test_managed_identity.py", "access/test_access_nodes.py", "spark/test_executor.py",
    "faults/test_parts.py", "transfer/test_https.py", "access/test_tls_extension.py",
)  # fmt: skip
"""The groups that mostly wait for time to pass, the longest first: they are spread among the others."""


def group_of(item: pytest.Item) -> str:
    """Return the name of a test's group."""
    fixtures = {*getattr(item, "fixturenames", ())}
    by_fixture = (group for fixture, group in _FIXTURES.items() if fixture in fixtures)
    by_mark = (group for mark, group in _MARKS.items() if item.get_closest_marker(mark))
    return next(by_fixture, None) or next(by_mark, None) or _file(item.path)


@cache
def _file(path: Path) -> str:
    """Return the name of a file of tests."""
    return path.relative_to(_TESTS).as_posix()


def ordered(groups: Iterable[str]) -> list[str]:
    """Return groups in the order in which they begin: the longest, and then those that wait evenly among all others."""
    given = {*groups}
    busy = sorted(given.difference(LONGEST, WAITING))
    waiting = [group for group in WAITING if group in given]
    places: list[tuple[float, str]] = [(place, group) for place, group in enumerate(busy)]
    places += [(place * len(busy) / len(waiting), group) for place, group in enumerate(waiting)]
    return [*(group for group in LONGEST if group in given), *(group for _, group in sorted(places))]


def turn_of(item: pytest.Item) -> int:
    """Return when a test begins in its group; those that need PostgreSQL alone are first, while Spark starts beside."""
    is_early = item.get_closest_marker("postgres") and not item.get_closest_marker("kafka")
    return _TURNS.get(item.path.name, 1) - (2 if is_early else 0)
