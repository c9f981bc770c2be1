"""Processes that the harness starts do not outlive it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import processes
from harness.processes import free_port, start_tied, stop_process, tail

_SCRIPT = """
import os, signal, sys
from pathlib import Path
from threading import Thread
from harness.processes import start_tied

started = []
starter = Thread(target=lambda: started.append(start_tied(["sleep", "600"], log=Path(sys.argv[1]))))
starter.start()
starter.join()
print(started[0].pid, started[0].poll(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a process to its parent")
def test_a_process_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """A process outlives the thread that started it, but SIGKILL of the parent process ends it, too."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / "log")], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    pid, status = done.stdout.split()
    assert status == "None"
    deadline = time.monotonic() + 60
    while _runs(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(int(pid))


def test_the_output_of_a_process_is_in_its_log(tmp_path: Path) -> None:
    """The log of a process keeps its last output for error messages."""
    log = tmp_path / "log"
    process = start_tied(["sh", "-c", "echo one; echo two >&2; exit 3"], log=log)
    assert process.wait(60) == 3
    assert tail(log, lines=1) == "two"
    assert tail(tmp_path / "none") == "(its log is empty)"


def test_stopping_twice(tmp_path: Path) -> None:
    """A process that ignores SIGTERM is killed; stopping an ended process does nothing."""
    process = start_tied(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"], log=tmp_path / "log")
    while "ready" not in tail(tmp_path / "log"):
        time.sleep(0.01)
    stop_process(process, grace_s=0.2)
    assert process.returncode == -signal.SIGKILL
    stop_process(process)
    assert not _runs(process.pid)


def test_free_ports_stay_free() -> None:
    """Free ports are below the range that the kernel uses for outgoing connections."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]) if os.name == "posix" else 32768
    assert all(1024 < free_port() < lowest for _ in range(20))


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """`free_port` never returns the same port twice, even if the first caller has not bound it yet."""
    monkeypatch.setattr(processes, "_PORTS", range(31_000, 31_060))
    given: list[int] = []
    with pytest.raises(RuntimeError, match="No free port"):
        given.extend(free_port() for _ in range(61))
    assert len(given) == len(set(given))


def test_ports_are_given_once_among_processes():
    """Two processes that run at the same time never get the same port."""
    port = free_port()
    code = f"from harness import processes; processes._PORTS = range({port}, {port} + 1); processes.free_port()"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "No free port" in other.stderr
