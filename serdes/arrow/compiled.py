"""The machine's entry points, compiled at their first call and kept on disk for the next process.

Numba looks only at the file of a function to tell whether what it kept is still right. The functions here are made with
a fingerprint of all sources of the machine among their constants, so that a change in any of them compiles anew.

Compiling takes seconds. Where neither the package nor the user's cache directory can be written to, each process
compiles for itself, unless NUMBA_CACHE_DIR names a directory that can.
"""

import hashlib
import pkgutil
from collections.abc import Callable
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


def _kept(function: Callable[..., Any]) -> Any:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # there is nowhere to keep it
        return numba.njit(**options)(function)


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


run = _make_run(_fingerprint())
run_writer = _make_run_writer(_fingerprint())
