"""Forwarded writes: no write is carried out twice, and a dead holder delays no other write."""

import http.client
import json
import logging
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from uuid import uuid4

import pytest
import urllib3

from harness.held_log import HeldLog
from harness.logs import ServerLog
from harness.processes import free_port
from harness.serving import serving
from harness.waiting import until
from strata.registry.app import create_app
from strata.registry.http import forward, node_calls
from strata.registry.http.pipeline import Pipeline
from strata.registry.node.board import Seat
from strata.registry.settings import Settings
from strata.storage.kafka.log import KafkaLog
from strata.storage.log import START, Conflict, LogError, MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import ConfigKey, ConfigValue

CONFIG = "/config/s"
NONE = encode(ConfigKey("s"), ConfigValue({"compatibilityLevel": "NONE"}))


class Holder:
    """The other node, which passes each connection that it gets to `meet`.

    Args:
        meet: is called with the connection and its first request besides the one that asks whether a node answers.
        is_gone: whether it closes each connection at once, as a proxy whose node has ended.
    """

    def __init__(self, meet, *, is_gone=False):
        self._is_gone = is_gone
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.met = []
        self._meet = meet
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(60)
            if self._is_gone:
                connection.close()
                continue
            try:
                request = connection.recv(65536)
                if request.startswith(b"HEAD / "):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
                    request = connection.recv(65536)
            except OSError:  # its client has gone
                connection.close()
                continue
            self.met.append((connection, request))
            self._meet(connection, request)

    def close(self):
        """Accept no more, and close all connections.

        `close` alone leaves the thread in `accept`. A stop of the process repeats that call, by the number of the
        descriptor, which may be the socket of another server by then.
        """
        self.listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.listener.close()
        for connection, _request in self.met:
            connection.close()


@contextmanager
def node(log, **settings) -> Iterator[int]:
    """Serve a registry over a log, or over the log that a function opens for the node's URL; yield its port."""
    with served(log, **settings) as (port, _app):
        yield port


@contextmanager
def served(log, **settings) -> Iterator[tuple[int, Pipeline]]:
    """Serve a registry over a log, or over the log that a function opens for the node's URL; yield port and app."""
    apps = []

    def make(port):
        opened = log(f"http://127.0.0.1:{port}") if callable(log) else log
        apps.append(create_app(opened, Settings(log="memory:", **settings)))
        return apps[0]

    with serving(make) as port:
        yield port, apps[0]


def put(port, level="NONE"):
    """Set the level of a subject, and return status and error code."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("PUT", CONFIG, json.dumps({"compatibility": level}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body.get("error_code")


def levels(log):
    """Return every level in the log."""
    return [entry.value and json.loads(entry.value)["compatibilityLevel"] for entry in log.read(START)]


def lost_after_writing(log):
    """Return a holder that writes and dies before it answers, while another client sets FULL."""

    def meet(connection, _request):
        full = encode(ConfigKey("s"), ConfigValue({"compatibilityLevel": "FULL"}))
        MemoryLog.append(log, log.end(), [NONE])
        MemoryLog.append(log, log.end(), [full])
        connection.close()

    return meet


def test_a_write_that_may_have_been_done_is_not_done_again():
    """If a holder dies after it writes and before it answers, the outcome is unknown, and no node repeats the write."""
    log = HeldLog()
    holder = Holder(lost_after_writing(log))
    log.url = holder.url
    with node(log) as port:
        assert (500, 50003) == put(port)
        assert ["NONE", "FULL"] == levels(log)
    holder.close()


@pytest.mark.parametrize("path", ["", "/k/undelete", "/k/deks", "/k/deks/s", "/k/deks/s/versions/1/undelete"])
def test_encryption_keys_are_written_by_the_holder(path):
    """A node forwards a POST that creates or undeletes a key to the holder of the pen."""
    log = HeldLog()
    holder = Holder(lambda connection, _request: connection.close())
    log.url = holder.url
    with node(log) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/dek-registry/v1/keks" + path, "{}")
        assert 50003 == json.loads(connection.getresponse().read())["error_code"]
        connection.close()
    assert [b"POST"] == [request.split()[0] for _, request in holder.met]
    holder.close()


def test_a_forwarded_write_keeps_the_context_of_its_path():
    """A forwarded write names the subject with its context."""
    holder, log = Holder(answering(200, b"[1]")), HeldLog()
    log.url = holder.url
    with node(log) as port:
        assert (200, [1]) == call(port, "DELETE", "/contexts/.c/subjects/x")[::2]

    assert [b"/subjects/%3A.c%3Ax"] == [request.split()[1] for _, request in holder.met]
    holder.close()


def test_after_a_lost_answer_this_node_writes_itself():
    """After a holder fails, the next write does not wait for it."""
    log = HeldLog()
    holder = Holder(lambda connection, _request: connection.close())
    log.url = holder.url
    with node(log) as port:
        assert (500, 50003) == put(port)
        assert (200, None) == put(port, "FULL")
        assert ["FULL"] == levels(log)
    assert 1 == len(holder.met)
    holder.close()


@pytest.fixture
def patient(monkeypatch):
    """Let nodes wait longer for the answer to a probe than any pause of the machine."""
    monkeypatch.setattr(node_calls, "_PROBE_TIMEOUT", urllib3.Timeout(60))
    monkeypatch.setattr(node_calls, "_FIRST_ANSWER_S", 60.0)


@pytest.mark.timeout(120)
def test_a_silent_holder_is_given_up():
    """A node notices the silence of a holder that is stopped or cut off, long before any time-out."""
    log = HeldLog()
    holder = Holder(lambda _connection, _request: None)
    log.url = holder.url
    with node(log, write_timeout=600) as port:
        assert (500, 50003) == put(port)
        assert (200, None) == put(port, "FULL")
        assert ["FULL"] == levels(log)
    holder.close()


def test_a_slow_holder_is_waited_for(patient):
    """A node keeps waiting for a holder that is slow with a write but answers other requests."""
    log = HeldLog()
    alive = threading.Event()
    body = b'{"compatibility":"NONE"}'

    def meet(connection, request):
        if request.startswith(b"PUT"):
            threading.Thread(target=answer_when_probed, args=(connection,)).start()
            return
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        connection.close()
        alive.set()

    def answer_when_probed(connection):
        assert alive.wait(60)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        connection.close()

    holder = Holder(meet)
    log.url = holder.url
    with node(log) as port:
        assert (200, None) == put(port)
        assert [] == levels(log)
    holder.close()


def test_a_holder_that_is_gone_is_replaced():
    """If no node can connect to the holder, this node takes the pen and writes, and the client sees no error."""
    log = HeldLog()
    log.url = f"http://127.0.0.1:{free_port()}"
    with node(log) as port:
        assert (200, None) == put(port)
        assert ["NONE"] == levels(log)


def test_a_holder_behind_a_proxy_is_replaced_once_it_has_ended():
    """A connection on which no node answers carries no write, so the client is not left in doubt."""
    log, holder = HeldLog(), Holder(None, is_gone=True)
    log.url = holder.url
    with node(log) as port:
        assert (200, None) == put(port)
        assert ["NONE"] == levels(log)
    holder.close()


def call(port, method, path, body=None, headers=()):
    """Send a request; return status, headers and content of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json", **dict(headers)})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def answering(status, body, headers=b""):
    """Return a holder's behaviour: send this answer to every request."""

    def meet(connection, _request):
        connection.sendall(b"HTTP/1.1 %d x\r\n%bContent-Length: %d\r\n\r\n%b" % (status, headers, len(body), body))
        connection.close()

    return meet


class FailingLog(HeldLog, ServerLog):
    """A log whose pen another node holds, and which cannot be read while `failure` is set."""

    failure: Exception | None = None

    def read(self, after):
        """Read, or fail."""
        if self.failure:
            raise self.failure
        return super().read(after)


FAILURE = LogError("postgresql+psycopg://db.internal:5432 is gone")


def test_a_forwarded_write_carries_no_credentials():
    """The holder's URL comes from the log, where anyone who may write to the topic can name one."""
    log = HeldLog()
    holder = Holder(answering(200, b'{"compatibility":"NONE"}'))
    log.url = holder.url
    with node(log) as port:
        secrets = {"Authorization": "Basic YWxpY2U6cHc=", "Cookie": "session=1", "X-Forwarded-User": "alice"}
        assert 200 == call(port, "PUT", CONFIG, {"compatibility": "NONE"}, secrets)[0]
    request = holder.met[0][1].lower()
    assert b"put /config/s" in request
    for name in (b"authorization", b"cookie", b"x-forwarded-user"):
        assert name not in request
    holder.close()


def test_an_acknowledged_write_is_answered_as_such():
    """A write that the holder acknowledged succeeds though this node cannot read it; then the cache serves nothing."""
    log = FailingLog()
    holder = Holder(answering(200, b'{"compatibility":"NONE"}'))
    with node(log) as port:
        assert 200 == call(port, "POST", "/subjects/s/versions", {"schema": '"int"'})[0]
        assert 200 == call(port, "GET", "/subjects/s/versions/1")[0]
        log.failure, log.url = FAILURE, holder.url
        assert (200, None) == put(port)

        for path in ("/subjects/s/versions/1", "/schemas/ids/1", "/config/s"):
            status, _, content = call(port, "GET", path)
            assert (503, 50301) == (status, content["error_code"])
        log.failure = None
        assert 200 == call(port, "GET", "/subjects/s/versions/1")[0]
        log.failure = FAILURE
        assert 200 == call(port, "GET", "/subjects/s/versions/1")[0]
    holder.close()


NOT_THE_WRITER = b'{"error_code":50004,"message":"Leader not known"}'
NOT_WRITTEN = b'{"error_code":50302,"message":"Nothing was written"}'


@pytest.mark.parametrize(
    ("meet", "log_fails", "status", "code"),
    [
        pytest.param(answering(200, b"{}"), True, 200, None, id="written, and then the log fails here"),
        pytest.param(answering(404, b'{"error_code":40401}'), True, 404, 40401, id="refused, and then it fails here"),
        pytest.param(
            answering(500, NOT_THE_WRITER), True, 503, 50302, id="nothing written, and no other node is found"
        ),
        pytest.param(answering(500, b'{"error_code":50002}'), False, 500, 50002, id="unknown to the holder"),
        pytest.param(answering(503, NOT_WRITTEN, b"Retry-After: 1\r\n"), False, 503, 50302, id="not written there"),
        pytest.param(answering(502, b"<html>Bad Gateway"), False, 500, 50003, id="something in between failed"),
        pytest.param(answering(500, b"Internal Server Error"), False, 500, 50003, id="no error object"),
        pytest.param(lambda connection, _request: connection.close(), False, 500, 50003, id="no answer"),
    ],
)
def test_an_answer_says_what_is_known_of_the_write(meet, log_fails, status, code):
    """The answer to a forwarded write claims only what the node knows, and names no address."""
    log = FailingLog()
    holder = Holder(meet)
    with node(log) as port:
        log.url, log.failure = holder.url, FAILURE if log_fails else None
        found, headers, content = call(port, "PUT", CONFIG, {"compatibility": "NONE"})

    assert (status, code) == (found, content.get("error_code"))
    assert ("1" if code == 50302 else None) == headers.get("Retry-After", headers.get("retry-after"))
    assert not [word for word in ("127.0.0.1", "db.internal", "5432") if word in str(content)]
    holder.close()


def test_a_holder_that_has_lost_the_pen_is_named(caplog):
    """A node logs that the one it forwards to no longer holds the pen; the write then finds no other holder."""
    caplog.set_level(logging.INFO, "strata")
    log = FailingLog()
    holder = Holder(answering(500, NOT_THE_WRITER))
    with node(log) as port:
        log.url, log.failure = holder.url, FAILURE
        assert 503 == call(port, "PUT", CONFIG, {"compatibility": "NONE"})[0]
    holder.close()

    assert {"event": "pen_moved", "holder": holder.url} in [record.args for record in caplog.records]


def test_a_holder_that_refuses_is_replaced():
    """If the holder says that it is not the writer, and no other node has signed, this node takes the pen."""
    log = HeldLog()
    holder = Holder(answering(500, NOT_THE_WRITER))
    log.url = holder.url
    with node(log) as port:
        assert (200, None) == put(port)
        assert ["NONE"] == levels(log)
    assert 1 == len(holder.met)
    holder.close()


def test_a_node_whose_holder_fails_cannot_write():
    """A node whose forwarded write failed says that it cannot write, until one succeeds."""
    log, path = HeldLog(), "/health/write"
    answers = [(200, b'{"compatibility":"NONE"}'), (503, NOT_WRITTEN)]
    holder = Holder(lambda connection, request: answering(*answers.pop())(connection, request))  # noqa: PLW0108 - later
    log.url = holder.url
    with node(log) as port:
        assert 200 == call(port, "GET", path)[0]
        assert (503, 50302) == put(port)
        status, _, content = call(port, "GET", path)
        assert (200, None) == put(port)
        assert 200 == call(port, "GET", path)[0]
    assert (503, "the last write failed: the node that holds the pen does not accept writes") == (
        status,
        content["reason"],
    )
    holder.close()


def test_the_holder_gets_the_time_that_is_left():
    """The holder gets the time that is left, so it does not carry out later what this node has given up."""
    log = HeldLog()
    holder = Holder(answering(503, NOT_WRITTEN))
    log.url = holder.url
    with node(log, write_timeout=20) as port:
        assert (503, 50302) == put(port)
    (_, request) = holder.met[0]
    (left,) = [line.split(b":")[1] for line in request.split(b"\r\n") if line.lower().startswith(b"x-strata-time-left")]
    assert 0 < float(left) <= 18
    holder.close()


@pytest.mark.parametrize(("left", "status"), [("0", 503), ("-1", 503), ("nan", 200), ("inf", 200), ("x", 200)])
def test_a_forwarded_write_whose_time_is_over_is_not_done(left, status):
    """A node does not carry out a forwarded write whose time is over; it ignores a time that it cannot parse."""
    log = MemoryLog()
    with node(log) as port:
        headers = {"X-Forward": "true", "X-Strata-Time-Left": left}
        found, _, content = call(port, "PUT", CONFIG, {"compatibility": "NONE"}, headers)

    assert (status, 50302 if status == 503 else None) == (found, content.get("error_code"))
    assert (["NONE"] if status == 200 else []) == levels(log)


def test_a_holder_that_is_too_slow_leaves_the_fate_unknown(patient):
    """A live holder that does not answer in time may have written: the pen stays with it."""
    log = HeldLog()

    def meet(connection, request):
        if not request.startswith(b"PUT"):
            answering(200, b"{}")(connection, request)

    holder = Holder(meet)
    log.url = holder.url
    with node(log, write_timeout=3) as port:
        found = put(port)
        while found == (503, 50302):  # the time was over before the holder was asked
            assert not [request for _, request in holder.met if request.startswith(b"PUT")]
            found = put(port)
        assert (500, 50003) == found
        assert holder.url == log.url
    holder.close()


class StuckLog(ServerLog):
    """A log whose reads and appends hang while `gate` is clear."""

    def __init__(self):
        super().__init__()
        self.gate, self.reached = threading.Event(), threading.Event()
        self.gate.set()

    def read(self, after):
        """Read once the gate opens."""
        self.gate.wait(60)
        return super().read(after)

    def append(self, after, records):
        """Append once the gate opens."""
        if not self.gate.is_set():
            self.reached.set()
        self.gate.wait(60)
        return super().append(after, records)


class FencedLog(HeldLog):
    """A log that another node takes the pen of during the first append, and signs later."""

    def __init__(self):
        super().__init__()
        self.appending, self.refused, self.fenced, self.again = (threading.Event() for _ in range(4))

    def status(self):
        """Return whether this node has the pen."""
        return replace(super().status(), holds_pen=not self.fenced.is_set())

    def append(self, after, records):
        """Fail at the first time, once a write that another node forwarded was refused."""
        if self.appending.is_set():
            self.again.set()
            return super().append(after, records)
        self.appending.set()
        assert self.refused.wait(60)
        self.fenced.set()
        raise Conflict


def test_a_node_that_shuts_down_does_not_take_the_pen_back(monkeypatch):
    """Once it has refused a write, so that another node takes the pen, it waits until that node has signed."""
    monkeypatch.setattr(forward, "_SUCCESSION_S", 60.0)
    log, seat, settings = FencedLog(), Seat(), Settings(log="memory:")
    holder = Holder(answering(200, b'{"compatibility":"NONE"}'))
    with serving(lambda _port: create_app(log, settings, seat=seat)) as port, ThreadPoolExecutor(1) as clients:
        own = clients.submit(put, port)
        assert log.appending.wait(60)
        seat.board.drain()
        assert (500, 50004) == sent_on(port)
        log.refused.set()
        assert not log.again.wait(0.3)
        log.url = holder.url
        assert (200, None) == own.result()
    assert [] == levels(log)
    assert [b"PUT"] == [request.split()[0] for _, request in holder.met]
    holder.close()


def sent_on(port):
    """Set the level of a subject as another node would for its client, and return status and error code."""
    status, _, content = call(port, "PUT", CONFIG, {"compatibility": "NONE"}, {"X-Forward": "true"})
    return status, content["error_code"]


def sent(port, method, path, body=b""):
    """Send a request on a new connection, without waiting for the answer."""
    connection = socket.create_connection(("127.0.0.1", port))
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    connection.sendall(head.encode() + b"\r\n\r\n" + body)
    return connection


def test_writes_that_wait_are_bounded():
    """The node refuses writes above the limit on waiting requests or bytes at once, and never carries them out."""
    log = StuckLog()
    large = json.dumps({"compatibility": "NONE", "normalize": False, "x": "x" * 300}).encode()
    with served(log, max_waiting=3, max_waiting_bytes=2 * len(large)) as (port, app):
        log.gate.clear()
        waiting = [sent(port, "PUT", "/config/a", large), sent(port, "PUT", "/config/b", large)]
        until(lambda: app._forward._waiting == 2)
        refused = [call(port, "PUT", "/config/s", {"compatibility": "NONE", "x": "x" * 300})]
        waiting.append(sent(port, "DELETE", "/config/a"))
        until(lambda: app._forward._waiting == 3)
        refused.append(call(port, "DELETE", "/config/b"))
        log.gate.set()
        for connection in waiting:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            connection.close()
        until(lambda: (app._forward._waiting, app._forward._waiting_bytes) == (0, 0))
        for status, headers, content in refused:
            assert (503, 50302, "1") == (status, content["error_code"], headers["retry-after"])
            assert "Nothing was written: too many writes are waiting. Try again later" == content["message"]
        assert 200 == put(port)[0]
    assert ["NONE", "NONE", None, "NONE"] == levels(log)


def test_a_body_of_any_size_is_taken_where_nothing_waits():
    """The limit on waiting bytes never refuses a single body; only `--max-body` does."""
    with node(MemoryLog(), max_waiting_bytes=1) as port:
        assert (200, None) == put(port)


def test_a_client_that_has_gone_deletes_nothing():
    """A write that waits behind a hanging log is dropped if its client disconnects; one that the log has stays."""
    log = StuckLog()
    with served(log) as (port, app):
        assert 200 == put(port)[0]
        log.gate.clear()
        first = sent(port, "PUT", CONFIG, b'{"compatibility":"FULL"}')
        assert log.reached.wait(60)
        behind = [sent(port, "DELETE", CONFIG), sent(port, "PUT", CONFIG, b'{"compatibility":"BACKWARD"}')]
        until(lambda: app._forward._waiting == 3)
        for client in (first, *behind):
            client.close()
        until(lambda: app._forward._waiting == 0)
        log.gate.set()
        assert 200 == put(port, "FORWARD")[0]
    assert ["NONE", "FULL", "FORWARD"] == levels(log)


def test_a_client_that_has_gone_is_gone_for_the_holder_too(patient):
    """A node aborts a forwarded request if its own client disconnects; the holder keeps the pen."""
    log = HeldLog()
    over = threading.Event()

    def wait_for_the_end(connection):
        if connection.recv(1) == b"":
            over.set()

    def meet(connection, request):
        if request.startswith(b"DELETE"):
            threading.Thread(target=wait_for_the_end, args=(connection,)).start()
        else:
            answering(200, b"{}")(connection, request)

    holder = Holder(meet)
    log.url = holder.url
    with served(log) as (port, app):
        client = sent(port, "DELETE", CONFIG)
        until(lambda: holder.met)
        client.close()
        assert over.wait(60)
        until(lambda: app._forward._waiting == 0)
        assert (200, None) == put(port)
        assert holder.url == log.url
    assert [b"DELETE", b"PUT"] == [request.split()[0] for _, request in holder.met if not request.startswith(b"GET")]
    holder.close()


@pytest.mark.kafka
def test_nodes_do_not_fight_for_the_pen(kafka_broker, patient):
    """Three nodes that all get writes at once, on a topic without a holder, settle on one holder."""
    topic = f"schemas-{uuid4().hex[:8]}"

    def opened(url):
        return KafkaLog(kafka_broker.bootstrap, topic, advertised_url=url)

    with node(opened) as one, node(opened) as two, node(opened) as three:
        with ThreadPoolExecutor(12) as clients:
            answers = list(clients.map(put, [one, two, three] * 40))
        with closing(KafkaLog(kafka_broker.bootstrap, topic, advertised_url=None)) as log:
            keys = [entry.key for entry in log.read(START)]
    assert {(200, None)} == set(answers)
    assert 120 == sum(b"CONFIG" in key for key in keys)
    # Each node may take the pen before it learns of the others, and a second time if the last node had not written yet.
    assert sum(b"NOOP" in key for key in keys) <= 6


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "x", "1e400"])
def test_a_time_that_is_not_a_number_is_ignored(value):
    """A client cannot give its write a deadline that is not one."""
    with node(HeldLog()) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("PUT", "/config", '{"compatibility":"FULL"}', {"X-Strata-Time-Left": value})
        status = connection.getresponse().status
        connection.close()

    assert 200 == status
