"""A node after an absence: deletions that compaction has dropped, deleted records, and a replaced topic."""

import asyncio
import http.client
import json
import signal
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from harness.registry import RegistryNode
from harness.waiting import until
from strata.registry.core.decide.decision import Decision
from strata.registry.core.writer import Writer
from strata.storage.kafka.log import KafkaLog
from strata.storage.kafka.watch import Moment, Seen
from strata.storage.log import START, Conflict, Log, LogCompacted, LogError, LogReplaced, Record
from strata.storage.open_log import open_log
from strata.storage.record_json import encode
from strata.storage.records import ModeKey
from strata.storage.reopening_log import CLOSING, ReopeningLog

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

_WAIT_S = 60
_DAY_S = 86_400.0
_TRUSTED_S = 60.0  # a node asks for the topic's id again after less


class Clock:
    """Two clocks that the test sets."""

    def __init__(self) -> None:
        self.running = self.wall = 1_000_000.0

    def __call__(self) -> Moment:
        """Return the time now."""
        return Moment(self.running, self.wall)


def _record(key: str, value: bytes | None = b"v") -> Record:
    return Record(key.encode(), value)


def _keys(log: KafkaLog) -> dict[bytes | None, bytes | None]:
    """Return the newest value of each key in the log."""
    found = {entry.key: entry.value for entry in log.read(START) if b"NOOP" not in (entry.key or b"")}
    return {key: value for key, value in found.items() if value is not None}


def _end(log: KafkaLog) -> int:
    return max((entry.offset for entry in log.read(START)), default=START)


# --- what a reader remembers


def _seen(now: Clock) -> Seen:
    return Seen("t", _DAY_S, now)


# name, events, the offset from which a reader continues, whether it may
ABSENCES = [
    ("at once", [("read", 10)], 10, True),
    ("from the start at any time", [("wait", 10 * _DAY_S)], START, True),
    ("after less than half the retention", [("read", 10), ("wait", 0.4 * _DAY_S)], 10, True),
    ("after more", [("read", 10), ("wait", 0.6 * _DAY_S)], 10, False),
    ("beyond what was read", [("read", 10), ("wait", 0.1 * _DAY_S)], 12, True),
    ("another reader went on", [("read", 10), ("wait", 0.4 * _DAY_S), ("read", 20), ("wait", 0.2 * _DAY_S)], 10, False),
    ("another reader has read again", [("read", 10), ("wait", _DAY_S), ("read", 10)], 10, True),
    ("many short pauses", [("read", 10), ("wait", 0.3 * _DAY_S)] * 20, 10, True),
    (
        "the log has lost its end",
        [("wait", 0.1 * _DAY_S), ("read", 20), ("wait", 0.6 * _DAY_S), ("read", 10)],
        10,
        True,
    ),
    ("many reads, then a pause", [("read", 10), ("wait", 0.01)] * 50 + [("wait", 0.6 * _DAY_S)], 10, False),
]


@pytest.mark.parametrize(("events", "after", "expected"), [row[1:] for row in ABSENCES], ids=[r[0] for r in ABSENCES])
@pytest.mark.parametrize("runs", ["running", "wall"])
def test_how_long_a_reader_may_be_away(events: list[tuple[str, float]], after: int, expected: bool, runs: str) -> None:
    """If either clock shows too long an absence, the reader must start over."""
    now = Clock()
    seen = _seen(now)
    for what, amount in events:
        if what == "wait":
            setattr(now, runs, getattr(now, runs) + amount)
        else:
            seen.note(int(amount), now())
    if expected:
        assert now().since(seen.since(after)) <= _DAY_S / 2
    else:
        with pytest.raises(LogCompacted, match=r"delete\.retention\.ms"):
            seen.since(after)


def test_a_clock_that_is_set_back_hides_nothing() -> None:
    """If the wall clock jumps back, the other clock still shows the length of the absence."""
    now = Clock()
    seen = _seen(now)
    seen.note(10, now())
    now.wall, now.running = now.wall - _DAY_S, now.running + 0.6 * _DAY_S
    with pytest.raises(LogCompacted):
        seen.since(10)


# --- on a broker


@pytest.mark.kafka
def test_a_node_that_missed_a_dropped_tombstone(topic: "Topic") -> None:
    """If compaction drops a tombstone that a node has not read, the node neither reads nor appends until it replays."""
    topic.create(segment_ms="100", min_cleanable_dirty_ratio="0.001", delete_retention_ms="1000")
    now = Clock()  # a busy machine takes longer than half the retention for any step
    writer, away = topic.node(now=now), topic.node(now=now)
    writer.append(START, [_record("kept"), _record("deleted")])
    last = _end(away)
    writer.append(_end(writer), [_record("deleted", None)])

    def is_dropped() -> bool:
        writer.append(_end(writer), [_record("kept")])  # the next record closes a segment
        return b"deleted" not in topic.keys_in_the_topic()

    until(is_dropped)
    end = _end(writer)
    now.running += 1.0
    assert b"deleted" not in topic.keys_in_the_topic()
    with pytest.raises(LogCompacted, match="may have missed deletions"):
        list(away.read(last))
    with pytest.raises(Conflict):
        away.append(end, [_record("late")])
    assert _keys(away) == {b"kept": b"v"}
    away.append(_end(away), [_record("late")])
    assert _keys(writer) == {b"kept": b"v", b"late": b"v"}


def _call(node: RegistryNode, method: str, path: str, body: object = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=_WAIT_S)) as connection:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.mark.kafka
@pytest.mark.slow
def test_a_process_that_was_stopped(topic: "Topic") -> None:
    """A node that was stopped during a deletion and its compaction does not serve the deleted data."""
    topic.create(segment_ms="100", min_cleanable_dirty_ratio="0.001", delete_retention_ms="1000")
    url, key = f"kafka://{topic.bootstrap}/{topic.name}", b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
    with RegistryNode(url) as writer, RegistryNode(url) as stopped:
        assert _call(writer, "POST", "/subjects/s/versions", {"schema": '"int"'})[0] == 200
        assert _call(stopped, "GET", "/subjects/s/versions/1")[0] == 200
        stopped.send(signal.SIGSTOP)
        assert _call(writer, "DELETE", "/subjects/s")[0] == 200
        assert _call(writer, "DELETE", "/subjects/s?permanent=true")[0] == 200

        def is_dropped() -> bool:
            assert _call(writer, "PUT", "/config", {"compatibility": "NONE"})[0] == 200
            return key not in topic.keys_in_the_topic()

        until(is_dropped)
        stopped.send(signal.SIGCONT)
        assert _call(stopped, "GET", "/subjects?deleted=true") == (200, [])
        assert _call(stopped, "GET", "/subjects/s/versions/1")[0] == 404
        assert "reads the log from the start" in stopped.output


@pytest.mark.kafka
def test_a_machine_that_slept(topic: "Topic") -> None:
    """A holder of the pen that slept longer than the retention reads again before it appends."""
    now = Clock()
    node = topic.node(now=now)
    last = node.append(START, [_record("a")])[-1].offset
    now.running += 0.4 * _DAY_S
    assert list(node.read(last)) == []
    now.running += 0.4 * _DAY_S
    last = node.append(last, [_record("b")])[-1].offset
    now.running += 0.6 * _DAY_S
    with pytest.raises(Conflict):
        node.append(last, [_record("c")])
    with pytest.raises(LogCompacted):
        list(node.read(last))
    assert _keys(node) == {b"a": b"v", b"b": b"v"}
    node.append(last, [_record("c")])
    assert _keys(node) == {b"a": b"v", b"b": b"v", b"c": b"v"}


@pytest.mark.kafka
def test_a_read_that_takes_too_long(topic: "Topic") -> None:
    """A replay that takes longer than the retention may have missed deletions as well."""
    now = Clock()
    node = topic.node(now=now)
    node.append(START, [_record("a"), _record("b")])
    entries = node.read(START)
    next(entries)
    now.running += _DAY_S
    with pytest.raises(LogCompacted):
        list(entries)


@pytest.mark.kafka
def test_a_retention_that_is_lowered_while_a_node_runs(topic: "Topic") -> None:
    """The topic's current setting applies, not the one at the start."""
    now = Clock()
    node = topic.node(now=now)
    last = node.append(START, [_record("a")])[-1].offset
    topic.alter("delete.retention.ms", "60000")
    now.running += 100
    with pytest.raises(LogCompacted):
        list(node.read(last))


@pytest.mark.kafka
@pytest.mark.parametrize("retention", ["0", "999"])
def test_a_topic_that_drops_tombstones_at_once_is_refused(topic: "Topic", retention: str) -> None:
    """A node cannot read such a topic in time, so the open fails with an error that names the setting."""
    topic.create(delete_retention_ms=retention)
    with pytest.raises(LogError, match=rf"delete\.retention\.ms={retention}: .*at least 1000"):
        topic.node()


@pytest.mark.kafka
def test_records_deleted_before_they_were_read(topic: "Topic") -> None:
    """If the topic's start has moved past a node's offset, the node neither reads nor appends until it replays."""
    writer, away = topic.node(), topic.node()
    last = writer.append(START, [_record("a")])[-1].offset
    end = writer.append(last, [_record("b"), _record("c")])[-1].offset
    topic.delete_records_before(end + 2)
    with pytest.raises(Conflict):
        away.append(last, [_record("late")])
    with pytest.raises(LogCompacted):
        list(away.read(last))
    assert _keys(away) == {}
    away.append(_end(away), [_record("late")])
    assert _keys(writer) == {b"late": b"v"}


# --- another topic of the same name

# the number of records in the other topic; the first topic has 8 and its markers
OTHERS = [
    pytest.param(0, id="no", marks=pytest.mark.slow),
    pytest.param(2, id="fewer", marks=pytest.mark.slow),
    pytest.param(12, id="as many"),
    pytest.param(40, id="more", marks=pytest.mark.slow),
]


def _replace(topic: "Topic", count: int, now: Clock) -> None:
    topic.delete()
    topic.create()
    topic.write_all_plainly([(f"other {i}".encode(), b"v") for i in range(count)])
    now.running += _TRUSTED_S


def _reopening(topic: "Topic", now: Clock) -> ReopeningLog:
    """Open the topic as `open_log` does, with a clock of the test's own."""
    return ReopeningLog(lambda must_exist: topic.node(must_exist=must_exist, now=now), must_exist=False)


@pytest.mark.kafka
@pytest.mark.parametrize("count", OTHERS)
def test_a_topic_that_was_created_again_is_not_read_on(topic: "Topic", count: int) -> None:
    """A node neither reads nor appends to another topic of the same name, however many records that has."""
    now = Clock()
    node, holder = topic.node(now=now), topic.node(now=now)
    last = holder.append(START, [_record(str(i)) for i in range(8)])[-1].offset
    assert len(_keys(node)) == 8
    _replace(topic, count, now)
    with pytest.raises(LogReplaced, match="created again"):
        list(node.read(last))
    for log in (node, holder):
        with pytest.raises((LogReplaced, Conflict)):
            log.append(last, [_record("late")])
    assert b"late" not in topic.keys_in_the_topic()


@pytest.mark.kafka
@pytest.mark.parametrize("count", OTHERS)
async def test_a_node_goes_on_with_the_topic_that_was_created_again(topic: "Topic", count: int) -> None:
    """The State becomes that of the new topic, writes go there, and cached answers are dropped."""
    now = Clock()
    with closing(_reopening(topic, now)) as log:
        writer = Writer(log)
        for subject in ("a", "b", "c"):
            await writer.write(lambda _state, subject=subject: Decision(None, [encode(ModeKey(subject), "READONLY")]))
        before = writer.state
        _replace(topic, count, now)
        assert {} == dict((await writer.catch_up()).modes)
        assert before.removals != writer.state.removals
        await writer.write(
            lambda state: Decision(None, [encode(ModeKey("new"), "READONLY")] if not state.modes else [])
        )
        assert {"new": "READONLY"} == dict(writer.state.modes)
        assert {"new": "READONLY"} == dict((await writer.catch_up()).modes)
        await _old_log_closed()
    with closing(open_log(f"kafka://{topic.bootstrap}/{topic.name}")) as log:
        fresh = Writer(log)
        fresh.replay()
        assert {"new": "READONLY"} == dict(fresh.state.modes)


@pytest.mark.kafka
async def test_a_write_does_not_land_in_the_topic_that_was_created_again(topic: "Topic") -> None:
    """A write that was decided on the old topic is decided again on the new one."""
    now = Clock()
    with closing(_reopening(topic, now)) as log:
        writer = Writer(log)
        await writer.write(lambda _state: Decision(None, [encode(ModeKey("a"), "READONLY")]))
        _replace(topic, 20, now)
        seen = await writer.write(lambda state: Decision(set(state.modes), [encode(ModeKey("b"), "READONLY")]))
        assert set() == seen
        assert {"b": "READONLY"} == dict(writer.state.modes)
        await _old_log_closed()


async def _old_log_closed() -> None:
    """Wait until the connections of the log that was replaced are closed, while their event loop still runs."""
    for thread in threading.enumerate():
        if thread.name == CLOSING:
            await asyncio.to_thread(thread.join, _WAIT_S)
    await asyncio.sleep(0.02)


def _until_it(does: str, log: Log, after: int) -> None:
    """Read until this fails or works: the broker takes a moment to forget a topic, or to learn of it."""
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        try:
            list(log.read(after))
        except LogError:
            if does == "fail":
                return
        else:
            if does == "work":
                return
        time.sleep(0.1)
    raise AssertionError(f"reading does not {does}")


@pytest.mark.kafka
@pytest.mark.slow
def test_a_topic_that_is_gone_is_not_created_by_a_node(topic: "Topic") -> None:
    """Without its topic a running node fails, and it continues once the topic is created again."""
    with closing(open_log(f"kafka://{topic.bootstrap}/{topic.name}")) as log:
        last = log.append(START, [_record("a")])[-1].offset
        topic.delete()
        _until_it("fail", log, last)
        topic.create()
        _until_it("work", log, START)
        assert [entry.key for entry in log.append(START, [_record("b")])] == [b"b"]
        assert log.end() > last
