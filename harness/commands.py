"""The command `strata` in processes that the nursery forks, without the CPU time of a cold start.

    ended = Command(nursery)("log", "sqlite:///none.db", STRATA_LOGS="memory:")
    assert (2, "…") == (ended.returncode, ended.output)

Standard output and standard error are one text. A test of either of them, of input or of the program itself starts it.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from faults.nursery import Child, Nursery

__all__ = ["Command", "Ended", "Running"]

_TIMEOUT_S: Final = 180.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    returncode: int
    output: str


@dataclass(frozen=True, slots=True)
class Running:
    """A command that runs."""

    process: Child
    log: Path

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait(self) -> Ended:
        """Wait for its end."""
        return Ended(self.process.wait(_TIMEOUT_S), self.output)


class Command:
    """Runs commands with the given variables only."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery

    def __call__(self, *arguments: str, **variables: str) -> Ended:
        """Run a command to its end.

        Raises:
            subprocess.TimeoutExpired: it did not end in time.
        """
        with self.start(*arguments, **variables) as running:
            return running.wait()

    @contextmanager
    def start(self, *arguments: str, **variables: str) -> Iterator[Running]:
        """Yield a command that runs; it is killed at the end of the block."""
        with tempfile.TemporaryDirectory(prefix="strata-command-") as folder:
            log = Path(folder) / "output"
            environment: Mapping[str, str] = {"PATH": "", **variables}
            request = {"log": str(log), "arguments": arguments, "environment": environment, "folder": folder}
            process = Child(self._nursery, self._nursery.ask(request))
            try:
                yield Running(process, log)
            finally:
                process.kill()
                process.wait(_TIMEOUT_S)
