"""The cores that this process may use: those of its affinity, and the CPU quota of its control groups."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["usable_cores"]


def usable_cores(cgroups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Return how many cores this process may use, at least 1.

    A quota of control groups, version 1 or 2, counts as its rounded number of cores. A container sees its own group at
    the root of the file system; a service of the machine finds it by its path. The smallest quota on that path counts.

    Args:
        cgroups: where the control groups are mounted.
        own: the file that names the groups of this process.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = (quota for folder in _folders(cgroups, own) if (quota := _quota(folder)) is not None)
    return max(1, min([cores, *map(round, quotas)]))


def _folders(cgroups: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of the groups that can limit this process, up to the roots."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    for line in ("0::/", "0:cpu:/", *lines):
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            root = cgroups / "cpu" if controllers else cgroups
            group = PurePosixPath(path.lstrip("/"))
            yield from (root / part for part in (group, *group.parents))


def _quota(folder: Path) -> float | None:
    """Return the quota of a group in cores; None if it has none."""
    for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        try:
            quota, period = " ".join((folder / file).read_text() for file in files).split()
            return int(quota) / int(period) if int(quota) > 0 else None
        except (OSError, ValueError):  # no such group; the quota is "max"
            continue
    return None
