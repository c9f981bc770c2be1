"""The program `strata` in processes that the nursery forks: with standard streams, variables and folder of its caller.

    program = forked_program(nursery, folder)  # the path of an executable file
    subprocess.run([program, "check"], capture_output=True)

For what starts the program by its name or path: a shell, a hook of Git, the blocks of a document. It takes 0.03 s of
CPU time before its command begins, where a cold start takes half a second. `harness.commands` takes less yet. The file
runs `harness/program_stub.py`, which asks for a forked process.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import sys
from ast import literal_eval
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from faults.nursery import Nursery

__all__ = ["answer_programs", "forked_program"]

_HEAD: Final = struct.Struct("!I")
_STREAMS: Final = 3


def forked_program(nursery: "Nursery", folder: Path) -> Path:
    """Write an executable file `strata` into a folder; it forks from the nursery as long as that runs."""
    address = folder / "socket"
    nursery.ask({"programs": str(address)})
    program = folder / "strata"
    stub = Path(__file__).with_name("program_stub.py").resolve()
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -I -S '{stub}' '{address}' \"$@\"\n")
    program.chmod(0o755)
    return program


def answer_programs(listener: socket.socket, run: Callable[..., NoReturn]) -> NoReturn:
    """Fork a process for each program that connects, without end.

    Args:
        listener: to which programs connect.
        run: runs a command with the given streams, as the last thing that a process does.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the processes
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection, run)
        connection.close()


def _answer(connection: socket.socket, run: Callable[..., NoReturn]) -> NoReturn:
    """Fork the command, and tell the program its process id and its exit code; kill it if the program is killed."""
    head, streams, *_ = socket.recv_fds(connection, _HEAD.size, _STREAMS)
    with connection.makefile("rb") as reader:
        request = literal_eval(reader.read(*_HEAD.unpack(head)).decode())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        os.close(connection.detach())
        run(streams, **request)
    ended = os.pidfd_open(pid)
    for stream in streams:
        os.close(stream)
    with contextlib.suppress(OSError):  # the program was killed
        connection.sendall(b"%d\n" % pid)
        if connection.fileno() in select.select([connection.fileno(), ended], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    os._exit(0)
