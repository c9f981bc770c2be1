"""Batch decoder and encoder access only the memory that they are given: a fault would end the process."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from strata.serdes.arrow import entry_points

PROGRAM = Path(__file__).with_name("guard_pages.py")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pages are closed by mprotect")


SIDES = ["start", "end"]
MISTAKES = ["padding of columns", "padding of constants", "end of the frames", "end of the output"]


def run(*runs):
    """Run the program: for each run the side of the guard page, the number of seeds, and a mistake."""
    command = [sys.executable, PROGRAM, json.dumps(runs)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def answer():
    """Return what the program says after a run for each side and mistake; it starts once for all of them."""
    entry_points.run(0)
    runs = [*((side, 5) for side in SIDES), *(("end", 40, mistake) for mistake in MISTAKES)]
    return run(*runs)


@pytest.fixture
def ends(answer):
    """Return how the runs ended, by side or mistake."""
    return dict(zip([*SIDES, *MISTAKES], answer["ends"], strict=True))


@pytest.mark.parametrize("side", SIDES)
def test_memory_between_guard_pages(ends, side):
    """Random, truncated and damaged payloads decode and encode, with each buffer flush with a guard page."""
    assert 0 == ends[side]


@pytest.mark.slow
def test_more_memory_between_guard_pages():
    """The same with more seeds."""
    assert [0, 0] == run(*((side, 100) for side in SIDES))["ends"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_bound_is_caught(ends, mistake):
    """The program can fail: a buffer or bound that is wrong by a few bytes ends it with a memory fault."""
    assert -signal.SIGSEGV == ends[mistake]


def test_compiled_once(answer):
    """A process reuses the code that another process compiled."""
    assert answer["was compiled"]
