"""Health probes: alive, ready for requests and for writes, and the reason when not; and what `/v1/log` reports."""

import asyncio
import http.client
import json
import logging
import signal
import threading
import time
from contextlib import closing
from dataclasses import replace

import pytest

from harness.log_lines import events_of
from harness.logs import ServerLog
from harness.registry import RegistryNode
from strata.registry.app import create_app
from strata.registry.core.decide.decision import Decision
from strata.registry.core.errors import RegistryError
from strata.registry.core.tally import Tally
from strata.registry.core.writer import Writer
from strata.registry.features.access.feature import ACCESS
from strata.registry.features.standby.health import StandbyHealth
from strata.registry.http.server import HttpServer
from strata.registry.http.tls import TlsContexts
from strata.registry.node.board import Board, Seat
from strata.registry.node.health import Health
from strata.registry.settings import Settings
from strata.storage.log import LogError, LogReadOnly, LogTimeout, MemoryLog
from strata.storage.record_json import encode
from strata.storage.records import ModeKey, StandbyKey, StandbyValue


class MoodyLog(ServerLog):
    """A memory log that can fail, or hang until the test releases it."""

    def __init__(self):
        super().__init__()
        self.failure = None
        self.gate = threading.Event()
        self.gate.set()

    def read(self, after):
        """Read, fail or hang."""
        self.gate.wait(60)
        if self.failure:
            raise self.failure
        return super().read(after)


async def until(condition):
    """Wait for a condition, for at most a minute."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - an arbitrary condition has no event to wait for
            await asyncio.sleep(0.005)


@pytest.fixture
def log():
    """Return a log without failures."""
    return MoodyLog()


@pytest.fixture
async def health(log):
    """Yield the health of a node that checks its log every few milliseconds."""
    seat = Seat()
    found = Health(Writer(log, tally=Tally(seat.board.numbers(0))), seat, every_s=0.005, too_long_s=0.2)
    watch = asyncio.create_task(found.watch())
    yield found
    watch.cancel()
    log.gate.set()


async def test_an_idle_node_reads_on(log, health):
    """The node reads the appends of other nodes even without requests."""
    log.append(-1, [encode(ModeKey("s"), "READONLY")])

    await until(lambda: health.progress()["offset"] == 0)
    assert (0, 0) == (health.progress()["behind"], health.progress()["end"])
    await until(lambda: health.write_reason() is None)


async def test_a_read_for_a_request_does_not_put_off_the_next_one(log, health):
    """Answers from memory are never older than one interval, whenever the last request read the log."""
    health._writer.read_at = time.monotonic() + 3600
    log.append(-1, [encode(ModeKey("s"), "READONLY")])

    await until(lambda: health.progress()["offset"] == 0)


async def test_an_idle_node_notices_a_dead_log(log, health):
    """A failing log makes the node not ready for writes, with a reason safe to publish, until the log answers again.

    It stays ready for requests, since it still answers those that need no log.
    """
    log.failure = LogError("no broker at kafka.internal:9092")
    await until(lambda: health.write_reason() == "the log cannot be read: the log failed or did not answer")
    assert health.reason() is None

    log.failure = None
    await until(lambda: health.write_reason() is None)


async def test_a_log_that_hangs_is_noticed(log, health):
    """A log that does not answer makes the node not ready for writes; the probe does not wait for the log."""
    log.gate.clear()
    await until(lambda: "not answered" in (health.write_reason() or ""))
    assert health.reason() is None

    log.gate.set()
    await until(lambda: health.write_reason() is None)


async def test_a_log_that_becomes_read_only_is_noticed(log, health):
    """A read-only log makes the node not ready for writes, but for requests, until the log accepts writes again."""

    def refuse():
        raise LogReadOnly("attempt to write a readonly database: /var/lib/strata.db")

    log.check_writable = refuse
    await until(lambda: health.write_reason() == "the log is read-only: reads are served, writes are refused")
    assert health.reason() is None

    del log.check_writable
    await until(lambda: health.write_reason() is None)


@pytest.mark.parametrize("worker", [0, 1])
async def test_a_worker_without_a_log_keeps_the_node_from_writing(log, worker):
    """Every worker of a node says that it is not ready for writes while one of them does not reach the log."""
    board = Board(2)
    seats = [Seat(board, 0), Seat(board, 1)]
    for seat in seats:
        seat.beat(0)
        seat.report(ready=True, can_write=True)
    found = [Health(Writer(log), seat) for seat in seats]
    assert [None, None] == [one.write_reason() for one in found]
    seats[worker].report(ready=True, can_write=False)

    other = found[1 - worker]
    assert f"not all workers of the node reach the log; these do not: {worker}" == other.write_reason()
    assert other.reason() is None


def test_a_node_without_its_log_is_sent_requests_but_no_writes(configured):
    """While the log hangs, schemas by id are served, `latest` gets 503 in bounded time, and the two probes differ."""
    log = MoodyLog()
    api = configured(Settings(log="memory:", read_timeout=0.05, write_timeout=3600), log)
    schema_id, _ = api.placed("s", '"int"')
    assert [(200, True, True)] * 2 == [
        (status, answer["ready"], answer["canWrite"])
        for status, answer in (api.get(f"/health/{path}") for path in ("ready", "write"))
    ]
    log.gate.clear()
    try:
        status, answer = api.get("/subjects/s/versions/latest")
        assert (503, 50301) == (status, answer["error_code"])
        assert 200 == api.get(f"/schemas/ids/{schema_id}")[0]
        log.failure = LogError("no broker")
        log.gate.set()
        while (found := api.get("/health/write"))[0] == 200:
            api.get("/subjects")
        ready = api.get("/health/ready")
    finally:
        log.gate.set()

    assert (503, False, False) == (found[0], found[1]["ready"], found[1]["canWrite"])
    assert "the log cannot be read: the log failed or did not answer" == found[1]["reason"]
    assert (200, True, False) == (ready[0], ready[1]["ready"], ready[1]["canWrite"])


async def test_a_standby_that_waits_for_its_first_copy_is_not_ready(log, caplog):
    """Readiness and the log say that the first copy is not complete, and that it is; a standby never takes writes."""
    caplog.set_level(logging.INFO)
    mark = StandbyValue("http://first", -1, 0, 0, "", "")
    log.append(-1, [encode(StandbyKey("."), mark)])
    writer, seat = Writer(log), Seat()
    standby = StandbyHealth(lambda: writer.state, seat.board)
    health = Health(writer, seat, every_s=0.005, conditions=[standby.condition])
    watch = asyncio.create_task(health.watch())
    await until(lambda: health.reason() == "the first copy of http://first is not complete")
    await until(lambda: "not_ready" in events_of(caplog))
    log.append(0, [encode(StandbyKey("."), replace(mark, copied_at=1))])

    await until(lambda: "ready_again" in events_of(caplog))
    watch.cancel()
    assert (None, "this registry is a standby of http://first: it refuses writes") == (
        health.reason(), health.write_reason(),
    )  # fmt: skip


async def test_a_node_that_is_behind_says_how_far(log, health):
    """Progress shows the end of the log before the node has read up to it."""
    for number in range(3):
        log.append(number - 1, [encode(ModeKey("s"), "READONLY")])
    await until(lambda: health.progress()["offset"] == 2)
    log.failure = LogError("no reads")
    log.append(2, [encode(ModeKey("s"), "READONLY")])

    await until(lambda: health.progress()["behind"] == 1)
    await until(health.write_reason)


class RefusingLog(MoodyLog):
    """A log that can be read, and refuses appends while `refusal` is set."""

    refusal: Exception | None = None

    def append(self, after, records):
        """Append, or fail."""
        if self.refusal:
            raise self.refusal
        return super().append(after, records)

    def check_writable(self):
        """Fail while appends do."""
        if self.refusal:
            raise self.refusal


@pytest.mark.parametrize("log", [RefusingLog()])
async def test_a_node_that_cannot_write_says_so(log, health):
    """After a failed write the node is not ready for writes until it finds that the log takes them again."""
    writer = health._writer
    assert health.write_reason() is None
    log.refusal = LogTimeout("no answer from kafka.internal:9092")
    with pytest.raises(RegistryError):
        await writer.write(lambda _state: Decision(None, [encode(ModeKey("s"), "READONLY")]))

    assert "the last write failed: the log did not answer in time" == health.write_reason()
    assert health.reason() is None
    log.refusal = None
    await until(lambda: health.write_reason() is None)


def get(node, path):
    """GET a path from a node; return status and answer."""
    connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def test_a_node_that_drains_serves_on_but_is_not_ready():
    """After SIGTERM the ready probe answers 503, other requests succeed, and a second signal ends the node cleanly."""
    with RegistryNode("memory:", "--drain-seconds=60") as node:
        assert 200 == get(node, "/health/ready")[0]
        node.send(signal.SIGTERM)
        status, answer = get(node, "/health/ready")
        while status == 200:
            status, answer = get(node, "/health/ready")

        assert (503, False) == (status, answer["ready"])
        assert "shutting down" in answer["reason"]
        assert ((200, []), (200, {"live": True})) == (get(node, "/subjects"), get(node, "/health/live"))
        assert 0 == node.terminate()


@pytest.mark.parametrize(("order", "seconds"), [(signal.SIGTERM, 0), (signal.SIGINT, 60)])
def test_a_node_that_does_not_wait_still_says_that_it_leaves(order, seconds):
    """Without a drain it closes the connections of other nodes with its last answers, and takes no further writes."""
    chosen, seat = Settings(log="memory:", drain_seconds=seconds), Seat()
    app = create_app(MemoryLog(), chosen, seat=seat)
    server = HttpServer(app, chosen, seat, tls=TlsContexts(chosen), started=lambda: None)
    server.handle_exit(order, None)

    assert (True, True, True) == (server.should_exit, seat.board.is_draining, seat.board.is_leaving)


@pytest.mark.parametrize("seconds", [0, 0.5])
def test_a_half_sent_body_hardly_delays_a_stop(seconds):
    """At its end a node drops requests that stay incomplete, counts them as refused, and warns of none of them."""
    with RegistryNode("memory:", f"--drain-seconds={seconds}", "--slow-request=0.1") as node:
        with closing(node.connect()) as connection:
            connection.putrequest("PUT", "/config/s")
            connection.putheader("Content-Length", "100")
            connection.endheaders(b'{"compat')
            time.sleep(0.2)  # the node has it
            assert 0 == node.terminate(grace_s=8)
            assert 408 == connection.getresponse().status
        assert "refused a request" in node.output
        assert "was slow" not in node.output
        assert "graceful shutdown exceeded" not in node.output


def test_the_log_is_described(api):
    """`/v1/log` reports the end of the log, the number of records, their effect, and the records set aside."""
    api.placed("s", '"int"')
    api.placed("s2", '"int"')
    status, answer = api.get("/v1/log")

    assert (200, "memory", 1, 0, 2) == (
        status, answer["backend"], answer["offset"], answer["behind"], answer["records"],
    )  # fmt: skip
    held = {"subjects": 2, "versions": 2, "schemas": 1, "contexts": 1}
    assert {**held, "configs": 0, "modes": 0, "keks": 0, "deks": 0} == answer["counts"]
    assert {"count": 0, "records": []} == answer["setAside"]


async def test_a_broken_auth_file_shows_in_readiness(log, tmp_path):
    """A node stays ready with the last good auth file, and says that it is not the newest."""
    path = tmp_path / "auth.yaml"
    path.write_text("users: []")
    app = create_app(log, Settings(log="memory:", auth_file=path), features=[ACCESS])
    health, file = app._service.health, app._service.control.authenticator.file
    assert {} == health.details()

    path.write_text("users: [")
    await file.refresh()
    await file.refresh()

    assert ({"auth": "stale"}, None, None) == (health.details(), health.reason(), health.write_reason())
