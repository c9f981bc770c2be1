"""What the processes of a node cost: computing time and memory, from /proc."""

import os
from contextlib import suppress
from pathlib import Path

from harness.registry import RegistryNode

__all__ = ["cpu_seconds", "pss_mib", "waited_seconds"]

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU time that processes have used, in seconds."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_S


def waited_seconds(pids: list[int]) -> float:
    """Return for how long threads of processes were ready to run and waited for a core, in seconds."""
    waited_ns = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
                waited_ns += int((thread / "schedstat").read_text().split()[1])
    return waited_ns / 1e9


def pss_mib(node: RegistryNode) -> list[float]:
    """Return the PSS of the parent, if there is one, and of each process that serves, in MiB."""
    return [_pss(pid) for pid in (node.pid, *node.workers)]


def _pss(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
