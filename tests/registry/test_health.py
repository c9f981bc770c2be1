"""Health probes: alive, ready, and the reason when not; and what `/v1/log` reports."""

import asyncio
import http.client
import json
import signal
import threading
import time

import pytest

from harness.logs import ServerLog
from harness.registry import RegistryNode
from strata.registry.access.watched_file import WatchedFile
from strata.registry.health import Health
from strata.registry.workers.board import Seat
from strata.registry.writer import Writer
from strata.storage.log import LogError, LogReadOnly
from strata.storage.record_json import encode
from strata.storage.records import ModeKey


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
    found = Health(Writer(log), Seat(), every_s=0.005, too_long_s=0.2)
    watch = asyncio.create_task(found.watch())
    yield found
    watch.cancel()
    log.gate.set()


async def test_an_idle_node_reads_on(log, health):
    """The node reads the appends of other nodes even without requests."""
    log.append(-1, [encode(ModeKey("s"), "READONLY")])

    await until(lambda: health.progress()["offset"] == 0)
    assert (0, 0) == (health.progress()["behind"], health.progress()["end"])
    await until(lambda: health.reason() is None)


async def test_a_read_for_a_request_does_not_put_off_the_next_one(log, health):
    """Answers from memory are never older than one interval, whenever the last request read the log."""
    health._writer.read_at = time.monotonic() + 3600
    log.append(-1, [encode(ModeKey("s"), "READONLY")])

    await until(lambda: health.progress()["offset"] == 0)


async def test_an_idle_node_notices_a_dead_log(log, health):
    """A failing log makes the node not ready, with a reason safe to publish, until the log answers again."""
    log.failure = LogError("no broker at kafka.internal:9092")
    await until(lambda: health.reason() == "the log cannot be read: the log failed or did not answer")

    log.failure = None
    await until(lambda: health.reason() is None)


async def test_a_log_that_hangs_is_noticed(log, health):
    """A log that does not answer makes the node not ready; the probe does not wait for the log."""
    log.gate.clear()
    await until(lambda: "not answered" in (health.reason() or ""))

    log.gate.set()
    await until(lambda: health.reason() is None)


async def test_a_log_that_becomes_read_only_is_noticed(log, health):
    """A read-only log makes the node not ready, though it serves reads, until the log accepts writes again."""

    def refuse():
        raise LogReadOnly("attempt to write a readonly database: /var/lib/strata.db")

    log.check_writable = refuse
    await until(lambda: health.reason() == "the log is read-only: reads are served, writes are refused")

    del log.check_writable
    await until(lambda: health.reason() is None)


async def test_a_node_that_is_behind_says_how_far(log, health):
    """Progress shows the end of the log before the node has read up to it."""
    for number in range(3):
        log.append(number - 1, [encode(ModeKey("s"), "READONLY")])
    await until(lambda: health.progress()["offset"] == 2)
    log.failure = LogError("no reads")
    log.append(2, [encode(ModeKey("s"), "READONLY")])

    await until(lambda: health.progress()["behind"] == 1)
    await until(health.reason)


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
    file = WatchedFile(path)
    found = Health(Writer(log), Seat(), auth_file=file)
    assert not found.auth_is_stale()

    path.write_text("users: [")
    await file.refresh()

    assert (True, None) == (found.auth_is_stale(), found.reason())
