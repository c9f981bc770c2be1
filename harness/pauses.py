"""Stop random processes of a command for a moment, again and again, as a busy machine does.

    .venv/bin/python -m harness.pauses --seed 1 -- make test

A test that fails then depends on how fast a machine is. One that is about SIGCHLD may fail for another reason: a parent
gets that signal too when its child stops. The seed fixes the lengths of the pauses, not which processes they hit.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Running", "below", "main"]

_SHORTEST_S: Final = 0.1
_REST: Final = 3.0  # times its pause, a process then goes on for at least so long
_BUSY: Final = 0.6  # of the pauses hit a process that computes at that moment, if there is one
_SHELLS: Final = frozenset({"sh", "bash", "make"})  # they would report that their child was stopped


class Running(NamedTuple):
    """A process: its id, the id of its parent, its name and its state."""

    pid: int
    parent: int
    name: str
    state: str


def _all() -> Iterator[Running]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                head, _, tail = (path / "stat").read_text().rpartition(")")
                state, parent, *_ = tail.split()
                yield Running(int(path.name), int(parent), head.partition("(")[2], state)


def below(pid: int) -> list[Running]:
    """Return the processes that a process has started, directly or not, and that are neither stopped nor ended."""
    children: dict[int, list[Running]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    found, waiting = [], [pid]
    while waiting:
        more = children.get(waiting.pop(), [])
        found += more
        waiting += [process.pid for process in more]
    return [process for process in found if process.state not in "ZTtX"]


def _choose(chance: random.Random, processes: Sequence[Running], resting: Container[int]) -> int | None:
    able = [process for process in processes if process.name not in _SHELLS and process.pid not in resting]
    busy = [process for process in able if process.state == "R"]
    among = busy if busy and chance.random() < _BUSY else able
    return chance.choice(among).pid if among else None


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _pause(command: "subprocess.Popen[bytes]", chance: random.Random, every_s: float, longest_s: float) -> int:
    """Let processes of a command pause until it ends; return how often one did."""
    paused: dict[int, float] = {}  # until when
    resting: dict[int, float] = {}
    count = 0
    try:
        while command.poll() is None:
            now = time.monotonic()
            for pid in [pid for pid, ends in paused.items() if ends <= now]:
                _send(pid, signal.SIGCONT)
                del paused[pid]
            resting = {pid: ends for pid, ends in resting.items() if ends > now}
            chosen = _choose(chance, below(command.pid), resting)
            if chosen is not None:
                _send(chosen, signal.SIGSTOP)
                seconds = chance.uniform(_SHORTEST_S, longest_s)
                paused[chosen], resting[chosen] = now + seconds, now + (1 + _REST) * seconds
                count += 1
            time.sleep(chance.uniform(0, 2 * every_s))
    finally:
        for pid in paused:
            _send(pid, signal.SIGCONT)
    return count


def main(arguments: Sequence[str]) -> int:
    """Run a command while its processes pause; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m harness.pauses", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=float, default=0.25, help="mean time between two, in seconds [%(default)s]")
    parser.add_argument("--longest", type=float, default=1.0, help="the longest pause, in seconds [%(default)s]")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    with subprocess.Popen(given.command) as command:
        count = _pause(command, random.Random(given.seed), given.every, given.longest)  # noqa: S311
    print(f"{count} pauses of {_SHORTEST_S:g} to {given.longest:g} s")  # noqa: T201
    return command.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
