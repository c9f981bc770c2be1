"""The settings of the Python process that serves: garbage collection and thread switching.

Start-up imports the service and replays the log. Neither leaves garbage cycles, and repeated collections would take a
quarter of the import time and double the time of replay. The replayed State then lives as long as the process, so
later collections skip it.
"""

import gc
import os
import sys
import time
from pathlib import Path

__all__ = ["begin_start", "end_start", "process_age"]

_SWITCH_SECONDS = 0.001  # a read waits this long for each computing thread; Python's default of 0.005 is too long
# Requests leave almost no cycles (tests/registry/test_garbage.py). By Python's defaults (700, 10, 10), full collections
# follow every few hundred registrations, and stop the process for up to 0.1 s.
_COLLECTIONS = 10_000, 10, 100

_START_TICKS = 19  # the 22nd field of proc_pid_stat(5), counted after the name: clock ticks after boot
_IMPORTED = time.monotonic()


def begin_start() -> None:
    """Suspend garbage collection until `end_start`, and let pydantic look for its plugins in no package."""
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    sys.setswitchinterval(_SWITCH_SECONDS)


def end_start() -> None:
    """Exempt everything in memory from garbage collection, and resume it."""
    gc.set_threshold(*_COLLECTIONS)
    gc.freeze()
    gc.enable()


def process_age() -> float:
    """Return how long this process has existed, in seconds, counted from its fork if it is one.

    A system that does not say it counts from the import of this module.
    """
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()  # the name may hold spaces
        begun = int(fields[_START_TICKS]) / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime(time.CLOCK_BOOTTIME) - begun
    except (OSError, ValueError, IndexError):
        return time.monotonic() - _IMPORTED
