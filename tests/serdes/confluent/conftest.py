"""Fixtures: what a program registers for all serializers of the process ends with its test."""

from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry.rule_registry import RuleRegistry as TheirRegistry

from strata.serdes.confluent.rule_registry import RuleRegistry


@pytest.fixture(autouse=True)
def global_registries() -> Iterator[None]:
    """Empty the global registries of rules of both packages after each test."""
    yield
    for one in (TheirRegistry, RuleRegistry):
        registry = one.get_global_instance()
        for executor in registry.get_executors():
            executor.close()  # that of encryption has connections
        registry.clear()
