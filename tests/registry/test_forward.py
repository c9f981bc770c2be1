"""Writes that go to another node: what is done once is not done twice, and a dead holder holds nobody up."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest
import uvicorn

from harness.processes import free_port
from registry.app import create_app
from registry.settings import Settings
from storage.kafka_log import KafkaLog
from storage.log import START
from storage.memory_log import MemoryLog
from storage.record_json import encode
from storage.records import ConfigKey, ConfigValue

CONFIG = "/config/s"
NONE = encode(ConfigKey("s"), ConfigValue({"compatibilityLevel": "NONE"}))


class HeldLog(MemoryLog):
    """A memory log that says another node holds the pen, until this one has written."""

    url: str | None = None

    def holder(self):
        """The other node."""
        return self.url

    def append(self, after, records):
        """Append, which takes the pen."""
        entries = super().append(after, records)
        self.url = None
        return entries


class Holder:
    """The other node: whatever connection it gets, `meet` says what becomes of it."""

    def __init__(self, meet):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.met = []
        self._meet = meet
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            request = connection.recv(65536)
            self.met.append((connection, request))
            self._meet(connection, request)


@contextmanager
def node(log) -> Iterator[int]:
    """A registry over a log, or over what a function opens for its URL; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    log = log(f"http://127.0.0.1:{listener.getsockname()[1]}") if callable(log) else log
    app = create_app(log, Settings(log="memory:"))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def put(port, level="NONE"):
    """Set the level of a subject, and return status and error code."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("PUT", CONFIG, json.dumps({"compatibility": level}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body.get("error_code")


def levels(log):
    """Every level that was ever written."""
    return [json.loads(entry.value)["compatibilityLevel"] for entry in log.read(START)]


def lost_after_writing(log):
    """The holder writes what it is asked, then dies before it can say so; meanwhile another client sets FULL."""

    def meet(connection, _request):
        full = encode(ConfigKey("s"), ConfigValue({"compatibilityLevel": "FULL"}))
        MemoryLog.append(log, log.end(), [NONE])
        MemoryLog.append(log, log.end(), [full])
        connection.close()

    return meet


def test_a_write_that_may_have_been_done_is_not_done_again():
    """A holder that dies after writing, before answering: the fate is unknown, and the write is not repeated."""
    log = HeldLog()
    holder = Holder(lost_after_writing(log))
    log.url = holder.url
    with node(log) as port:
        assert (500, 50003) == put(port)
        assert ["NONE", "FULL"] == levels(log)
    holder.listener.close()


@pytest.mark.parametrize("path", ["", "/k/undelete", "/k/deks", "/k/deks/s", "/k/deks/s/versions/1/undelete"])
def test_encryption_keys_are_written_by_the_holder(path):
    """A POST that makes a key, or takes its deletion back, goes where the pen is."""
    log = HeldLog()
    holder = Holder(lambda connection, _request: connection.close())
    log.url = holder.url
    with node(log) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/dek-registry/v1/keks" + path, "{}")
        assert 50003 == json.loads(connection.getresponse().read())["error_code"]
        connection.close()
    assert [b"POST"] == [request.split()[0] for _, request in holder.met]
    holder.listener.close()


def test_after_a_lost_answer_this_node_writes_itself():
    """The next write does not wait for a holder that has just failed."""
    log = HeldLog()
    holder = Holder(lambda connection, _request: connection.close())
    log.url = holder.url
    with node(log) as port:
        assert (500, 50003) == put(port)
        assert (200, None) == put(port, "FULL")
        assert ["FULL"] == levels(log)
    assert 1 == len(holder.met)
    holder.listener.close()


@pytest.mark.timeout(30)
def test_a_silent_holder_is_given_up():
    """A holder that is stopped, or cut off without a word, is found out by its silence, long before any time-out."""
    log = HeldLog()
    holder = Holder(lambda _connection, _request: None)
    log.url = holder.url
    with node(log) as port:
        assert (500, 50003) == put(port)
        assert (200, None) == put(port, "FULL")
        assert ["FULL"] == levels(log)
        for connection, _ in holder.met:
            connection.close()
    holder.listener.close()


def test_a_slow_holder_is_waited_for():
    """A holder that takes its time over a write, and answers other requests meanwhile, is not given up."""
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
        assert alive.wait(20)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        connection.close()

    holder = Holder(meet)
    log.url = holder.url
    with node(log) as port:
        assert (200, None) == put(port)
        assert [] == levels(log)
    holder.listener.close()


def test_a_holder_that_is_gone_is_replaced():
    """A holder that nobody can connect to was asked nothing: this node writes in its place, and nobody notices."""
    log = HeldLog()
    log.url = f"http://127.0.0.1:{free_port()}"
    with node(log) as port:
        assert (200, None) == put(port)
        assert ["NONE"] == levels(log)


@pytest.mark.kafka
def test_nodes_do_not_fight_for_the_pen(kafka_broker):
    """Three nodes to which everybody writes at once, from a topic without a holder on: they settle on one of them."""
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
    # Each may take the pen before it knows of the others, and once more if the last one had no word in yet.
    assert sum(b"NOOP" in key for key in keys) <= 6
