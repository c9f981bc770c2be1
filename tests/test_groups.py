"""Tests that share fixtures run in one process."""

import pytest


def test_each_file_is_a_group(request: pytest.FixtureRequest) -> None:
    """With `--dist loadgroup` pytest-xdist appends the group to the test's id; it did not with pytest 9.2."""
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("runs with --dist loadgroup only")

    assert request.node.nodeid.endswith("@test_groups.py")
