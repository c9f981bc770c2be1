"""Buckets that the workers of a node share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.registry.node.buckets import Buckets

MOST = 1000


class Clock:
    """A clock that only the test moves."""

    def __init__(self):
        self.now = 5_000_000

    def __call__(self):
        """Return the time in microseconds."""
        return self.now


class Model:
    """One bucket, as a number that falls with time."""

    def __init__(self):
        self.level = 0

    def pour(self, amount):
        """Do what `Buckets.pour` does."""
        if amount > 0 and self.level + amount > MOST:
            return self.level + amount - MOST
        self.level = max(0, self.level + amount)
        return 0


STEPS = st.lists(st.tuples(st.integers(0, 2), st.integers(-600, 600), st.integers(0, 700)), max_size=40)


@given(STEPS)
def test_buckets_fill_and_drain(steps):
    """Whatever is poured when, each bucket is as full as a number that falls with time."""
    clock = Clock()
    buckets, models = Buckets(clock, cells=64), [Model() for _ in range(3)]
    clients = [hash(("client", number)) for number in range(3)]
    for who, amount, later in steps:
        assert models[who].pour(amount) == buckets.pour(clients[who], amount, MOST)
        assert models[who].level == buckets.level_us(clients[who])
        clock.now += later
        for model in models:
            model.level = max(0, model.level - later)


def test_a_client_near_its_limit_is_not_forgotten():
    """Any number of new clients takes the places of those whose buckets are emptier."""
    buckets, busy = Buckets(Clock(), cells=64), hash("busy")
    buckets.pour(busy, MOST, MOST)
    for number in range(5000):
        client = hash(("new", number))
        if (client ^ busy) & 0xFFFF:  # two clients of one tag may share a bucket
            assert 0 == buckets.pour(client, 1, MOST)

    assert 1 == buckets.pour(busy, 1, MOST)


@pytest.mark.parametrize("client", [0, -1, 1 << 16, 2**63 - 1, -(2**63)])
def test_any_hash_is_a_client(client):
    """Hashes are signed, and may be zero."""
    buckets = Buckets(Clock(), cells=64)

    assert [0, 0, MOST // 2] == [buckets.pour(client, MOST // 2, MOST) for _ in range(3)]
