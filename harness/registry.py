"""A real registry node: `strata serve` in its own process, on loopback.

    with RegistryNode("memory:") as node:
        RegistryClient(node.url)

`kill()` is kill -9, `restart()` starts it again on the same address and log.
"""

import http.client
import os
import shutil
import signal
import ssl
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Protocol, Self

from harness.processes import Process, free_port, is_running, start_tied, stop_process, tail

__all__ = ["RegistryNode"]

_HOST = "127.0.0.1"
_READY_S = 180.0  # a million schemas on a busy machine take more than a minute
_POLL_S = 0.02
_TO_ALL = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT)


class Starter(Protocol):
    """A function that starts a command and appends its output to `log`."""

    def __call__(self, command: Sequence[str], *, log: Path) -> Process:
        """Start the command and return its process."""
        ...


class RegistryNode:
    """One `strata serve`, of one process unless its options include `--workers`.

    Args:
        log_url: its log.
        options: further flags, such as `--reads=local`.
        start: runs the command; `starter` by default.
        tls: connects to the node, if its options make it serve https.
    """

    starter: ClassVar[Starter] = staticmethod(start_tied)
    """Runs the command of nodes that name nothing else."""

    def __init__(
        self, log_url: str, *options: str, start: Starter | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self.port = free_port()
        self.url = f"{'https' if tls else 'http'}://{_HOST}:{self.port}"
        self._tls = tls
        self._folder = Path(tempfile.mkdtemp(prefix="strata-node-"))
        self.log_file = self._folder / "node.log"
        strata = Path(sys.executable).with_name("strata")
        fixed = [f"--listen={_HOST}:{self.port}", f"--log={log_url}", "--drain-seconds=0", "--workers=1"]
        self._command = [str(strata), "serve", *fixed, *options]
        self._start = start or self.starter
        self._process: Process | None = None

    def __enter__(self) -> Self:
        self.restart()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def output(self) -> str:
        """The whole lines of the node's output so far."""
        return "".join(self.log_file.read_text(errors="replace").rpartition("\n")[:2])  # the last may be half written

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process
        return self._process.pid

    @property
    def workers(self) -> list[int]:
        """The ids of the node's worker processes, if it has several, in the order in which they started."""
        try:
            return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]
        except OSError:  # the node has ended, or this is not Linux
            return []

    @property
    def is_started(self) -> bool:
        """Whether the node was ever started."""
        return self._process is not None

    def restart(self) -> None:
        """Start the node, and wait until it responds.

        Raises:
            RuntimeError: it exited, or did not respond in time; the message contains the end of its log.
        """
        self._process = self._start(self._command, log=self.log_file)
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError(f"The registry ended with {self._process.returncode}:\n{tail(self.log_file)}")
            if time.monotonic() > deadline:
                stop_process(self._process)
                raise RuntimeError(f"The registry did not answer within {_READY_S:.0f} s:\n{tail(self.log_file)}")
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kill the node (SIGKILL) with its workers."""
        assert self._process
        workers = self.workers
        self.send(signal.SIGKILL)
        self._process.wait()
        while any(map(is_running, workers)):  # they would keep the port in use
            time.sleep(_POLL_S)

    def terminate(self, *, grace_s: float = 60) -> int:
        """Stop the node with SIGTERM, wait for it and return its exit code."""
        self.send(signal.SIGTERM)
        return self.wait(grace_s=grace_s)

    def send(self, number: signal.Signals) -> None:
        """Send the node a signal; the workers get only those that no process can handle itself."""
        assert self._process
        workers = self.workers if number in _TO_ALL else []
        self._process.send_signal(number)
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, number)

    def wait(self, *, grace_s: float = 60) -> int:
        """Wait for the node to exit and return its exit code."""
        assert self._process
        return self._process.wait(grace_s)

    def stop(self) -> None:
        """End the node, and remove its files.

        A node is killed, since a clean end takes 15 ms of CPU time, unless its workers share a folder that it
        removes, or coverage is measured, which it reports at its end.
        """
        if self._process and (self.workers or "coverage" in sys.modules):
            stop_process(self._process, grace_s=60)
        elif self._process:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def connect(self, *, timeout: float = 60) -> http.client.HTTPConnection:
        """Return a new connection to the node, which opens with its first request."""
        if self._tls is None:
            return http.client.HTTPConnection(_HOST, self.port, timeout=timeout)
        return http.client.HTTPSConnection(_HOST, self.port, timeout=timeout, context=self._tls)

    def _answers(self) -> bool:
        connection = self.connect(timeout=5)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()
