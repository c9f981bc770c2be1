"""The contract of `strata.storage.log.Log`, run over every kind of real log."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from harness.logs import SHARED_LOGS, new_log_url
from strata.storage.kafka import log as kafka_log
from strata.storage.kafka.log import Timeouts
from strata.storage.log import START, Conflict, Entry, Log, MemoryLog, Record
from strata.storage.open_log import open_log

_DEADLINE_S = 60


@dataclass(frozen=True)
class Store:
    """A store that nodes share: every `open` adds one node."""

    open: Callable[[], Log]


@pytest.fixture(params=("memory", *SHARED_LOGS))
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Yield an empty store of each kind; its nodes have much time, on a machine that pauses."""
    patient = partial(Timeouts, start=_DEADLINE_S, read=_DEADLINE_S, write=_DEADLINE_S)
    monkeypatch.setattr(kafka_log, "Timeouts", patient)
    opener = _opener(request, tmp_path)
    with ExitStack() as stack:
        yield Store(lambda: stack.enter_context(closing(opener())))


@pytest.fixture
def log(store: Store) -> Log:
    """Return one node on an empty store."""
    return store.open()


def _opener(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Log]:
    if request.param == "memory":
        shared = MemoryLog()
        return lambda: shared
    url = new_log_url(request.param, tmp_path, request)
    return lambda: open_log(url, advertised_url=f"http://node-{uuid.uuid4().hex[:8]}:8081")


def _records(*keys: str) -> list[Record]:
    return [Record(key.encode(), f"value of {key}".encode()) for key in keys]


def _pairs(entries: Sequence[Entry]) -> list[tuple[bytes | None, bytes | None]]:
    return [(entry.key, entry.value) for entry in entries]


def _known(log: Log, after: int = START) -> list[Entry]:
    """Return the entries of the log, without the records by which a Kafka node takes the pen."""
    return [entry for entry in log.read(after) if entry.key is None or b"NOOP" not in entry.key]


def test_empty_log_has_no_records(log: Log) -> None:
    """A fresh log reads as empty and ends before the first record."""
    assert list(log.read(START)) == []
    assert log.end() == START


def test_append_returns_the_records_as_the_log_holds_them(log: Log) -> None:
    """Appended records come back in order, with growing offsets and their timestamps, equal to what a read returns."""
    written = log.append(START, _records("a", "b", "c"))
    assert [(record.key, record.value) for record in _records("a", "b", "c")] == _pairs(written)
    offsets = [entry.offset for entry in written]
    assert sorted(set(offsets)) == offsets
    assert all(entry.timestamp > 0 for entry in written)
    assert list(written) == _known(log)
    assert log.end() == offsets[-1]


def test_read_continues_after_an_offset(log: Log) -> None:
    """A read yields the entries after the given offset, wherever that is, and nothing after the end."""
    written = [*log.append(START, _records("a", "b", "c"))]
    written += log.append(written[-1].offset, _records("d"))
    for i, entry in enumerate(written):
        assert written[i + 1 :] == _known(log, entry.offset)
    assert written == _known(log)


def test_bytes_are_kept_as_they_are(log: Log) -> None:
    """A log treats keys and values as bytes: it refuses nothing, trims nothing, and keeps empty and null distinct."""
    records = [
        Record(b'{"keytype":"SCHEMA"}', None),
        Record(b"k", b""),
        Record(b"", b"v"),
        Record(b"\x00\xff\xfe{", b"\x80\x00"),
        Record("naïve ключ".encode(), "🙂".encode()),
        Record(b"k" * 2_000, b"v" * 500_000),
    ]
    expected = [(record.key, record.value) for record in records]
    assert expected == _pairs(log.append(START, records))
    assert expected == _pairs(_known(log))


def test_a_record_may_be_older_than_its_append(log: Log) -> None:
    """A log keeps the time that a copied record had, unless it lies in the future."""
    now = time.time_ns() // 1_000_000
    times = (1_577_836_800_000, None, now + 86_400_000)
    written = log.append(START, [Record(b"k%d" % i, b"v", timestamp) for i, timestamp in enumerate(times)])

    old, own, capped = (entry.timestamp for entry in written)
    assert (1_577_836_800_000, True, True) == (old, own >= now, now <= capped < now + 86_400_000)
    assert list(written) == _known(log)


def test_append_needs_a_record(log: Log) -> None:
    """An empty append is an error of the caller."""
    with pytest.raises(ValueError, match="at least one record"):
        log.append(START, [])


@pytest.mark.parametrize("shift", [-1, 1], ids=["before the end", "beyond the end"])
def test_append_elsewhere_than_at_the_end_conflicts(log: Log, shift: int) -> None:
    """An append that was not decided on the whole log is refused, and writes nothing."""
    first = log.append(START, _records("a"))
    second = log.append(first[-1].offset, _records("b"))
    with pytest.raises(Conflict):
        log.append(first[-1].offset if shift < 0 else second[-1].offset + 1_000, _records("x", "y"))
    assert _known(log) == [*first, *second]


def test_the_loser_reads_on_and_succeeds(store: Store) -> None:
    """Of two nodes that decided on the same log one gets Conflict, reads the other's record, and appends after it."""
    one, two = store.open(), store.open()
    won = one.append(START, _records("a"))
    with pytest.raises(Conflict):
        two.append(START, _records("b"))
    seen = list(two.read(START))
    assert _known(two) == list(won)
    lost = two.append(seen[-1].offset, _records("b"))
    assert _known(one) == [*won, *lost]


def test_nodes_take_turns(store: Store) -> None:
    """The right to write moves between nodes, and each node reads at once what the other has written."""
    nodes = [store.open(), store.open()]
    written: list[Entry] = []
    for turn in range(6):
        writer, reader = nodes[turn % 2], nodes[(turn + 1) % 2]
        written += _append_at_end(writer, _records(f"{turn}"))
        assert _known(reader) == written


def test_a_read_finds_every_append_that_had_returned(store: Store) -> None:
    """As soon as an append has returned, a read that starts on another node contains it, and no node denies it."""
    writer, reader = store.open(), store.open()
    end, read_to = START, START
    for i in range(12):
        writer.unchanged(end), reader.unchanged(read_to)
        end = writer.append(end, _records(f"{i}a", f"{i}b"))[-1].offset
        assert not writer.unchanged(read_to)
        assert not reader.unchanged(read_to)
        found = _known(reader, read_to)
        assert [entry.key for entry in found] == [f"{i}a".encode(), f"{i}b".encode()]
        read_to = found[-1].offset


def test_a_batch_is_read_whole_or_not_at_all(store: Store) -> None:
    """A reader that never stops sees the records of one append all together."""
    writer, reader = store.open(), store.open()
    done = threading.Event()

    def write() -> None:
        try:
            end = START
            for i in range(20):
                end = writer.append(end, _records(f"{i}a", f"{i}b", f"{i}c"))[-1].offset
        finally:
            done.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        seen, last, more = 0, START, True
        while more:
            more = not done.is_set()
            found = _known(reader, last)
            assert len(found) % 3 == 0
            seen, last = seen + len(found), found[-1].offset if found else last
        writing.result(_DEADLINE_S)
    assert seen == 60


def test_a_large_batch(log: Log) -> None:
    """Thousands of records fit into one append, and come back in order."""
    records = [Record(f"key {i}".encode(), b"v" * 300) for i in range(12_000)]
    written = log.append(START, records)
    assert len(written) == len(records)
    assert [entry.key for entry in _known(log)] == [record.key for record in records]


def test_concurrent_appenders_lose_and_double_nothing(store: Store) -> None:
    """Threads on two nodes append concurrently: every acknowledged record is there once, at its reported offset."""
    nodes = [store.open(), store.open()]

    def work(worker: int) -> list[Entry]:
        node = nodes[worker % 2]
        return [entry for i in range(4) for entry in _append_at_end(node, _records(f"{worker}.{i}"))]

    with ThreadPoolExecutor(4) as pool:
        acknowledged = [entry for entries in pool.map(work, range(4), timeout=_DEADLINE_S) for entry in entries]
    expected = sorted(acknowledged, key=lambda entry: entry.offset)
    for node in (*nodes, store.open()):
        assert _known(node) == expected


def test_a_node_alone_writes_itself(log: Log) -> None:
    """A single node sees no other holder, neither before nor after the first append."""
    assert log.holder() is None
    log.append(START, _records("a"))
    assert log.holder() is None


def test_close_twice(store: Store) -> None:
    """Closing a closed log does nothing."""
    log = store.open()
    log.append(START, _records("a"))
    log.close()
    log.close()


def _append_at_end(log: Log, records: list[Record]) -> Sequence[Entry]:
    """Append as a writer does: read to the end, try, and retry on Conflict."""
    end = START
    while True:
        for entry in log.read(end):
            end = entry.offset
        try:
            return log.append(end, records)
        except Conflict:
            continue
