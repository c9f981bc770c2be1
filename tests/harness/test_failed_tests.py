"""What failed is run again under the names that pytest takes."""

import json

import pytest

from harness.failed_tests import arguments

# a name as pytest keeps it, as it takes it
NAMES = [
    ("tests/a/test_b.py::test_c@services", "tests/a/test_b.py::test_c"),
    ("tests/a/test_b.py::test_c[d]@test_b.py", "tests/a/test_b.py::test_c[d]"),
    ("tests/a/test_b.py::test_c[x@y]", "tests/a/test_b.py::test_c[x@y]"),
    ("tests/a/test_b.py::test_c", "tests/a/test_b.py::test_c"),
]


@pytest.mark.parametrize(("kept", "taken"), NAMES)
def test_a_name_has_no_group(kept: str, taken: str) -> None:
    """The group that pytest-xdist puts behind a name goes, and nothing else."""
    assert [taken] == arguments(json.dumps({kept: True}))


def test_no_failure_is_an_error() -> None:
    """Without names, pytest would run everything."""
    with pytest.raises(ValueError, match="no test failed"):
        arguments("{}")
