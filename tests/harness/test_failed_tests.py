"""What failed is run again under the names that pytest takes, and is tolerated only if the list names it."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from harness.failed_tests import KNOWN, KnownTest, arguments, main, unknown

ROOT = Path(__file__).resolve().parents[2]

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


LISTED = [
    KnownTest("tests/a/test_b.py::test_c", "the broker is slow to start", date(2026, 11, 1)),
    KnownTest("tests/a/test_b.py::test_d[x]", "the same", date(2026, 11, 1)),
]
# a failed test, whether the list tolerates it
FAILED = [
    ("tests/a/test_b.py::test_c", True),
    ("tests/a/test_b.py::test_c[any]", True),
    ("tests/a/test_b.py::test_d[x]", True),
    ("tests/a/test_b.py::test_d[y]", False),
    ("tests/a/test_b.py::test_cc", False),
    ("tests/b/test_b.py::test_c", False),
]


@pytest.mark.parametrize(("name", "is_tolerated"), FAILED)
def test_the_list_tolerates_what_it_names(name: str, is_tolerated: bool) -> None:
    """A listed name stands for the test and all of its parameters, or for the one parameter that it names."""
    assert ([] if is_tolerated else [name]) == unknown([name], LISTED)


def test_a_test_that_is_not_listed_fails_the_run(tmp_path: Path) -> None:
    """A test that failed and passed alone ends the run with 1, and the output names it."""
    (tmp_path / "failed.args").write_text("tests/a/test_b.py::test_c\n")
    said: list[str] = []

    assert 1 == main(["judge", str(tmp_path / "failed.args")], said.append)
    assert ["tests/a/test_b.py::test_c"] == [line.partition(" ")[0] for line in said]


def test_each_listed_test_exists_and_has_a_reason_and_a_date() -> None:
    """The list names tests that exist, each with a sentence and a day that has come."""
    for known in KNOWN:
        file, _, name = known.name.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text()
        assert len(known.reason.split()) >= 4
        assert known.since <= datetime.now(UTC).date()


FLAKY = """
from pathlib import Path

def test_steady():
    pass

def test_flaky():
    mark = Path("has-run")
    ran = mark.exists()
    mark.touch()
    assert ran
"""


def test_the_recipe_of_make_fails_for_a_test_that_passes_alone(tmp_path: Path) -> None:
    """The commands of `make test`, run where one test fails the first time only, end with an error that names it."""
    (tmp_path / "test_x.py").write_text(FLAKY)
    shown = subprocess.run(
        ["make", "--dry-run", "--assume-old=setup", "PARALLEL=", "test"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    recipe = next(line for line in shown.splitlines() if "harness.failed_tests" in line)
    recipe = re.sub(r"\S*bin/pytest", f"{sys.executable} -m pytest", recipe)
    recipe = re.sub(r"\S*bin/python ", f"PYTHONPATH={ROOT} {sys.executable} ", recipe)

    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin"}  # starts faster

    done = subprocess.run(
        ["sh", "-c", recipe], cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=280, check=False
    )

    assert "1 failed, 1 passed" in done.stdout
    assert "test_x.py::test_flaky failed beside other tests and passed alone" in done.stdout
    assert 1 == done.returncode
