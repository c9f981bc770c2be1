"""A command runs to its end while its processes pause."""

import subprocess
import sys

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
sys.exit(child.wait())
"""
CHILD = """
import sys, time
began, last, longest = time.monotonic(), time.monotonic(), 0
while longest < 0.2 and last < began + 60:
    now = time.monotonic()
    longest, last = max(longest, now - last), now
sys.exit(7 if longest >= 0.2 else 1)
"""


def test_processes_pause_and_go_on():
    """A process that the command has started pauses and goes on; the exit code is that of the command."""
    pauses = [sys.executable, "-m", "harness.pauses", "--seed=1", "--every=0.1", "--longest=0.4", "--"]
    done = subprocess.run(
        [*pauses, sys.executable, "-c", PARENT, CHILD], capture_output=True, text=True, timeout=120, check=False
    )
    assert 7 == done.returncode, done.stderr
    assert "pauses of 0.1 to 0.4 s" in done.stdout
