"""The parts of the harness that could make a run pass or fail for the wrong reason."""

import http.client
import logging
import random
import resource
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from faults.__main__ import main
from faults.clients import _answer
from faults.history import from_line, load, save, to_line
from faults.log_faults import fill_disk
from faults.model import NOT_WRITTEN, Operation, Request
from faults.proxy import Proxy
from faults.report import add, into_document, lines, of_commit, tables
from faults.report import load as load_results
from faults.run import Happened, Result, _insist
from faults.wal import next_frame, tear

OPERATIONS = [
    Operation(1, "c", 0, Request("register", "s", content="a"), 0.25, 1.5, (200, (1, 1))),
    Operation(2, "c", 1, Request("soft_delete", "s"), 2.0, 3.0, (200, (1, 2))),
    Operation(3, "c", 1, Request("set_level", "s", level="FULL"), 2.0, 3.0, None),
    Operation(4, "c", 1, Request("latest", "s"), 2.0, 3.0, (40401, None)),
]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_history_lines(operation):
    """An operation and its line convert into each other."""
    assert operation == from_line(to_line(operation))


def test_history_file(tmp_path):
    """A history survives its file."""
    save(OPERATIONS, tmp_path / "h.jsonl")
    assert OPERATIONS == load(tmp_path / "h.jsonl")


class _Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        pass


@pytest.fixture
def proxied():
    """Yield a proxy in front of a server that answers hello."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hello)
    server.handle_error = lambda *_: None  # The tests cut off clients on purpose.
    threading.Thread(target=server.serve_forever, args=(0.02,)).start()
    with closing(Proxy()) as proxy:
        proxy.lead_to(server.server_port)
        yield proxy
    server.shutdown()
    server.server_close()


def get(proxy, timeout=60.0):
    """Send a request through a proxy."""
    with closing(http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=timeout)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().read()


def test_proxy(proxied):
    """The proxy forwards; `refuse` rejects connections; `silence` sends no answers; `restore` undoes both."""
    assert b"hello" == get(proxied)
    proxied.refuse()
    with pytest.raises(ConnectionRefusedError):
        get(proxied)
    proxied.restore()
    assert b"hello" == get(proxied)
    proxied.silence()
    with pytest.raises(TimeoutError):
        get(proxied, timeout=0.2)
    proxied.restore()
    assert b"hello" == get(proxied)


@pytest.mark.parametrize("lost", ["forth", "back"])
def test_proxy_in_one_direction(proxied, lost):
    """A proxy that is silent in one direction keeps the client waiting, and forwards again once restored."""
    proxied.silence(forth=lost == "forth", back=lost == "back")
    with pytest.raises(TimeoutError):
        get(proxied, timeout=0.2)
    proxied.restore()
    assert b"hello" == get(proxied)


def test_proxy_that_breaks_after_a_request(proxied):
    """A certain request gets no answer, and its connection breaks."""
    proxied.break_after(lambda data: b"GET" in data)
    with pytest.raises(ConnectionError):
        get(proxied)
    proxied.restore()
    assert b"hello" == get(proxied)


def test_proxy_that_falls_silent_after_a_request(proxied):
    """A certain request arrives, and gets no answer until the path is restored."""
    proxied.silence_after(lambda data: b"GET" in data)
    with pytest.raises(TimeoutError):
        get(proxied, timeout=0.2)
    proxied.restore()
    assert b"hello" == get(proxied)


def test_proxy_that_delays_answers(proxied):
    """Answers that are chosen are late, and no others."""
    proxied.delay_answers(60, lambda data: b"hello" in data)
    with pytest.raises(TimeoutError):
        get(proxied, timeout=0.1)
    proxied.delay_answers(60, lambda data: b"goodbye" in data)
    assert b"hello" == get(proxied)


def test_proxy_that_repeats_answers(proxied):
    """Each piece of an answer that is chosen arrives twice."""
    proxied.repeat(lambda data: data.endswith(b"hello"))
    with socket.create_connection(("127.0.0.1", proxied.port), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        received = b"".join(iter(lambda: connection.recv(4096), b""))
    assert 2 == received.count(b"hello")


def test_slow_proxy(proxied):
    """A slow proxy delays what it forwards."""
    proxied.slow(60)
    with pytest.raises(TimeoutError):
        get(proxied, timeout=0.1)
    proxied.slow(0.1)
    assert b"hello" == get(proxied)


def _written(path, rows):
    """Write a database whose write-ahead log was never checkpointed, as after kill -9: a copy of the open files."""
    source = path.with_name("source.db")
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE t (n INTEGER)")
        for n in range(rows):
            connection.execute("INSERT INTO t VALUES (?)", (n,))
        for suffix in ("", "-wal"):
            path.with_name(path.name + suffix).write_bytes(source.with_name(source.name + suffix).read_bytes())


@pytest.mark.parametrize("seed", range(5))
def test_a_torn_write_takes_nothing_that_was_committed(tmp_path, seed):
    """The torn frame lies after the last commit, and SQLite ignores it."""
    path = tmp_path / "copy.db"
    _written(path, 20)
    log = path.with_name("copy.db-wal")
    before = log.read_bytes()
    assert tear(path, random.Random(seed))
    after = log.read_bytes()
    assert len(before) == next_frame(before)
    assert before == after[: len(before)]
    assert len(before) < len(after)
    with closing(sqlite3.connect(path)) as connection:
        assert 20 == connection.execute("SELECT count(*) FROM t").fetchone()[0]


def test_tearing_the_last_commit_itself_is_seen(tmp_path):
    """The damage is real: one frame earlier it would remove an acknowledged row."""
    path = tmp_path / "copy.db"
    _written(path, 20)
    log = path.with_name("copy.db-wal")
    content = bytearray(log.read_bytes())
    content[-100:] = random.Random(1).randbytes(100)
    log.write_bytes(content)
    with closing(sqlite3.connect(path)) as connection:
        assert 19 == connection.execute("SELECT count(*) FROM t").fetchone()[0]


RESULT = Result(
    log="sqlite",
    seed=7,
    operations=10,
    unknown=1,
    writes=5,
    records=4,
    faults=(
        Happened("kill -9 of a node", "node 1", 1.0, 2.0, 0.5),
        Happened("restart of a node", "node 0", 9, 9.5, 0.25),
    ),
    broken=(),
    longest_search=3,
    seconds=4.0,
    commit="abc123",
)
OLDER = replace(RESULT, commit="0ld")


def test_results_file_and_tables(tmp_path):
    """Results survive their file; the tables count runs, and the document keeps the text around them."""
    add(RESULT, tmp_path / "r.jsonl")
    add(RESULT, tmp_path / "r.jsonl")
    results = load_results(tmp_path / "r.jsonl")
    assert [RESULT, RESULT] == results
    assert "| sqlite | 2 | 4 | 20 | 10 | 2 | 8 | 0 | 0 |" in tables(results)
    assert "| sqlite | kill -9 of a node | 2 | 2 | 0.50 | 0.50 |" in tables(results)
    document = tmp_path / "d.md"
    document.write_text("before\n<!-- runs: begin -->\nold\n<!-- runs: end -->\nafter\n")
    into_document(tables(results), document)
    text = document.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    with suppress(ValueError):
        (tmp_path / "e.md").write_text("nothing")
        into_document(tables(results), tmp_path / "e.md")
        raise AssertionError


@pytest.mark.parametrize(
    ("results", "commit", "expected"),
    [
        pytest.param([], None, [], id="no-results"),
        pytest.param([OLDER, RESULT, RESULT], None, [RESULT, RESULT], id="newest-commit"),
        pytest.param([OLDER, RESULT], "0l", [OLDER], id="commit-by-its-beginning"),
        pytest.param([OLDER, RESULT], "f", [], id="commit-without-results"),
    ],
)
def test_results_of_one_commit(results, commit, expected):
    """The report covers the runs of one commit: the newest one, or the named one."""
    assert expected == of_commit(results, commit)


def test_a_fault_beside_others_has_no_outage():
    """A fault that was never alone has no row of its own: its log's sentence counts it."""
    overlapping = replace(RESULT, faults=(RESULT.faults[0], replace(RESULT.faults[1], start=1.5, end=3.0)))
    text = tables([overlapping])
    assert "On sqlite, only beside other faults: kill -9 of a node (1), restart of a node (1)." in text
    assert "| sqlite | restart of a node |" not in text


def test_tables_name_the_commit():
    """The tables name the commit of the measurement."""
    assert "`abc123`" in tables([RESULT])


def test_older_results_without_a_commit(tmp_path):
    """A result without a commit, from older files, has an unknown commit."""
    add(RESULT, tmp_path / "r.jsonl")
    line = (tmp_path / "r.jsonl").read_text().replace(',"commit":"abc123"', "")
    (tmp_path / "r.jsonl").write_text(line)
    assert [replace(RESULT, commit="unknown")] == load_results(tmp_path / "r.jsonl")


_FORKING = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system reaps
memory = bytearray(100_000_000)  # its pages make a fork take a while
print("ready", flush=True)
while True:
    if os.fork() == 0:
        time.sleep(0.05)
        os._exit(0)
    time.sleep(0.002)
"""


class _Forking:
    """A node that starts workers all the time."""

    def __init__(self, pid):
        self.pid = pid

    @property
    def workers(self):
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


def _limits(pids):
    for pid in pids:
        with suppress(ProcessLookupError):
            yield resource.prlimit(pid, resource.RLIMIT_FSIZE)[0]


def test_a_disk_that_is_no_longer_full_is_so_for_every_worker(tmp_path):
    """A worker that was being forked when the disk had room again does not keep the limit."""
    command = [sys.executable, "-c", _FORKING]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            node = _Forking(process.pid)
            scene = SimpleNamespace(members=[SimpleNamespace(node=node)], log_url=f"sqlite:///{tmp_path}/log.db")
            for seed in range(10):
                with fill_disk(scene, random.Random(seed)):
                    time.sleep(0.01)
                time.sleep(0.01)
                assert {resource.RLIM_INFINITY} == {resource.RLIM_INFINITY, *_limits([process.pid, *node.workers])}
        finally:
            process.kill()


def test_a_run_that_raises_is_a_broken_one(tmp_path, monkeypatch):
    """An exception of the harness is recorded as the reason, and makes the exit code 1."""

    def broken(*_):
        raise RuntimeError("no broker")

    monkeypatch.setattr("faults.run.run", broken)
    asked = ["--log=sqlite", "--seed=3", "--seed=4", f"--results={tmp_path}/r.jsonl", f"--keep={tmp_path}/k"]
    assert 1 == main(asked)
    reasons = [result.broken[0] for result in load_results(tmp_path / "r.jsonl")]
    assert ["the run failed: RuntimeError: no broker"] * 2 == [reason.partition(" (")[0] for reason in reasons]


def test_the_command_leaves_the_levels_of_logging_alone(monkeypatch, tmp_path):
    """A program that calls the command goes on logging: only the process of `python -m faults` is silent."""
    monkeypatch.setattr("faults.run.run", lambda *_: 1 / 0)
    before = logging.getLogger("strata").level
    main(["--log=sqlite", "--seed=3", f"--results={tmp_path}/r.jsonl", f"--keep={tmp_path}/k"])
    assert before == logging.getLogger("strata").level


def test_lines_of_a_result():
    """The lines of a result name its seed, its faults, and what was broken."""
    assert "sqlite seed 7: kept" in lines(RESULT)[0]
    assert 3 == len(lines(RESULT))


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        pytest.param(500, "Nothing was written: the log is full", (NOT_WRITTEN, None), id="nothing was written"),
        pytest.param(500, "Not known whether it was written", None, id="unknown"),
        pytest.param(408, "no complete request arrived", (NOT_WRITTEN, None), id="the node has read half of it"),
        pytest.param(409, "incompatible", (409, None), id="refused"),
    ],
)
def test_what_an_answer_says_of_a_write(status, message, expected):
    """Only an answer that says that nothing was written counts as no write at all."""
    content = {"error_code": status, "message": message}
    assert expected == _answer(Request("register", "s1", content="a"), status, content)


@pytest.mark.parametrize(
    ("answers", "patience_s", "accepted"),
    [
        pytest.param([(200, None)], 60.0, True, id="written at once"),
        pytest.param([(NOT_WRITTEN, None), None, (200, None)], 60.0, True, id="refused, lost, written"),
        pytest.param([(NOT_WRITTEN, None)], -1.0, False, id="nothing was written until the end"),
        pytest.param([None], -1.0, False, id="no answer until the end"),
    ],
)
def test_a_node_accepts_a_write_only_by_writing_it(answers, patience_s, accepted):
    """The answer that nothing was written says nothing about whether the node can write again."""
    left = iter(answers)
    client = SimpleNamespace(send=lambda *_: next(left))
    assert accepted == _insist(client, 0, Request("set_mode", "s1", level="READWRITE"), patience_s)
    assert [] == [*left]
