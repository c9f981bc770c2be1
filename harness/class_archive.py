"""Archives of the classes that a JVM loads while it starts (class data sharing).

A Kafka broker and a Spark session start with half of the CPU time then. The first who asks writes the archive, beside
the jars in the cache. A JVM ignores an archive of another class path or another JVM, and is as slow as without it.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.jars import cache_folder, locked

__all__ = ["shared_classes", "writing_classes"]


def shared_classes(name: str, jars: Sequence[Path], write: Callable[[Path], object]) -> list[str]:
    """Return the options by which a JVM reads the classes of some jars from their archive.

    Args:
        name: what the archive is called.
        jars: the class path.
        write: runs a JVM with the options of `writing_classes` for a file until it exits by itself.

    Returns:
        The options; none if the JVM wrote no archive.
    """
    java = Path(shutil.which("java") or "java").resolve()
    parts = [f"{path} {path.stat().st_mtime_ns}" for path in (java, *jars)]
    archive = cache_folder() / f"{name}-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:12]}.jsa"
    if not archive.exists():
        with locked(archive.with_suffix(".lock")):
            if not archive.exists():
                written = archive.with_suffix(f".{os.getpid()}")
                write(written)
                written.touch()
                written.rename(archive)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.stat().st_size else []


def writing_classes(file: Path) -> str:
    """Return the option by which a JVM writes the classes that it has loaded to a file when it exits."""
    return f"-XX:ArchiveClassesAtExit={file}"
