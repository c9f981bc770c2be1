"""Batch decoder and encoder access only the memory that they are given: a fault would end the process."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("guard_pages.py")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pages are closed by mprotect")


def run(*arguments):
    """Run the program; return how it ended and what it printed."""
    done = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("seeds", ["30", pytest.param("100", marks=pytest.mark.slow)])
@pytest.mark.parametrize("side", ["start", "end"])
def test_memory_between_guard_pages(side, seeds):
    """Random, truncated and damaged payloads decode and encode, with each buffer flush with a guard page."""
    assert (0, "decoded\n", "") == run(side, seeds)


@pytest.mark.parametrize(
    "mistake", ["padding of columns", "padding of constants", "end of the frames", "end of the output"]
)
def test_a_wrong_bound_is_caught(mistake):
    """The program can fail: a buffer or bound that is wrong by a few bytes ends it with a memory fault."""
    assert -signal.SIGSEGV == run("end", "40", mistake)[0]
