"""Runs tests in several processes, which fork when all tests are collected: `pytest --processes 4`.

Collecting takes 13 s of CPU time, most of it for imports. pytest-xdist collects in each of its processes; here they
share what one has imported, so there can be as many as it takes to use the time in which tests wait.

Tests of one group run in one process, in their order, so that they share the fixtures of a session. A process asks for
the next group when it begins the last test of its own, and fixtures stay until there is none. A process that dies is
replaced, and fails the test that it was running; so does one that hangs where pytest-timeout cannot interrupt it.
Threads of libraries do not survive the fork: what starts some (grimp does) belongs into a fixture, not into a module.

Without the option, pytest runs the tests itself.
"""

import math
import os
import random
import signal
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from _pytest.capture import CaptureManager
from _pytest.terminal import TerminalReporter

__all__ = ["GROUP", "pytest_addoption", "pytest_runtestloop"]

GROUP: Final = pytest.StashKey[str]()
"""The name of a test's group; a test without one is in the group of its file."""

_NEXT, _START, _REPORT, _FINISH = "next", "start", "report", "finish"
_NO_MORE: Final[Sequence[int]] = ()
_LOOK_S, _GRACE_S = 10.0, 120.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption(
        "--processes", type=int, default=0, metavar="N", help="run groups of tests in N processes that are forked"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in processes, if there are to be some and nothing has failed yet."""
    number = session.config.option.processes
    if not number or session.testsfailed or session.config.option.collectonly:
        return None
    groups: dict[str, deque[int]] = {}
    for place, item in enumerate(session.items):
        groups.setdefault(item.stash.get(GROUP, str(item.path)), deque()).append(place)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, TerminalReporter):
        reporter.showfspath = False  # tests of several files come by turns
    _Parent(session, deque(groups.values())).run(number)
    return True


@dataclass(slots=True)
class _Process:
    """A process, and the places of its tests that have not ended; `running` is the one that it has begun.

    Attributes:
        latest: when that test must have ended, in seconds of the monotonic clock.
    """

    pid: int
    pipe: Connection
    left: deque[int]
    running: int | None = None
    latest: float = math.inf


class _Parent:
    """Hands out groups, in their order, and passes on what the processes report."""

    def __init__(self, session: pytest.Session, groups: deque[deque[int]]) -> None:
        self._session, self._groups = session, groups
        self._processes: dict[Connection, _Process] = {}
        self._numbers = count()
        # Each process gets a folder in it.
        self._folder: Path = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]

    def run(self, number: int) -> None:
        """Run all groups in so many processes.

        Raises:
            pytest.Session.Failed: as many tests have failed as the options allow.
        """
        try:
            for _ in range(min(number, len(self._groups))):
                self._fork()
            while self._processes:
                for pipe in wait(list(self._processes), _LOOK_S):
                    self._receive(self._processes[pipe])  # type: ignore[index]
                    if self._session.shouldfail:
                        raise self._session.Failed(self._session.shouldfail)
                for process in self._processes.values():
                    if time.monotonic() > process.latest:
                        process.latest = math.inf
                        os.kill(process.pid, signal.SIGABRT)  # pytest has it show the stacks of its threads
        finally:
            for process in self._processes.values():
                os.kill(process.pid, signal.SIGINT)
                process.pipe.close()
                os.waitpid(process.pid, 0)

    def _fork(self) -> None:
        ours, theirs = Pipe()
        group, number = self._groups.popleft(), next(self._numbers)
        pid = os.fork()
        if not pid:
            for pipe in (ours, *self._processes):  # else a process would not see that the parent has died
                pipe.close()
            _live(self._session, theirs, group, self._folder / f"process-{number}")
        theirs.close()
        self._processes[ours] = _Process(pid, ours, group)

    def _receive(self, process: _Process) -> None:
        hook, items = self._session.config.hook, self._session.items
        try:
            what, content = process.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._bury(process)
            return
        if what == _NEXT:
            group = self._groups.popleft() if self._groups else _NO_MORE
            process.left.extend(group)
            with suppress(OSError):  # it has died since: the next read says so
                process.pipe.send(list(group))
        elif what == _START:
            process.running, process.latest = content, time.monotonic() + _limit_s(items[content])
            hook.pytest_runtest_logstart(nodeid=items[content].nodeid, location=items[content].location)
        elif what == _REPORT:
            report = hook.pytest_report_from_serializable(config=self._session.config, data=content)
            hook.pytest_runtest_logreport(report=report)
        elif what == _FINISH:
            process.running, process.latest = None, math.inf
            process.left.remove(content)
            hook.pytest_runtest_logfinish(nodeid=items[content].nodeid, location=items[content].location)

    def _bury(self, process: _Process) -> None:
        del self._processes[process.pipe]
        process.pipe.close()
        status = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
        if not process.left:
            return
        place = process.left[0] if process.running is None else process.running
        process.left.remove(place)
        item = self._session.items[place]
        how = f"with {status}" if status >= 0 else f"by {signal.Signals(-status).name}"
        hook = self._session.config.hook
        said, keywords = f"the process ended {how}", dict.fromkeys(item.keywords, 1)
        report = pytest.TestReport(item.nodeid, item.location, keywords, "failed", said, when="call")
        hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if process.left:
            self._groups.appendleft(process.left)
        if self._groups:
            self._fork()


def _limit_s(item: pytest.Item) -> float:
    """Return after how many seconds pytest-timeout should have ended a test long ago."""
    if not item.config.pluginmanager.hasplugin("timeout"):
        return math.inf
    own = item.get_closest_marker("timeout")
    return float(own.args[0] if own and own.args else item.config.getini("timeout") or math.inf) + _GRACE_S


def _live(session: pytest.Session, pipe: Connection, group: deque[int], folder: Path) -> NoReturn:
    """Be a process: run groups until there are no more."""
    status = 3
    try:
        with suppress(KeyboardInterrupt, BrokenPipeError, ConnectionResetError, EOFError), _own(session, folder):
            session.config.pluginmanager.register(_Child(session.config, pipe))
            _run(session, pipe, group)
            status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the code of the parent must not go on here
        traceback.print_exc()
    finally:
        os._exit(status)


@contextmanager
def _own(session: pytest.Session, folder: Path) -> Iterator[None]:
    """Give this process what it must not share with the others, and end its fixtures."""
    config = session.config
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    random.seed()
    reporter, capturing = (config.pluginmanager.get_plugin(name) for name in ("terminalreporter", "capturemanager"))
    if isinstance(reporter, TerminalReporter):
        reporter._tw._file = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    if isinstance(capturing, CaptureManager):  # it writes into a file, and reads what is in it
        capturing.stop_global_capturing()
        capturing.start_global_capturing()
        capturing.suspend_global_capture()
    try:
        yield
    finally:
        session._setupstate.teardown_exact(None)


def _run(session: pytest.Session, pipe: Connection, group: deque[int]) -> None:
    while group:
        place = group.popleft()
        if not group:
            pipe.send((_NEXT, None))
            group.extend(pipe.recv())
        item, following = session.items[place], session.items[group[0]] if group else None
        pipe.send((_START, place))
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        pipe.send((_FINISH, place))


class _Child:
    """Sends the reports of tests to the parent."""

    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config, self._pipe = config, pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report."""
        content: Any = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._pipe.send((_REPORT, content))
