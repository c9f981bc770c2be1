"""Tests run in processes that fork after the collection, and pytest reports them as if it had run them itself."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = """
import json, os, pytest
from pathlib import Path
from harness.forked_groups import GROUP
LOG = Path(__file__).with_name("log")
COLLECTED_BY = os.getpid()

def say(**what):
    with LOG.open("a") as file:
        file.write(json.dumps({"pid": os.getpid(), "by": COLLECTED_BY, **what}) + "\\n")

def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name in ("test_a.py", "test_b.py"):
            item.stash[GROUP] = "shared"

@pytest.fixture(scope="session")
def service():
    say(service="started")
    yield os.getpid()
    say(service="stopped")

@pytest.fixture(autouse=True)
def noted(request, service, tmp_path):
    say(test=request.node.name, service_of=service, folder=str(tmp_path))
"""
FILES = {
    "conftest.py": CONFTEST,
    "test_a.py": "def test_first(): pass\ndef test_second(): pass\n",
    "test_b.py": "def test_third(): pass\n",
    "test_c.py": "import os\ndef test_shown(): os.write(1, b'what it wrote'); assert not 'a reason'\n",
    "test_d.py": "def test_first(): pass\n",
    "test_e.py": (
        "import os, signal\ndef test_before(): pass\ndef test_killed(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "def test_exit(): os._exit(7)\ndef test_after(): pass\n"
    ),
}


def run(folder: Path, *options: str, **files: str) -> tuple[int, str, list[dict[str, object]]]:
    """Run files of tests in two processes; return the exit code, the output, and what the tests noted."""
    for name, text in {**FILES, **files}.items():
        (folder / name).write_text(text)
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}  # starts faster
    command = [sys.executable, "-m", "pytest", "-p", "harness.forked_groups", "-ra", "--processes=2", *options]
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, timeout=250, check=False)
    log = folder / "log"
    return done.returncode, done.stdout, [*map(json.loads, log.read_text().splitlines())] if log.exists() else []


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, list[dict[str, object]]]:
    """Return what a run of the files above did."""
    return run(tmp_path_factory.mktemp("tests"))


def test_every_test_is_run_once_and_reported(ran):
    """The parent counts all results, and ends with the code of failed tests."""
    code, shown, noted = ran
    tests = [one["test"] for one in noted if "test" in one]
    assert 1 == code, shown
    assert "3 failed, 6 passed" in shown
    once = {"test_second", "test_third", "test_shown", "test_before", "test_killed", "test_exit", "test_after"}
    assert Counter({"test_first": 2, **dict.fromkeys(once, 1)}) == Counter(tests)


def test_a_failure_is_shown_with_its_output(ran):
    """The report of a test that fails holds its reason and what its process wrote, and nothing of another's."""
    _, shown, _ = ran
    assert "FAILED test_c.py::test_shown" in shown
    assert "assert not 'a reason'" in shown
    assert 1 == shown.count("what it wrote\n"), shown


def test_tests_are_collected_once(ran):
    """The processes fork from the one that collected, which runs no test."""
    _, _, noted = ran
    assert 1 == len({one["by"] for one in noted})
    assert set() == {one["by"] for one in noted} & {one["pid"] for one in noted}


def test_a_group_shares_the_fixtures_of_a_session(ran):
    """Tests of a group run in one process in their order, which starts a fixture of the session once and stops it."""
    _, _, noted = ran
    shared = [one for one in noted if one.get("test") in ("test_second", "test_third")]
    assert ["test_second", "test_third"] == [one["test"] for one in shared]
    assert 1 == len({one["pid"] for one in shared})
    for pid in {one["pid"] for one in noted}:
        started = [one["service"] for one in noted if one["pid"] == pid and "service" in one]
        assert started in (["started", "stopped"], ["started"])  # a process that died stopped nothing
    assert all(one["service_of"] == one["pid"] for one in noted if "test" in one)


def test_processes_share_no_folder(ran):
    """Tests of the same name in two processes get folders of their own."""
    _, _, noted = ran
    folders = [one["folder"] for one in noted if one.get("test") == "test_first"]
    assert 2 == len({*folders})


def test_a_process_that_dies_fails_its_test_alone(ran):
    """The test is named with what ended the process, and another process runs the rest of the group."""
    _, shown, noted = ran
    assert "FAILED test_e.py::test_killed - the process ended by SIGKILL" in shown
    assert "FAILED test_e.py::test_exit - the process ended with 7" in shown
    by_name = {one["test"]: one["pid"] for one in noted if "test" in one}
    assert 3 == len({by_name[name] for name in ("test_killed", "test_exit", "test_after")})


def test_the_first_failure_ends_all_processes(tmp_path):
    """With `-x`, a test that another process is running ends too. The cache of pytest names what failed."""
    code, shown, _ = run(tmp_path, "-x", **{"test_f.py": "import time\ndef test_waits(): time.sleep(600)\n"})
    assert 1 == code, shown
    assert "stopping after 1 failures" in shown
    kept = json.loads((tmp_path / ".pytest_cache/v/cache/lastfailed").read_text())
    assert 1 == len([name for name in kept if name.startswith(("test_c.py::", "test_e.py::"))]), kept
