"""The entry points of compiled code: the two VMs, and messages of Kafka.

Each is compiled at the first call, and cached on disk for the next process.

Numba validates a cached function by the file of that function only. The functions here have a fingerprint of all
compiled sources among their constants, so a change in any of these files causes a cache miss.

Compiling takes seconds. The cache is next to the package or in the user's cache directory, unless NUMBA_CACHE_DIR names
another place. If neither is writable, or the package is in a zip as Spark ships it, the cache is in a folder of this
user under the temporary directory.
"""

import hashlib
import os
import pkgutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import numba

from strata.serdes.arrow import decoding_vm, encoding_vm, messages

__all__ = ["run", "run_messages", "run_writer"]

_SOURCES = (
    "vm_state.py",
    "operations.py",
    "memory.py",
    "numbers.py",
    "output.py",
    "decimals.py",
    "vm_values.py",
    "decoding_vm.py",
    "encoding_vm.py",
    "messages.py",
)


def _fingerprint() -> int:
    digest = hashlib.sha256(numba.__version__.encode())
    for name in _SOURCES:
        digest.update(pkgutil.get_data(__package__ or "", name) or b"")
    return int.from_bytes(digest.digest()[:6], "big")


_FINGERPRINT = _fingerprint()


def _kept(function: Callable[[int], int]) -> Callable[[int], int]:
    """Return the compiled function, cached in the first writable place."""
    for place in (lambda: Path(__file__), _own_place):
        file = place()
        if file is None or not file.exists():
            continue
        # Numba stores the cache next to the file that a function claims to come from.
        function.__code__ = function.__code__.replace(co_filename=str(file))
        try:
            return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        except RuntimeError:  # the place is not writable
            continue
    return numba.njit(nogil=True, error_model="numpy")(function)


def _own_place() -> Path | None:
    """Return a file in a folder where no other user may write, since its cached code is executed, or else None."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"strata-numba-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o022 or status.st_uid != user:
            return None
        file = folder / f"machine_{_FINGERPRINT:x}.py"
        file.touch()
    except OSError:
        return None
    return file


_decode, _write, _run_step = decoding_vm.run, encoding_vm.run, messages.run
"""Globals, because Numba compares constants of functions by value, and functions differ in each process."""


def _make_run(fingerprint: int) -> Callable[[int], int]:
    def run(state: int) -> int:
        return fingerprint if state == 0 else _decode(state)

    return _kept(run)


def _make_run_writer(fingerprint: int) -> Callable[[int], int]:
    def run_writer(state: int) -> int:
        return fingerprint if state == 0 else _write(state)

    return _kept(run_writer)


def _make_run_messages(fingerprint: int) -> Callable[[int], int]:
    def run_messages(job: int) -> int:
        return fingerprint if job == 0 else _run_step(job)

    return _kept(run_messages)


run = _make_run(_FINGERPRINT)
run_writer = _make_run_writer(_FINGERPRINT)
run_messages = _make_run_messages(_FINGERPRINT)
