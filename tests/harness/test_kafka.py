"""The harness's broker starts with any random cluster id."""

import secrets

import pytest

from harness.kafka import KafkaBroker


@pytest.mark.slow
@pytest.mark.kafka
def test_cluster_id_that_begins_with_a_dash(monkeypatch):
    """A random cluster id may begin with a dash, and does not count as an option."""
    monkeypatch.setattr(secrets, "token_bytes", lambda size: b"\xf8" * size)

    with KafkaBroker() as broker:
        assert broker.bootstrap
