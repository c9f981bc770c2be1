"""The folder for the temporary files of tests: memory, where the system has it.

Tests make some 100,000 small files, and databases that sync them. On a disk they take a tenth more CPU time, and wait.
"""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["use_memory"]

_MEMORY: Final = Path("/dev/shm")
_ENOUGH: Final = 4 << 30


def use_memory() -> None:
    """Have this process and what it starts make temporary files in memory, unless TMPDIR names a folder.

    A container may have a small /dev/shm, or one from which no program runs: then nothing changes.
    """
    if not os.environ.get("TMPDIR") and _fits(_MEMORY):
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # which tempfile has found before


def _fits(folder: Path) -> bool:
    """Return whether a folder takes a run's files, and lets programs among them run."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return False
    return shutil.disk_usage(folder).free >= _ENOUGH and not os.statvfs(folder).f_flag & os.ST_NOEXEC
