"""The script that stands for a forked program: `harness.forked_program` starts it by its path.

It hands its streams to a forked process, passes signals on, and exits as that process does. It runs for each command of
the documents, so it imports only what is compiled into Python: `signal`, `socket` and `json` would take 30 ms of CPU
time, where all else takes 17.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

_STREAMS = 0, 1, 2
_PASSED_ON = _signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP


def _be_the_program(address: str, arguments: list[str]) -> int:
    """Start the forked process, wait for it and return its exit code; the number of a signal is negative."""
    folder = os.getcwd()  # noqa: PTH109 - pathlib takes as long as the rest
    request = ascii({"arguments": arguments, "environment": dict(os.environ), "folder": folder}).encode()
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _PASSED_ON)  # they wait for the process that gets them
    nursery = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    nursery.connect(address)
    streams = b"".join(stream.to_bytes(4, sys.byteorder) for stream in _STREAMS)
    nursery.sendmsg([len(request).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    nursery.sendall(request)
    with os.fdopen(nursery.detach()) as answers:
        pid = int(answers.readline())
        for number in _PASSED_ON:
            _signal.signal(number, lambda number, _: os.kill(pid, number))
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _PASSED_ON)
        return int(answers.readline())


if __name__ == "__main__":
    code = _be_the_program(sys.argv[1], sys.argv[2:])
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
