"""Starts registry nodes quickly: a process that has imported everything, and forks a node on request.

A node is then a process like any other (SIGKILL, SIGSTOP and the like mean the same), without the two seconds of CPU
time of a cold start, which would add up to half an hour over a thousand starts.

Run as a program, this file reads requests from standard input, one JSON value per line, and answers each: an object
with the `log`, `arguments`, `environment` and `folder` of a new node with its process id; a process id with that node's
exit code, null while it runs; the address of `programs` (harness/forked_program.py) with the id of the process that
listens there. When its input ends, it exits together with its nodes.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn, Self

from harness.forked_program import answer_programs

__all__ = ["Child", "Nursery", "clock_of", "set_clock"]

_POLL_S = 0.01
_PR_SET_PDEATHSIG = 1
_MADV_COLLAPSE, _HUGE_PAGE = 25, 1 << 21
_CAP_DAC_OVERRIDE, _CAPABILITIES_3 = 1, 0x20080522
_OFFSET = struct.Struct("d")
_MODULES = (
    "click._textwrap",
    "cryptography.x509",
    "encodings.idna",
    "encodings.utf_8_sig",
    "prometheus_client.asgi",
    "prometheus_client.openmetrics.exposition",
    "psycopg",
    "psycopg.adapt",
    "sqlalchemy.dialects.postgresql",
    "strata.command",
    "strata.compat.difference.avro",
    "strata.compat.witness.avro",
    "strata.gitops.checks",
    "strata.gitops.cli",
    "strata.gitops.commands.check",
    "strata.gitops.commands.dump",
    "strata.gitops.commands.plan",
    "strata.gitops.commands.subjects",
    "strata.gitops.plans",
    "strata.gitops.positions",
    "strata.gitops.profiles",
    "strata.gitops.reports",
    "strata.gitops.service",
    "strata.gitops.sources",
    "strata.registry.commands.cli",
    "strata.registry.commands.log",
    "strata.registry.features.metrics.confluent",
    "strata.registry.features.metrics.node",
    "strata.registry.features.metrics.processes",
    "strata.registry.features.metrics.scrape",
    "strata.registry.server",
    "strata.registry.transfer.files",
    "strata.registry.transfer.glue_source",
    "strata.registry.transfer.logs",
    "strata.registry.transfer.rest_source",
    "strata.storage.sql.compaction",
    "strata.storage.sql.log",
    "strata.storage.kafka.log",
    "strata.strict_yaml",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.auto",
    "uvloop",
)


class Nursery:
    """The process that forks nodes, safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        command = [sys.executable, "-m", "faults.nursery"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process and every node; a second call does nothing."""
        with self._lock:
            _pipe(self._process.stdin).close()
            self._process.wait()
            _pipe(self._process.stdout).close()

    def start(self, command: Sequence[str], *, log: Path, mutant: str | None = None) -> "Child":
        """Start `strata serve …` (the path of the program does not matter), and append its output to `log`.

        Args:
            command: the program and its arguments.
            log: the file for the output.
            mutant: a name that `faults.mutants.apply` knows, for a node of another registry.
        """
        node = {"log": str(log), "arguments": command[1:], "environment": dict(os.environ), "folder": str(Path.cwd())}
        node |= {"mutant": mutant} if mutant else {}
        return Child(self, self.ask(node))

    def ask(self, request: object) -> Any:
        """Send a request, and return the answer."""
        with self._lock:
            asked = _pipe(self._process.stdin)
            asked.write(f"{json.dumps(request)}\n")
            asked.flush()
            return json.loads(_pipe(self._process.stdout).readline())


class Child:
    """A forked node, with the methods of `subprocess.Popen` that the harness uses."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        if self.returncode is None:
            self.returncode = self._nursery.ask(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process to exit and return the exit code.

        Raises:
            subprocess.TimeoutExpired: it did not exit in time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("strata serve", timeout or 0)
            time.sleep(_POLL_S)
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


# --- the process that forks


def _serve_requests() -> None:
    for module in _MODULES:
        importlib.import_module(module)
    _prepare()
    _obey_file_modes()
    gc.freeze()
    _use_huge_pages()
    children: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if isinstance(request, int):
            answer = _exit_code(request, children)
        else:
            answer = _fork_programs(request["programs"]) if "programs" in request else _fork(**request)
            children.add(answer)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _use_huge_pages() -> None:
    """Move this process's memory into huge pages, where the kernel can: a fork copies an entry for each page."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, _, _, inode, *_ = line.split()
        start, end = (int(address, 16) for address in place.split("-"))
        if (rights, inode) == ("rw-p", "0"):
            for page in range(-(-start // _HUGE_PAGE) * _HUGE_PAGE, end - _HUGE_PAGE + 1, _HUGE_PAGE):
                libc.madvise(ctypes.c_void_p(page), ctypes.c_size_t(_HUGE_PAGE), _MADV_COLLAPSE)


def _prepare() -> None:
    """Do once what each node does at its start or its first requests, and what is the same for all."""
    from pydantic import BaseModel

    from strata.compat.formats import FORMATS
    from strata.compat.schema import SchemaFormat
    from strata.registry.app import create_app
    from strata.registry.commands import cli
    from strata.registry.core import parsing
    from strata.registry.settings import Settings
    from strata.storage.log import MemoryLog
    from strata.storage.open_log import open_log

    parsing.load()
    for name, text in {"AVRO": '"int"', "JSON": "{}", "PROTOBUF": "message M {}"}.items():
        FORMATS[SchemaFormat(name)].parse(text, strict=True)  # which reads the files of Google, in 30 ms
    with tempfile.TemporaryDirectory() as folder:
        open_log(f"sqlite:///{folder}/strata.db").close()
    cli._setting_options()
    create_app(MemoryLog(), Settings(log="memory:"))  # compiles expressions
    models = BaseModel.__subclasses__()
    for model in models:  # a model of requests waits for the first of them
        models += model.__subclasses__()
        if model.__module__.startswith("strata."):
            model.model_rebuild()


def _exit_code(pid: int, children: set[int]) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    children.discard(pid)
    return os.waitstatus_to_exitcode(status)


def _fork(
    *, log: str, arguments: Sequence[str], environment: Mapping[str, str], folder: str, mutant: str | None = None
) -> int:
    pid = os.fork()
    if pid == 0:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)

        def command() -> None:
            _follow_clock(clock_of(Path(log)))
            if mutant:
                importlib.import_module("faults.mutants").apply(mutant)
            importlib.import_module("strata.registry.commands.cli").main(list(arguments))

        _run((nothing, output, output), command, environment, folder)
    return pid


def _fork_programs(address: str) -> int:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        pid = os.fork()
        if pid == 0:
            _end_with_parent()
            answer_programs(listener, _run_program)
    return pid


def _run_program(
    streams: Sequence[int], *, arguments: Sequence[str], environment: Mapping[str, str], folder: str
) -> NoReturn:
    def command() -> None:
        # Other than those of this process: the first flush of a stream that fails must say so.
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.argv = ["strata", *arguments]
        sys.modules["__main__"].__package__ = None  # otherwise the program is `python -m faults.nursery` to click
        importlib.import_module("strata.command").main()

    _run(streams, command, environment, folder)


def _run(streams: Sequence[int], command: Callable[[], None], environment: Mapping[str, str], folder: str) -> NoReturn:
    """Run a command in a process that was forked for it: with its streams, its variables and its folder."""
    code = 1
    try:
        _end_with_parent()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None  # from the environment again
        random.seed()
        for target, stream in enumerate(streams):
            os.dup2(stream, target)
        command()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:  # noqa: BLE001 - as an interpreter does
        traceback.print_exc()
    finally:
        for written in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                written.flush()
        os._exit(code)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _obey_file_modes() -> None:
    """Drop root's right to write to read-only files, as for processes of other users."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None)
    header, sets = struct.pack("Ii", _CAPABILITIES_3, 0), ctypes.create_string_buffer(24)
    if libc.capget(header, sets) == 0:
        words = list(struct.unpack("6I", sets.raw))
        words[0] &= ~(1 << _CAP_DAC_OVERRIDE)
        words[1] &= ~(1 << _CAP_DAC_OVERRIDE)
        libc.capset(header, struct.pack("6I", *words))


def _follow_clock(file: Path) -> None:
    """Shift the wall clock of this process by the seconds in a file, which may change at any time."""
    if not file.exists():
        return
    with file.open("rb") as opened:
        shared = mmap.mmap(opened.fileno(), _OFFSET.size, access=mmap.ACCESS_READ)
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + _OFFSET.unpack_from(shared)[0]
    time.time_ns = lambda: real_ns() + int(_OFFSET.unpack_from(shared)[0] * 1e9)


def set_clock(log: Path, seconds: float) -> None:
    """Shift the wall clock of the node that logs to a file.

    Args:
        log: the log file of the node. The first call must precede the start of the node.
        seconds: the offset from the real time.
    """
    file = clock_of(log)
    with file.open("r+b" if file.exists() else "w+b") as opened:
        opened.write(_OFFSET.pack(seconds))


def clock_of(log: Path) -> Path:
    """Return the file with the clock offset of the node that logs to a file."""
    return log.with_suffix(".clock")


if __name__ == "__main__":
    _serve_requests()
