"""Which tests run in one process, and which begin first."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.groups import LONGEST, SERVICES, WAITING, group_of, ordered, turn_of

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", [*LONGEST, *WAITING])
def test_each_group_of_a_table_exists(name: str) -> None:
    """A group with a place of its own is a file of tests, or one of those that share a service."""
    assert name in SERVICES or (TESTS / name).is_file()


def test_the_longest_begin_first() -> None:
    """Groups begin in the order of the table, and all others after them."""
    assert [*LONGEST, "harness/test_groups.py"] == ordered(["harness/test_groups.py", *reversed(LONGEST)])


def test_groups_that_wait_are_apart() -> None:
    """Between two groups that mostly wait, there are as many others as between two others of them."""
    others = [f"x/test_{number}.py" for number in range(2 * len(WAITING))]
    order = ordered([*others, *WAITING])

    assert list(WAITING) == order[::3]
    assert sorted(others) == [group for group in order if group in others]


@pytest.mark.parametrize(
    ("name", "marks", "expected"),
    [
        pytest.param("test_session.py", {"postgres"}, -2, id="what starts PostgreSQL"),
        pytest.param("test_pen.py", {"postgres"}, -1, id="PostgreSQL"),
        pytest.param("test_session.py", {"kafka"}, 0, id="what starts services"),
        pytest.param("test_pen.py", {"kafka"}, 1, id="a broker"),
        pytest.param("test_nodes.py", {"kafka", "postgres"}, 1, id="both"),
        pytest.param("test_follow.py", set(), 2, id="streams into tables"),
    ],
)
def test_turns(name: str, marks: set[str], expected: int) -> None:
    """Within a group, the tests that start its services come before all others but those of PostgreSQL."""
    item = SimpleNamespace(path=TESTS / "kafka" / name, get_closest_marker=marks.__contains__)

    assert expected == turn_of(item)  # type: ignore[arg-type]  # of a test it reads the path and marks


def test_a_file_is_a_group(request: pytest.FixtureRequest) -> None:
    """A test that shares no service is in the group of its file."""
    assert "harness/test_groups.py" == group_of(request.node)
