"""The harness's broker starts whatever it draws."""

import secrets

import pytest

from harness.kafka import KafkaBroker


@pytest.mark.kafka
def test_cluster_id_that_begins_with_a_dash(monkeypatch):
    """A random cluster id may begin with a dash, and is no option then."""
    monkeypatch.setattr(secrets, "token_bytes", lambda size: b"\xf8" * size)

    with KafkaBroker() as broker:
        assert broker.bootstrap
