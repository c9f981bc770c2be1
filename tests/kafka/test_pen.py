"""The right to write to the topic: taking the pen, losing it, and writes with an unknown outcome."""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from harness.waiting import until
from strata.storage.kafka.fencing import Fencing
from strata.storage.kafka.log import KafkaLog, Timeouts
from strata.storage.kafka.pen import Fenced, Pen, PerhapsFenced, pen_ids
from strata.storage.kafka.writers import Signatures
from strata.storage.log import START, Conflict, Entry, LogError, LogTimeout, Record, RecordTooLarge

if TYPE_CHECKING:
    from tests.kafka.conftest import Topic

pytestmark = pytest.mark.kafka

_WAIT_S = 60


def _record(name: str, size: int = 10) -> Record:
    return Record(name.encode(), b"v" * size)


def _keys(log: KafkaLog) -> list[bytes | None]:
    return [entry.key for entry in log.read(START) if b"NOOP" not in (entry.key or b"")]


def _end(log: KafkaLog) -> int:
    return max((entry.offset for entry in log.read(START)), default=START)


# --- taking and losing


@pytest.mark.parametrize("appends", [1, 2])
def test_the_old_holder_is_fenced(topic: "Topic", appends: int) -> None:
    """After a take-over the old holder's next append conflicts, and no byte of it reaches the topic, at either turn."""
    old, new = topic.node(), topic.node()
    held = [Entry(START, 0, None, None)]
    for _ in range(appends):
        held = list(old.append(held[-1].offset, [_record("old")]))
    new.append(_end(new), [_record("new")])
    with pytest.raises(Conflict):
        old.append(held[-1].offset, [_record("late a"), _record("late b")])
    assert _keys(old) == [b"old"] * appends + [b"new"]
    assert not {b"late a", b"late b"} & set(topic.keys_in_the_topic())


def test_the_old_holder_takes_the_pen_back(topic: "Topic") -> None:
    """A fenced node reads and appends again; no append of either node is lost."""
    one, two = topic.node(), topic.node()
    one.append(START, [_record("1")])
    two.append(_end(two), [_record("2")])
    one.append(_end(one), [_record("3")])
    two.append(_end(two), [_record("4")])
    assert _keys(one) == [b"1", b"2", b"3", b"4"]


def test_losing_the_pen_is_no_error(topic: "Topic", caplog: pytest.LogCaptureFixture) -> None:
    """A node that loses the pen says once to which node; the client's errors about that are not logged."""
    caplog.set_level(logging.INFO)
    one, two = topic.node("http://one:8081"), topic.node("http://two:8081")
    for _ in range(2):
        last = one.append(_end(one), [_record("1")])[-1].offset
        two.append(_end(two), [_record("2")])
        with pytest.raises(Conflict):
            one.append(last, [_record("late")])
        _end(one)
    lost = [record for record in caplog.records if isinstance(record.args, dict) and record.args["event"] == "pen_lost"]
    assert [record.getMessage() for record in lost if "two" in record.getMessage()] == [
        f"lost the pen of topic {topic.name} to http://two:8081"
    ] * 2
    worse = [record.getMessage() for record in caplog.records if record.levelno > logging.WARNING]
    assert worse == []


def test_holder_hints(topic: "Topic") -> None:
    """Each node learns from the topic which node holds the pen."""
    one, two = topic.node("http://one:8081"), topic.node("http://two:8081")
    assert (one.holder(), two.holder()) == (None, None)
    one.append(START, [_record("1")])
    _end(two)
    assert (one.holder(), two.holder()) == (None, "http://one:8081")
    two.append(_end(two), [_record("2")])
    _end(one)
    assert (one.holder(), two.holder()) == ("http://two:8081", None)
    late = topic.node("http://late:8081")
    _end(late)
    assert late.holder() == "http://two:8081"


def test_a_restarted_holder_is_not_sent_to_itself(topic: "Topic") -> None:
    """A node that finds its own URL in the topic writes itself."""
    topic.node("http://one:8081").append(START, [_record("1")])
    again = topic.node("http://one:8081")
    _end(again)
    assert again.holder() is None


def test_two_nodes_under_one_url(topic: "Topic", caplog: pytest.LogCaptureFixture) -> None:
    """Each node warns once that another node has its URL, and writes itself, which prevents a forwarding loop."""
    one, two = topic.node("http://same:8081"), topic.node("http://same:8081")
    one.append(_end(one), [_record("1")])
    two.append(_end(two), [_record("2")])
    assert "under this node's URL" not in caplog.text
    for number in range(3, 7):
        node = (one, two)[number % 2]
        node.append(_end(node), [_record(str(number))])
    assert (one.holder(), two.holder()) == (None, None)
    assert caplog.text.count("another node writes to topic") == 2
    assert "http://same:8081" in caplog.text
    assert "--advertised-url" in caplog.text
    assert _keys(one) == _keys(two) == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_a_restarted_node_is_not_its_own_namesake(topic: "Topic", caplog: pytest.LogCaptureFixture) -> None:
    """A record that a node signed before its restart causes no warning."""
    for name in "abc":
        node = topic.node("http://one:8081")
        node.append(_end(node), [_record(name)])
        assert _end(node) > 0
        node.close()
    assert "under this node's URL" not in caplog.text


class _Signed:
    """A signature as a reader gets it; its headers may take a while to arrive."""

    def __init__(self, offset: int, url: bytes, come: threading.Event) -> None:
        self._offset, self._url, self._come = offset, url, come
        self.asked = threading.Event()

    def offset(self) -> int:
        """Return the offset."""
        return self._offset

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers that name the signer."""
        self.asked.set()
        assert self._come.wait(_WAIT_S)
        return [("strata-url", self._url)]


def test_an_older_signature_does_not_win_a_race() -> None:
    """If two threads read, the one that is behind does not undo what the other one has learned."""
    signatures, later, now = Signatures("t", "http://me:8081"), threading.Event(), threading.Event()
    now.set()
    older, newer = _Signed(5, b"http://older:8081", later), _Signed(9, b"http://newer:8081", now)
    with ThreadPoolExecutor(1) as pool:
        noting = pool.submit(signatures.note, older)  # type: ignore[arg-type]
        assert older.asked.wait(_WAIT_S)
        signatures.note(newer)  # type: ignore[arg-type]
        later.set()
        noting.result(_WAIT_S)
    assert (signatures.newest, signatures.holder()) == (9, "http://newer:8081")


def test_a_signature_that_the_topic_has_lost_hides_no_other() -> None:
    """A read of the whole topic notes what is there, even if the topic has grown past a signature that it lost."""
    signatures, now = Signatures("t", "http://me:8081"), threading.Event()
    now.set()
    signatures.sign(9)
    signatures.forget()
    assert (signatures.newest, signatures.holder()) == (START, None)
    signatures.note(_Signed(5, b"http://other:8081", now))  # type: ignore[arg-type]
    assert (signatures.newest, signatures.holder()) == (5, "http://other:8081")


def test_a_holder_without_a_usable_url(topic: "Topic") -> None:
    """A node ignores a URL to which no request can be forwarded."""
    node = topic.node("http://one:8081")
    for url in (b"http://two:8081", b"", b"javascript:alert(1)", b"http://", b"http://a b/", b"\xff\xfe"):
        topic.write_plainly(b'{"keytype":"NOOP","magic":0}', None, strata_url=url)
        _end(node)
        assert node.holder() == ("http://two:8081" if url == b"http://two:8081" else None), url


@pytest.mark.parametrize("turn", [0, 1])
def test_a_dead_holder_with_an_open_transaction(topic: "Topic", turn: int) -> None:
    """Records of a dead writer's open transaction never become visible, and delay the next writer only briefly."""
    reader, writer = topic.node(), topic.node()
    dead = Producer({"bootstrap.servers": topic.bootstrap, "transactional.id": pen_ids(topic.name)[turn]})
    dead.init_transactions(_WAIT_S)
    dead.begin_transaction()
    dead.produce(topic.name, b"v", b"never committed", 0)
    assert dead.flush(_WAIT_S) == 0
    assert list(reader.read(START)) == []
    writer.append(START, [_record("next")])
    assert _keys(reader) == [b"next"]
    assert b"never committed" in topic.keys_in_the_topic()


def _append_until_killed(bootstrap: str, topic: str, acknowledged: Connection) -> None:
    patient = Timeouts(start=_WAIT_S, read=_WAIT_S, write=_WAIT_S)
    with closing(KafkaLog(bootstrap, topic, advertised_url="http://victim:8081", timeouts=patient)) as log:
        end = START
        for i in range(1_000_000):
            end = log.append(end, [_record(f"{i}a"), _record(f"{i}b")])[-1].offset
            acknowledged.send((i, end))


def test_a_holder_killed_in_the_middle_of_writes(topic: "Topic") -> None:
    """After kill -9 nothing acknowledged is lost, no append is written by half, and another node continues at once."""
    survivor = topic.node("http://survivor:8081")
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    victim = context.Process(target=_append_until_killed, args=(topic.bootstrap, topic.name, sender))
    victim.start()
    acknowledged = [receiver.recv() for _ in range(20)]
    victim.kill()
    victim.join(_WAIT_S)
    while receiver.poll():
        acknowledged.append(receiver.recv())
    # The last commit may have begun; it then takes place while the survivor takes the pen, which decides again.
    until(lambda: survivor.append(_end(survivor), [_record("on we go")]), Conflict)
    entries = [entry for entry in survivor.read(START) if b"NOOP" not in (entry.key or b"")]
    appends = (len(entries) - 1) // 2
    expected = [f"{i}{half}".encode() for i in range(appends) for half in "ab"]
    assert [entry.key for entry in entries] == [*expected, b"on we go"]
    at = {entry.key: entry.offset for entry in entries}
    assert {i: at[f"{i}b".encode()] for i, _ in acknowledged} == dict(acknowledged)


# --- unknown outcomes


def _commit_and_lose_the_answer(error: Exception) -> Callable[[Pen, float], None]:
    def commit(pen: Pen, deadline: float) -> None:
        pen._producer.commit(time.monotonic() + _WAIT_S)
        pen.usable = False
        raise error

    return commit


def _lose_the_commit(error: Exception) -> Callable[[Pen, float], None]:
    def commit(pen: Pen, deadline: float) -> None:
        pen.usable = False
        raise error

    return commit


def _once(
    monkeypatch: pytest.MonkeyPatch, commit: Callable[[Pen, float], None], *, taken_by: KafkaLog | None = None
) -> None:
    """Replace the next commit; another node takes the pen right after it."""
    original = Pen.commit

    def replaced(pen: Pen, deadline: float) -> None:
        monkeypatch.setattr(Pen, "commit", original)
        try:
            commit(pen, deadline)
        finally:
            if taken_by is not None:
                taken_by._take_pen()

    monkeypatch.setattr(Pen, "commit", replaced)


UNHEARD = pytest.mark.parametrize(
    ("error", "is_taken"),
    [
        pytest.param(LogTimeout("lost"), False, id="no answer"),
        pytest.param(Fenced(), True, id="fenced"),
        pytest.param(PerhapsFenced("unknown broker error"), True, id="an unknown error while another takes the pen"),
        pytest.param(PerhapsFenced("unknown broker error"), False, id="an unknown error by itself"),
    ],
)


@UNHEARD
def test_a_commit_that_took_place_unheard(
    topic: "Topic", monkeypatch: pytest.MonkeyPatch, error: Exception, *, is_taken: bool
) -> None:
    """An append whose commit took place succeeds though its answer was lost, and its records are there once.

    A node does not take the pen back from the one that has it now only to find that out.
    """
    monkeypatch.setattr("strata.storage.kafka.log._SIGNING_S", (600.0, 600.0) if is_taken else (0.1, 0.1))
    node, other = topic.node(), topic.node()
    first = node.append(START, [_record("a")])
    _once(monkeypatch, _commit_and_lose_the_answer(error), taken_by=other if is_taken else None)
    written = node.append(first[-1].offset, [_record("b"), _record("c")])
    assert not is_taken or node.status().pen_taken == 1
    assert [entry for entry in other.read(first[-1].offset) if entry.key in {b"b", b"c"}] == list(written)
    assert _keys(other) == [b"a", b"b", b"c"]
    node.append(_end(node), [_record("d")])
    assert _keys(other) == [b"a", b"b", b"c", b"d"]


@UNHEARD
def test_a_commit_that_never_took_place(
    topic: "Topic", monkeypatch: pytest.MonkeyPatch, error: Exception, *, is_taken: bool
) -> None:
    """An append whose commit was lost conflicts, none of its records is visible, and the next try works."""
    node, other = topic.node(), topic.node()
    first = node.append(START, [_record("a")])
    _once(monkeypatch, _lose_the_commit(error), taken_by=other if is_taken else None)
    with pytest.raises(Conflict):
        node.append(first[-1].offset, [_record("b"), _record("c")])
    assert not is_taken or node.status().pen_taken == 1
    assert _keys(other) == [b"a"]
    node.append(_end(node), [_record("b"), _record("c")])
    assert _keys(other) == [b"a", b"b", b"c"]


@pytest.mark.parametrize("has_signed", [True, False])
def test_a_signature_whose_outcome_is_unknown(
    topic: "Topic", monkeypatch: pytest.MonkeyPatch, *, has_signed: bool
) -> None:
    """A broker may answer the commit of a signature with an unknown error if another node takes the pen meanwhile.

    Nothing of the append was written, so the writer decides again.
    """
    node, other = topic.node(), topic.node()
    error = LogTimeout("unknown broker error")
    _once(monkeypatch, (_commit_and_lose_the_answer if has_signed else _lose_the_commit)(error), taken_by=other)
    with pytest.raises(Conflict):
        node.append(START, [_record("a")])
    assert _keys(other) == []
    node.append(_end(node), [_record("a")])
    assert _keys(other) == [b"a"]


@pytest.mark.timeout(60)
def test_a_signature_that_was_read_already_is_not_waited_for(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """A fenced node that has read the new holder's signature meanwhile decides again at once."""
    monkeypatch.setattr("strata.storage.kafka.log._SIGNING_S", (600.0, 600.0))
    node, other = topic.node(), topic.node()
    first, original = node.append(START, [_record("a")]), Pen.stage

    def stage(_pen: Pen, *_args: object, **_options: object) -> list[Entry]:
        monkeypatch.setattr(Pen, "stage", original)
        other._take_pen()
        _end(node)
        raise Fenced

    monkeypatch.setattr(Pen, "stage", stage)
    with pytest.raises(Conflict):
        node.append(first[-1].offset, [_record("b")])


# --- other writers in the topic


def test_a_foreign_write_makes_us_decide_again(topic: "Topic", caplog: pytest.LogCaptureFixture) -> None:
    """If another product writes while this node holds the pen, the append conflicts, and a read logs a warning."""
    node = topic.node()
    first = node.append(START, [_record("a")])
    topic.write_plainly(b"foreign", b"v")
    with caplog.at_level(logging.WARNING), pytest.raises(Conflict):
        node.append(first[-1].offset, [_record("b")])
    assert _keys(node) == [b"a", b"foreign"]
    assert "ANOTHER PRODUCT WRITES" in caplog.text
    assert "b'foreign'" in caplog.text
    assert (1, (_end(node),)) == (node.status().foreign_records, node.status().foreign_newest)
    node.append(_end(node), [_record("b")])
    assert _keys(node) == [b"a", b"foreign", b"b"]


def test_a_foreign_write_is_reported_when_it_is_read(topic: "Topic", caplog: pytest.LogCaptureFixture) -> None:
    """Reading a foreign record while this node holds the pen causes the warning, only once."""
    node = topic.node()
    node.append(START, [_record("a")])
    topic.write_plainly(b"foreign 1", b"v")
    topic.write_plainly(b"foreign 2", b"v")
    with caplog.at_level(logging.WARNING):
        _end(node)
    assert caplog.text.count("ANOTHER PRODUCT WRITES") == 1


# --- refusals and limits


def test_a_record_too_large(topic: "Topic") -> None:
    """If the broker refuses a record, its whole append is refused, and the node keeps the pen."""
    node = topic.node()
    first = node.append(START, [_record("a")])
    with pytest.raises(RecordTooLarge):
        node.append(first[-1].offset, [_record("small"), _record("large", 2_000_000)])
    assert _keys(node) == [b"a"]
    node.append(first[-1].offset, [_record("b")])
    assert _keys(node) == [b"a", b"b"]


def test_an_append_larger_than_a_batch(topic: "Topic") -> None:
    """The size limit applies to single records: together they may exceed a broker's batch in one append."""
    node = topic.node()
    node.append(START, [_record(str(i), 400_000) for i in range(8)])
    assert _keys(node) == [str(i).encode() for i in range(8)]


def test_reads_and_appends_do_not_wait_for_each_other(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """While an append hangs, reads return; a second append fails in time."""
    node = topic.node()
    first = node.append(START, [_record("a")])
    reached, go_on, original = threading.Event(), threading.Event(), Pen.commit

    def hanging(pen: Pen, deadline: float) -> None:
        reached.set()
        assert go_on.wait(_WAIT_S)
        original(pen, deadline + _WAIT_S)

    monkeypatch.setattr(Pen, "commit", hanging)
    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(node.append, first[-1].offset, [_record("b")])
        assert reached.wait(_WAIT_S)
        patient, node._timeouts = node._timeouts, replace(node._timeouts, write=0.5)
        try:
            assert _keys(node) == [b"a"]
            assert node.end() == first[-1].offset
            with pytest.raises(LogError, match="waiting"):
                node.append(first[-1].offset, [_record("c")])
        finally:
            node._timeouts = patient
            go_on.set()
        assert [entry.key for entry in appending.result(_WAIT_S)] == [b"b"]


def test_a_closed_log_refuses(topic: "Topic") -> None:
    """A closed log neither reads nor writes."""
    node = topic.node()
    node.close()
    for call in (lambda: list(node.read(START)), lambda: node.append(START, [_record("a")]), node.end):
        with pytest.raises(LogError, match="closed"):
            call()


# --- without fencing


def test_without_fencing(topic: "Topic", caplog: pytest.LogCaptureFixture) -> None:
    """A single writer works without transactions, its records have consecutive offsets, and the log warns."""
    with caplog.at_level(logging.WARNING):
        node = topic.node("http://one:8081", fencing=Fencing.NONE)
    assert "not fenced" in caplog.text
    written: list[Entry] = []
    for names in (["a"], ["b", "c"], ["d"]):
        written += node.append(written[-1].offset if written else START, [_record(name) for name in names])
    assert list(topic.node(fencing=Fencing.NONE).read(START)) == written
    assert [entry.offset for entry in written] == [0, 1, 2, 3]
    with pytest.raises(Conflict):
        node.append(written[0].offset, [_record("stale")])
    assert node.holder() is None


def test_without_fencing_a_second_writer_is_noticed(topic: "Topic", monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that races with another one fails, because it was decided without the other."""
    node = topic.node(fencing=Fencing.NONE)
    first = node.append(START, [_record("a")])
    original = Pen.stage

    def raced(pen: Pen, *arguments: object, **options: object) -> object:
        topic.write_plainly(b"rival", b"v")
        return original(pen, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Pen, "stage", raced)
    with pytest.raises(LogTimeout, match="another writer"):
        node.append(first[-1].offset, [_record("b")])
    assert _keys(node) == [b"a", b"rival", b"b"]


def test_without_fencing_after_fencing(topic: "Topic") -> None:
    """A writer without fencing ignores an earlier holder of the pen in the topic."""
    topic.node("http://one:8081").append(START, [_record("a")])
    node = topic.node("http://two:8081", fencing=Fencing.NONE)
    first = node.append(_end(node), [_record("b")])
    producer = node._pen
    node.append(_end(node), [_record("c")])
    assert node._pen is producer
    assert node.holder() is None
    assert [entry.key for entry in node.read(first[0].offset - 1)] == [b"b", b"c"]


def test_without_fencing_too_large(topic: "Topic") -> None:
    """A record that the broker refuses is refused in the same way without fencing."""
    node = topic.node(fencing=Fencing.NONE)
    with pytest.raises(RecordTooLarge):
        node.append(START, [_record("large", 2_000_000)])
    assert [entry.key for entry in node.append(START, [_record("a")])] == [b"a"]
