"""Which tests run in one process, and which begin first.

Tests that share the session's Spark, a JVM for classes in Java, another real service, a browser, a Prometheus,
identity providers, the OpenAPI document or the wheel are one group each; every other file is a group.
"""

from functools import cache
from pathlib import Path
from typing import Final

import pytest

__all__ = ["LONGEST", "SERVICES", "group_of", "is_later", "place_of"]

_TESTS: Final = Path(__file__).resolve().parents[1] / "tests"
# By fixture of a session: the group of the tests that share it, the first that fits.
_FIXTURES: Final = {
    "spark": "spark", "started_jvm": "spark", "run_java": "java", "run_library": "libraries",
    "kafka_broker": "services", "postgres_server": "services",
    "document": "document", "scraped": "prometheus", "identity_providers": "oidc",
    "strata_wheel": "wheel", "chromium_browser": "browser",
}  # fmt: skip
_STARTS: Final = "test_session.py"
# By mark: the group of tests that start or ask for such a service themselves.
_MARKS: Final = {"kafka": "services", "postgres": "services"}
SERVICES: Final = frozenset({*_FIXTURES.values(), *_MARKS.values()})
"""The groups of tests that share a service."""
LONGEST: Final = (
    "spark", "services", "docs/test_documents.py", "java",
    "browser", "registry/test_workers.py", "registry/test_features_apart.py",
    "gitops/test_histories.py", "conformance/test_histories.py", "registry/test_nodes.py", "access/test_tls.py",
    "registry/test_connections.py", "registry/test_forward.py", "registry/test_serve.py",
    "access/test_tls_reload.py", "registry/test_exit_codes.py",
    "registry/test_kept_answers.py", "document",
    "packaging/test_imports.py", "access/test_enforcement.py", "wheel",
    "serdes/test_fuzz.py", "serdes/test_arrow_oracle.py",
)  # fmt: skip
"""The groups that take longest, the longest first: they begin first, so that all processes end at about one time."""
_PLACES: Final = {group: place for place, group in enumerate(LONGEST)}


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


def place_of(group: str) -> int:
    """Return by what to sort groups."""
    return _PLACES.get(group, len(_PLACES))


def is_later(item: pytest.Item) -> bool:
    """Return whether a test comes after those that start the services of its group: each takes seconds."""
    return item.path.name != _STARTS
