"""`strata serve --workers 3`: several processes serve as one node, whichever of them dies."""

import http.client
import json
import os
import re
import signal
import socket
import threading
from collections import Counter
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from harness.logs import quick_on
from harness.processes import is_running
from harness.registry import RegistryNode
from harness.waiting import until

_WORKERS = 3
_ANSWERS_S = 60.0


@contextmanager
def started(log_url, *options, workers=_WORKERS):
    """Run a node until all its workers serve."""
    with RegistryNode(log_url, f"--workers={workers}", *options) as node:
        until(lambda: "ready in" in node.output)
        yield node


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Run a node of three workers on SQLite, which no test ends."""
    with started(f"sqlite:///{tmp_path_factory.mktemp('node')}/strata.db") as running:
        yield running


class Connection:
    """A connection that stays open, so that one worker answers all its requests."""

    def __init__(self, node):
        self._http = http.client.HTTPConnection("127.0.0.1", node.port, timeout=_ANSWERS_S)
        self._http.connect()

    def call(self, method, path, body=None):
        """Send a request and return status and answer."""
        self._http.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        response = self._http.getresponse()
        return response.status, json.loads(response.read())

    def register(self, subject, schema='"int"'):
        """Register a schema."""
        return self.call("POST", f"/subjects/{subject}/versions", {"schema": schema})

    def close(self):
        """Close the connection."""
        self._http.close()


@contextmanager
def connected(node, number):
    """Open connections, wait until a worker has each, and close them."""
    with ExitStack() as stack:
        connections = [stack.enter_context(closing(Connection(node))) for _ in range(number)]
        for connection in connections:
            assert (200, {}) == connection.call("GET", "/")
        yield connections


@contextmanager
def connected_to_all(node):
    """Open connections until each worker has one of them, and close them; a worker that pauses accepts none."""
    with ExitStack() as stack:
        connections, missing = [], set(node.workers)
        while missing:
            with ExitStack() as attempt:
                before = connections_of(node)
                (connection,) = attempt.enter_context(connected(node, 1))
                gained = {pid for pid, now in connections_of(node).items() if now > before[pid]}
                if gained & missing:
                    missing -= gained
                    connections.append(connection)
                    stack.push(attempt.pop_all())
        yield connections


def connections_of(node):
    """Return how many client connections each worker has, by process id."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    here = f":{node.port:04X}"
    inodes = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(here) and line[3] == "01"}
    found = Counter(dict.fromkeys(node.workers, 0))
    for pid in node.workers:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found[pid] += str(file.readlink()) in inodes
    return found


def worker_of(node, connection):
    """Return the process id of the worker that serves the only open connection of a node."""
    assert (200, {}) == connection.call("GET", "/")
    return next(pid for pid, count in connections_of(node).items() if count)


def is_ready(node):
    """Return whether the node reports that it is ready."""
    with connected(node, 1) as (connection,):
        return connection.call("GET", "/health/ready")[0] == 200


def kill(node, pid):
    """Kill a worker, wait until the node is ready with another one in its place, and return that one's process id."""
    others = set(node.workers)
    os.kill(pid, signal.SIGKILL)
    until(lambda: len(set(node.workers) - others) == 1 and is_ready(node))
    (new,) = set(node.workers) - others
    return new


def first_worker(node):
    """Return the process id of the worker that writes: it is started first, unless it was killed."""
    return node.workers[0]


@quick_on("sqlite")
def test_every_worker_sees_each_acknowledged_write_at_once(log_url):
    """A schema registered over one connection is found over all others, by id, in lists and by look-up."""
    with started(log_url) as node, connected_to_all(node) as connections:
        expected = []
        for number, writer in enumerate(connections):
            schema = f'{{"type":"fixed","name":"F{number}","size":4}}'
            status, answer = writer.register(f"s{number}", schema)
            assert 200 == status
            expected.append(f"s{number}")
            for reader in connections:
                assert (200, expected) == reader.call("GET", "/subjects")
                assert schema == reader.call("GET", f"/schemas/ids/{answer['id']}")[1]["schema"]
                assert answer["id"] == reader.call("POST", f"/subjects/s{number}", {"schema": schema})[1]["id"]
        for connection in connections:
            assert 200 == connection.call("DELETE", "/subjects/s0")[0]
            for reader in connections:
                assert 40401 == reader.call("GET", "/subjects/s0/versions/latest")[1]["error_code"]
            assert 200 == connection.register("s0")[0]


@pytest.mark.parametrize("number", [1, 64])
def test_connections_are_shared_evenly(node, number):
    """However many clients connect at once, every worker gets connections, and none gets most of them."""
    most = []
    for _ in range(5):
        with connected(node, number):
            counts = connections_of(node).values()
        assert number == sum(counts)
        most.append(max(counts))

    # A worker that pauses accepts nothing meanwhile: the machine may stop one at two of these moments.
    assert sorted(most)[2] <= 1 + 2 * number / _WORKERS


def test_workers_count_requests_together(tmp_path):
    """A rate limit holds for the node: what one worker has counted, the others know."""
    limits = "--rate-limit=0.001", "--rate-burst-seconds=3600"
    with started(f"sqlite:///{tmp_path}/strata.db", *limits) as node, ExitStack() as stack:
        connections = [stack.enter_context(closing(Connection(node))) for _ in range(3 * _WORKERS)]
        until(lambda: connections[0].call("GET", "/subjects")[0] == 429)

        assert {429} == {connection.call("GET", "/subjects")[0] for connection in connections}
        assert {200} == {connection.call("GET", "/health/live")[0] for connection in connections}


@pytest.mark.kafka
def test_every_worker_describes_the_process_that_writes(kafka_broker):
    """`GET /v1/log` says that the node holds the pen, whichever worker is asked."""
    with (
        started(f"kafka://{kafka_broker.bootstrap}/schemas-{uuid4().hex}") as node,
        connected_to_all(node) as connections,
    ):
        assert 200 == connections[0].register("s")[0]
        for connection in connections:
            answer = connection.call("GET", "/v1/log")[1]
            assert (True, None) == (answer["holdsPen"], answer.get("holder"))


def test_killed_worker_is_replaced_and_the_node_stays_one(node):
    """The log says which worker died, another one serves in its place, and it sees everything."""
    with connected(node, 1) as (connection,):
        assert 200 == connection.register("killed")[0]
        subjects = connection.call("GET", "/subjects")
    for pid in node.workers[:2]:  # the one that writes, and another
        kill(node, pid)
        with connected_to_all(node) as connections:
            for connection in connections:
                assert subjects == connection.call("GET", "/subjects")
                assert 200 == connection.register("killed")[0]
        assert re.search(rf"worker \d \(process {pid}\) was killed by SIGKILL", node.output)
    assert 1 == node.output.count("ready in")


# What a write gets whose worker, pen or log does not respond in time: docs/operations.md, "When the log fails".
_MAY_BE_SENT_AGAIN = {50002, 50003, 50004, 50302}


@quick_on("sqlite")
def test_nothing_acknowledged_is_lost_while_workers_are_killed(log_url):
    """Clients write while the worker that writes, and others, die: each success is there, and no id is used twice."""
    acknowledged, stop, lock = {}, threading.Event(), threading.Lock()

    def write(client):
        number = 0
        while not stop.is_set():
            number += 1
            subject = f"c{client}-{number}"
            schema = json.dumps({"type": "fixed", "name": f"F{client}_{number}", "size": 4})
            with suppress(OSError, http.client.HTTPException), connected(node, 1) as (connection,):
                status, answer = connection.register(subject, schema)
                if status == 200:
                    with lock:
                        acknowledged[subject] = answer["id"]
                else:
                    assert answer["error_code"] in _MAY_BE_SENT_AGAIN, answer

    def until_more_are_acknowledged():
        before = len(acknowledged)
        until(lambda: len(acknowledged) > before + 5)

    with started(log_url) as node:
        clients = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for client in clients:
            client.start()
        writer, other, _ = node.workers
        for victim in ("the writer", "another", "the writer"):
            until_more_are_acknowledged()
            if victim == "the writer":
                writer = kill(node, writer)
            else:
                kill(node, other)
        until_more_are_acknowledged()
        stop.set()
        for client in clients:
            client.join()
        with connected_to_all(node) as connections:
            for connection in connections:
                subjects = set(connection.call("GET", "/subjects")[1])
                assert acknowledged.keys() <= subjects
            for subject, schema_id in acknowledged.items():
                assert schema_id == connections[0].call("GET", f"/subjects/{subject}/versions/1")[1]["id"]
    assert len(acknowledged) == len(set(acknowledged.values()))


def test_write_to_a_stopped_worker_has_an_unknown_outcome_and_the_next_one_succeeds(tmp_path):
    """While the worker that writes is stopped, the others read, and say truthfully what they know of a write."""
    with started(f"sqlite:///{tmp_path}/strata.db", "--write-timeout=1") as node, ExitStack() as stack:
        stopped = first_worker(node)
        while True:
            connection = Connection(node)
            if worker_of(node, connection) != stopped:
                break
            connection.close()
        stack.enter_context(closing(connection))
        until(lambda: connection.register("s")[0] == 200)
        refused = []
        os.kill(stopped, signal.SIGSTOP)
        try:
            while (code := connection.register(f"t{len(refused)}")[1]["error_code"]) == 50302:
                refused.append(f"t{len(refused)}")  # the other worker paused, and the time was over before it was sent
            assert 50003 == code
            assert (200, ["s"]) == connection.call("GET", "/subjects")
        finally:
            os.kill(stopped, signal.SIGCONT)
        until(lambda: connection.register("u")[0] == 200)
        assert not {*refused} & {*connection.call("GET", "/subjects")[1]}


def test_sigterm_drains_every_worker_and_a_second_one_ends_the_node(tmp_path):
    """All workers report that they are not ready and still serve reads and writes; then the node exits with 0."""
    with started(f"sqlite:///{tmp_path}/strata.db", "--drain-seconds=600") as node:
        workers = node.workers
        with connected_to_all(node) as connections:
            node.send(signal.SIGTERM)
            until(lambda: connections[0].call("GET", "/health/ready")[0] == 503)
            for number, connection in enumerate(connections):
                status, answer = connection.call("GET", "/health/ready")
                assert (503, "the node is shutting down") == (status, answer["reason"])
                assert 200 == connection.register(f"s{number}")[0]

        assert 0 == node.terminate()
        assert not any(map(is_running, workers))
        assert 1 == len(re.findall("stopped$", node.output, re.MULTILINE))


def test_sigterm_lets_writes_in_flight_finish(tmp_path):
    """Requests that clients are sending when the signal arrives get their answers, from every worker."""
    body = b'{"schema": "\\"int\\""}'
    head = b"POST /subjects/s%d/versions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n"
    with started(f"sqlite:///{tmp_path}/strata.db") as node, ExitStack() as stack:
        address = "127.0.0.1", node.port
        wires = [stack.enter_context(socket.create_connection(address, _ANSWERS_S)) for _ in range(2 * _WORKERS)]
        for number, wire in enumerate(wires):
            wire.sendall(head % (number, len(body)) + body[:5])
        until(lambda: sum(connections_of(node).values()) == len(wires))
        with connected_to_all(node):
            pass  # the workers have read the first parts by now
        node.send(signal.SIGTERM)
        for wire in wires:
            wire.sendall(body[5:])
        for wire in wires:
            assert wire.recv(100).startswith(b"HTTP/1.1 200")
        assert 0 == node.wait()


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGKILL]], ids=["Ctrl-C", "kill -9"])
def test_no_worker_outlives_its_parent(tmp_path, monkeypatch, signals):
    """Ctrl-C, which reaches every process, and kill -9 of the parent alone leave neither processes nor files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    with started(f"sqlite:///{tmp_path}/strata.db") as node:
        workers = node.workers
        (folder,) = (tmp_path / "tmp").iterdir()
        assert 0o700 == folder.stat().st_mode & 0o777
        if signals == [signal.SIGINT]:
            for worker in workers:
                os.kill(worker, signal.SIGINT)
            assert is_ready(node)
        os.kill(node.pid, signals[0])

        assert (0 if signals == [signal.SIGINT] else -signal.SIGKILL) == node.wait()
        until(lambda: not any(map(is_running, workers)))
        assert not folder.exists()
        node.restart()
        until(lambda: is_ready(node))


def test_log_lines_of_all_workers_are_one_stream(tmp_path):
    """Each line is one JSON object; those of a worker carry its number, and a write that it passes on has one line."""
    with started(f"sqlite:///{tmp_path}/strata.db", "--log-format=json", "--access-log") as node:
        with connected_to_all(node) as connections:
            for connection in connections:
                for _ in range(20):
                    connection.call("GET", "/subjects")
                connection.register("s")
        node.terminate()
        lines = [json.loads(line) for line in node.output.splitlines()]

    served = Counter(line["worker"] for line in lines if line["message"].startswith("GET /subjects "))
    assert set(range(_WORKERS)) == served.keys()
    assert 20 * len(connections) == served.total()
    assert len(connections) == len([line for line in lines if line["message"].startswith("POST /subjects/s/versions ")])
    assert [None] == [line.get("worker") for line in lines if "ready in" in line["message"]]
