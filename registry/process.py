"""The settings of the Python process that serves: garbage collection and thread switching.

Start-up imports the service and replays the log. Neither leaves garbage cycles, and repeated collections would take a
quarter of the import time and double the time of replay. The replayed State then lives as long as the process, so
later collections skip it.
"""

import gc
import sys

__all__ = ["begin_start", "end_start"]

_SWITCH_SECONDS = 0.001  # a read waits this long for each computing thread; Python's default of 0.005 is too long


def begin_start() -> None:
    """Suspend garbage collection until `end_start`."""
    gc.disable()
    sys.setswitchinterval(_SWITCH_SECONDS)


def end_start() -> None:
    """Exempt everything in memory from garbage collection, and resume it."""
    gc.freeze()
    gc.enable()
