"""The read lease: when the holder of the pen answers from memory, and what another node waits for."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from harness.log_lines import events_of
from harness.waiting import until
from strata.registry.core.decide.decision import Decision
from strata.registry.core.writer import Writer
from strata.storage.kafka.log import KafkaLog
from strata.storage.kafka.pen import Pen
from strata.storage.lease import LONGEST_LEASE_S, ReadLease, lease_cells
from strata.storage.log import START, Conflict, Record
from strata.storage.record_json import encode
from strata.storage.records import ModeKey
from tests.kafka.conftest import Topic

_WAIT_S = 60.0


def _record(name: str) -> Record:
    return Record(name.encode(), b"v")


class _Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_lease_counts_from_the_question() -> None:
    """A lease ends its length after the question, however late the answer was, and holds for one offset of one log."""
    clock = _Clock()
    lease = ReadLease(1.0, now=clock)
    clock.seconds = 100.9
    assert lease.grant(7, 5, asked=100.0, revocations=lease.revocations)
    assert lease.covers(7, 5)
    assert [False, False, False] == [lease.covers(7, 4), lease.covers(7, 6), lease.covers(8, 5)]
    clock.seconds = 101.0
    assert not lease.covers(7, 5)


def test_a_revocation_outlasts_questions_asked_before() -> None:
    """An answer to a question that was asked before a revocation grants nothing."""
    lease = ReadLease(1.0, now=_Clock())
    before = lease.revocations
    assert lease.grant(7, 5, asked=100.0, revocations=before)
    lease.revoke()
    assert not lease.covers(7, 5)
    assert not lease.grant(7, 5, asked=100.0, revocations=before)
    assert not lease.covers(7, 5)
    assert lease.grant(7, 6, asked=100.0, revocations=lease.revocations)
    assert lease.covers(7, 6)


def test_processes_share_a_lease() -> None:
    """What one process grants and revokes holds for those that share its cells; without a length nothing is granted."""
    cells, clock = lease_cells(), _Clock()
    writer, reader = ReadLease(1.0, cells, clock), ReadLease(1.0, cells, clock)
    assert writer.grant(7, 5, asked=100.0, revocations=0)
    assert reader.covers(7, 5)
    writer.revoke()
    assert not reader.covers(7, 5)
    assert not ReadLease(0.0, now=clock).grant(7, 5, asked=100.0, revocations=0)


def test_a_suspension_outlasts_processes() -> None:
    """No process of a node has or grants a lease while it is suspended; a shorter suspension does not end a longer."""
    cells, clock = lease_cells(), _Clock()
    writer, reader = ReadLease(1.0, cells, clock), ReadLease(1.0, cells, clock)
    assert writer.grant(7, 5, asked=100.0, revocations=0)
    assert [True, False] == [reader.suspend(10.0), reader.suspend(5.0)]
    assert [False, False] == [writer.covers(7, 5), reader.covers(7, 5)]
    clock.seconds = 109.9
    started_later = ReadLease(1.0, cells, clock)
    assert not started_later.grant(7, 5, asked=109.9, revocations=0)
    clock.seconds = 110.0
    assert started_later.grant(7, 5, asked=110.0, revocations=0)
    assert started_later.covers(7, 5)


# --- nodes

pytestmark = pytest.mark.kafka


@contextlib.asynccontextmanager
async def _closed(*nodes: KafkaLog):  # type: ignore[no-untyped-def]
    try:
        yield
    finally:
        for node in nodes:
            await asyncio.to_thread(node.close)
        await asyncio.sleep(0.02)


def _node(topic: Topic, seconds: float, url: str | None = None, clock: Callable[[], float] | None = None) -> KafkaLog:
    return topic.node(url, lease=ReadLease(seconds, now=clock) if clock else ReadLease(seconds))


def _older_node(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> KafkaLog:
    """Open a node of a commit that knows no leases: its signature states none, and it waits for none."""
    node = topic.node("http://127.0.0.1:9")
    headers = node._signatures.headers
    monkeypatch.setattr(
        node._signatures, "headers", lambda ms: {k: v for k, v in headers(ms).items() if k != "strata-lease"}
    )
    monkeypatch.setattr(node, "_wait_for_leases", lambda _ends: None)
    return node


async def _take(node: KafkaLog, after: int, name: str) -> int:
    """Append as a node that does not have the pen yet, and return the offset."""
    with contextlib.suppress(Conflict):  # the signature lies between
        await _append(node, after, name)
    return await _append(node, [entry.offset for entry in node.read(after)][-1], name)


async def _asked(node: KafkaLog, offset: int, *, covered: bool = True) -> bool:
    """Ask the leader until it confirms an offset; return whether the node then has a lease, or wait until it has."""
    async with asyncio.timeout(_WAIT_S):
        while True:
            if await node.ends_at(lambda: offset) and (not covered or node.unchanged(offset)):
                return node.unchanged(offset)
            await asyncio.sleep(0.005)


async def _append(node: KafkaLog, after: int, name: str) -> int:
    return (await asyncio.to_thread(node.append, after, [_record(name)]))[-1].offset


@contextlib.contextmanager
def _watching(monkeypatch: pytest.MonkeyPatch, name: str, look: Callable[[], object]) -> Iterator[list[object]]:
    """Note what a function returns whenever any node is about to stage or commit."""
    seen: list[object] = []
    original = getattr(Pen, name)

    def watched(pen: Pen, *args: object, **options: object) -> object:
        seen.append(look())
        return original(pen, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Pen, name, watched)
        yield seen


async def test_the_holder_answers_from_memory(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder has a lease once the leader has confirmed its offset; none while it commits, and then a new one."""
    node = _node(topic, LONGEST_LEASE_S)
    async with _closed(node):
        first = await _append(node, START, "a")
        assert await _asked(node, first)
        assert not node.unchanged(START)
        with _watching(monkeypatch, "commit", lambda: node.unchanged(first)) as seen:
            second = await _append(node, first, "b")
        assert seen == [False]
        assert not node.unchanged(second)
        assert await _asked(node, second)
        assert not node.unchanged(first)


async def test_a_write_begins_the_lease(topic: Topic) -> None:
    """The process that writes asks on its own: other workers answer from memory though it is sent no read."""
    node = _node(topic, LONGEST_LEASE_S)
    writer = Writer(node)
    try:
        await writer.write(lambda _state: Decision(None, [encode(ModeKey("a"))]))
        await asyncio.to_thread(until, lambda: node.unchanged(writer.state.offset))
    finally:
        await writer.close()
        await asyncio.sleep(0.02)


async def test_an_answer_from_before_a_commit(topic: Topic) -> None:
    """A question that was asked before a commit, and answered during it, grants no lease."""
    node = _node(topic, LONGEST_LEASE_S)
    async with _closed(node):
        first = await _append(node, START, "a")
        assert await _asked(node, first)
        node._unsettled = True
        node._lease.revoke()
        assert not await _asked(node, first, covered=False)
        node._unsettled = False
        assert await _asked(node, first)


async def test_a_question_during_a_commit(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that was asked during a commit, and showed the end before it, grants nothing afterwards."""
    node = _node(topic, LONGEST_LEASE_S)
    async with _closed(node):
        first = await _append(node, START, "a")
        list(node.read(first))
        assert await _asked(node, first)
        assert node._leader is not None
        asking, shown = asyncio.Event(), await node._leader.end()

        async def end() -> int | None:
            asking.set()
            await appended.wait()
            return shown

        appended = asyncio.Event()
        loop, original = asyncio.get_running_loop(), Pen.commit

        def commit(pen: Pen, deadline: float) -> None:
            asyncio.run_coroutine_threadsafe(begin(), loop).result(_WAIT_S)
            original(pen, deadline)

        async def begin() -> None:
            nonlocal question
            question = asyncio.create_task(node.ends_at(lambda: first))
            await asking.wait()

        question: asyncio.Task[bool] | None = None
        monkeypatch.setattr(node._leader, "end", end)
        monkeypatch.setattr(Pen, "commit", commit)
        await _append(node, first, "b")
        appended.set()
        assert question is not None
        assert await question  # it was true when it was asked
        assert not node.unchanged(first)


async def test_nodes_without_the_pen_ask(topic: Topic) -> None:
    """A node that does not hold the pen never has a lease, and neither has one whose lease has no length."""
    holder, other = _node(topic, 0.0), _node(topic, LONGEST_LEASE_S)
    async with _closed(holder, other):
        first = await _append(holder, START, "a")
        assert [first] == [entry.offset for entry in other.read(START)][-1:]
        assert not await _asked(holder, first, covered=False)
        assert not await _asked(other, first, covered=False)


async def test_a_new_holder_waits(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that takes the pen commits nothing before the lease of the holder has ended; its own length is shorter."""
    holder, taker = _node(topic, LONGEST_LEASE_S, "http://127.0.0.1:1"), _node(topic, 0.0, "http://127.0.0.1:2")
    async with _closed(holder, taker):
        first = await _append(holder, START, "a")
        list(taker.read(START))
        await _asked(holder, first)
        with _watching(monkeypatch, "stage", lambda: holder.unchanged(first)) as seen:
            with contextlib.suppress(Conflict):  # the signature lies between
                await _append(taker, first, "b")
            last = [entry.offset for entry in taker.read(first)][-1:] or [first]
            await _append(taker, last[0], "b")
        assert seen[0]  # the signature itself waits for nothing
        assert not any(seen[1:])
        assert len(seen) > 1
        assert taker._signatures.lease_ms == LONGEST_LEASE_S * 1000


async def test_an_unread_signature_with_a_longer_lease(topic: Topic) -> None:
    """A node that meets a longer lease than its signature states signs again, so that the next one knows of it."""
    holder, taker = _node(topic, LONGEST_LEASE_S), _node(topic, 0.1)
    async with _closed(holder, taker):
        assert [] == list(taker.read(START))
        await _append(holder, START, "a")
        with contextlib.suppress(Conflict):
            await _append(taker, START, "b")
        reader = topic.node()
        list(reader.read(START))
        assert reader._signatures.known[3] == LONGEST_LEASE_S * 1000
        assert reader._signatures.known[2] == taker._signatures.known[2]


async def test_a_clean_stop_releases(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the holder has stopped cleanly, the next one waits for no lease."""
    holder, taker = _node(topic, LONGEST_LEASE_S), _node(topic, LONGEST_LEASE_S)
    waits: list[float] = []
    monkeypatch.setattr(KafkaLog, "_wait_for_leases", lambda _, ends: waits.append(ends - time.monotonic()))
    async with _closed(taker):
        async with _closed(holder):
            first = await _append(holder, START, "a")
            await _asked(holder, first)
        assert not holder.unchanged(first)
        last = [entry.offset for entry in taker.read(START)][-1]
        with contextlib.suppress(Conflict):
            await _append(taker, last, "b")
    assert waits[0] > 0 >= waits[1]


@pytest.mark.parametrize("headers", [{}, {"strata-append": b"x", "strata-url": b"http://127.0.0.1:9"}])
async def test_what_forbids_leases(topic: Topic, headers: dict[str, bytes], caplog: pytest.LogCaptureFixture) -> None:
    """Another product's record, or the signature of a node without leases, keeps the holder asking for minutes."""
    node = _node(topic, LONGEST_LEASE_S)
    async with _closed(node):
        first = await _append(node, START, "a")
        assert await _asked(node, first)
        topic.write_plainly(b'{"keytype":"NOOP","magic":0}', b"{}", **headers)
        last = [entry.offset for entry in node.read(first)][-1]
        assert not await _asked(node, last, covered=False)
        with contextlib.suppress(Conflict):
            await _append(node, last, "b")
        last = [entry.offset for entry in node.read(START)][-1]
        assert not await _asked(node, last, covered=False)
    assert ["lease_suspended"] == [event for event in events_of(caplog) if event == "lease_suspended"]


async def test_an_older_node_takes_the_pen(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder whose lease an older node ignores misses that node's write until the lease ends, and then has none.

    This is what leases do not protect from. The holder's clock stands still, as if it took no time to take the pen.
    """
    clock = _Clock()
    holder, older = _node(topic, LONGEST_LEASE_S, "http://127.0.0.1:1", clock), _older_node(topic, monkeypatch)
    async with _closed(holder, older):
        first = await _append(holder, START, "a")
        list(older.read(START))
        assert await _asked(holder, first)
        second = await _take(older, first, "b")
        assert holder.unchanged(first)  # a stale answer
        clock.seconds += LONGEST_LEASE_S
        assert not holder.unchanged(first)
        assert [b"b"] == [entry.key for entry in holder.read(first) if entry.offset == second]
        third = await _take(holder, second, "c")
        assert not await _asked(holder, third, covered=False)
        clock.seconds += 3599
        assert not await _asked(holder, third, covered=False)


async def test_leases_wait_for_the_end_of_an_upgrade(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that starts where an older one has held the pen takes no lease, so it misses nothing of older nodes."""
    older = _older_node(topic, monkeypatch)
    async with _closed(older):
        first = await _append(older, START, "a")
        holder = _node(topic, LONGEST_LEASE_S, "http://127.0.0.1:1")
        async with _closed(holder):
            list(holder.read(START))
            second = await _take(holder, first, "b")
            assert not await _asked(holder, second, covered=False)
            list(older.read(first))
            await _take(older, second, "c")
            assert not holder.unchanged(second)
