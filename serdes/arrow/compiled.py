"""The machine's entry points, compiled at their first call and kept on disk for the next process.

Numba looks only at the file of a function to tell whether what it kept is still right. The functions here are made with
a fingerprint of all sources of the machine among their constants, so that a change in any of them compiles anew.

Compiling takes seconds. What it makes is kept beside the package or in the user's cache directory, unless
NUMBA_CACHE_DIR names another one; where neither can be written to, or the package lies in a zip as Spark ships it, in a
folder of the user's own under the temporary directory.
"""

import hashlib
import os
import pkgutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from serdes.arrow import machine, writer

__all__ = ["run", "run_writer"]

_SOURCES = (
    "state.py",
    "operations.py",
    "memory.py",
    "numbers.py",
    "output.py",
    "decimals.py",
    "values.py",
    "machine.py",
    "writer.py",
)


def _fingerprint() -> int:
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _SOURCES:
        digest.update(pkgutil.get_data(__package__ or "", name) or b"")
    return int.from_bytes(digest.digest()[:6], "big")


_FINGERPRINT = _fingerprint()


def _kept(function: Callable[..., Any]) -> Any:
    """The compiled function, kept in the first place that takes it."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    for place in (lambda: Path(__file__), _own_place):
        file = place()
        if file is None or not file.exists():
            continue
        # Numba keeps code beside the file that a function says it comes from.
        function.__code__ = function.__code__.replace(co_filename=str(file))
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # it cannot be written to
            continue
    return numba.njit(**options)(function)


def _own_place() -> Path | None:
    """A file in a folder that nobody else may write to: what is kept there will be run."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"strata-numba-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o022 or found.st_uid != user:
            return None
        file = folder / f"machine_{_FINGERPRINT:x}.py"
        file.touch()
    except OSError:
        return None
    return file


_decode, _write = machine.run, writer.run
"""Globals, since Numba compares the constants of a function by value: these would differ in each process."""


def _make_run(fingerprint: int) -> Any:
    def run(state: int) -> int:
        return fingerprint if state == 0 else _decode(state)

    return _kept(run)


def _make_run_writer(fingerprint: int) -> Any:
    def run_writer(state: int) -> int:
        return fingerprint if state == 0 else _write(state)

    return _kept(run_writer)


run = _make_run(_FINGERPRINT)
run_writer = _make_run_writer(_FINGERPRINT)
