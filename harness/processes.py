"""Child processes that end with the process that started them, even if it is killed, and loopback ports for them.

Run as a script, this file is the launcher: it asks the kernel to kill it together with its parent, then executes the
given command. Linux kills a child when the *thread* that started it ends, so all children are started from one thread
that lives as long as the interpreter.
"""

import contextlib
import ctypes
import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Process", "free_port", "is_running", "start_tied", "state_of", "stop_process", "tail"]

_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="harness-starter")
_PR_SET_PDEATHSIG = 1
# Below the range from which the kernel picks ports for outgoing connections, so that a free port stays free for a
# restart.
_PORTS = range(20_000, 32_000)
_TRIES = 2_000
_given: set[int] = set()
_LOOPBACK = "127.0.0.1"


def start_tied(command: Sequence[str], *, log: Path, user: int | None = None) -> subprocess.Popen[bytes]:
    """Start a command that ends with this process, and append its output to `log`.

    Args:
        command: the program and its arguments.
        log: the file for its output.
        user: the id of the user that runs it; the current user if None.
    """
    launcher = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(os.getpid()), str(user or 0)]
    with log.open("ab") as output:
        return _STARTER.submit(
            subprocess.Popen,
            [*launcher, *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ).result()


class Process(Protocol):
    """The methods of `subprocess.Popen` that the harness uses."""

    @property
    def pid(self) -> int:
        """The process id."""
        ...

    @property
    def returncode(self) -> int | Any:
        """The exit code, None until the exit was noticed."""
        ...

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process to exit and return the exit code."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless the process has exited."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...


def stop_process(process: Process, *, grace_s: float = 0) -> None:
    """Stop a process: with SIGTERM first if there is a grace period, then with SIGKILL."""
    if process.poll() is None and grace_s:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
    if process.poll() is None:
        process.kill()
    process.wait()


def is_running(pid: int) -> bool:
    """Return whether a process, of any parent, runs; a zombie does not."""
    return state_of(pid) not in ("Z", "X", "")


def state_of(pid: int) -> str:
    """Return the letter that the system gives for the state of a process; nothing if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def free_port() -> int:
    """Return a loopback port that no process listens on.

    Each port is returned once, also among concurrent processes: its user may not have bound it yet, or may start a
    server there again, and clients remember a server by its address.

    Raises:
        RuntimeError: there is no free port.
    """
    for _ in range(_TRIES):
        (port,) = random.sample(_PORTS, 1)
        if port in _given or not _reserved(port):
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_LOOPBACK, port))
            except OSError:
                continue
            _given.add(port)
            return port
    raise RuntimeError(f"No free port on {_LOOPBACK} between {_PORTS.start} and {_PORTS.stop}")


def _reserved(port: int) -> bool:
    """Reserve a port for this process until it exits; return False if another process has it."""
    # A lock of one byte for each port; the kernel releases it with the process.
    try:
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _reservations() -> int:
    path = Path(tempfile.gettempdir()) / f"strata-harness-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def tail(log: Path, lines: int = 40) -> str:
    """Return the last lines of a log file, for an error message."""
    text = log.read_text(errors="replace") if log.exists() else ""
    return "\n".join(text.splitlines()[-lines:]) or "(its log is empty)"


def _become(parent: int, user: int, command: list[str]) -> None:
    # The user first: changing it clears the request to die with the parent.
    if user:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the request. Its id reads as 0 from inside another PID namespace.
    if os.getppid() not in {parent, 0}:
        sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    _become(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
