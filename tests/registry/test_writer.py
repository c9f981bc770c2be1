"""The one door: groups, lost races, and logs that fail."""

import asyncio
import threading

import pytest

from registry.errors import RegistryError
from registry.writer import Decision, Writer
from storage.log import START, Conflict, LogCompacted, LogError, LogTimeout, Record, RecordTooLarge
from storage.memory_log import MemoryLog
from storage.record_json import encode
from storage.records import ModeKey


class ScriptedLog(MemoryLog):
    """A memory log whose next appends fail as told, and which records how many records each append brought."""

    def __init__(self, *failures):
        super().__init__()
        self.failures = list(failures)
        self.appends = []
        self.reached, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def append(self, after, records):
        """Append, or fail as told."""
        self.reached.set()
        self.gate.wait(30)
        self.appends.append(len(records))
        failure = self.failures.pop(0) if self.failures else None
        if callable(failure):
            failure = failure(records)
        if failure:
            raise failure
        return super().append(after, records)


def put(subject, mode="READONLY"):
    """A decision that writes one mode and answers how many the State held before."""
    return lambda state: Decision(len(state.modes), [encode(ModeKey(subject), mode)])


async def test_write_appends_applies_and_answers():
    """The answer comes when the records stand in the log and in State."""
    writer = Writer(MemoryLog())

    assert 0 == await writer.write(put("a"))
    assert {"a": "READONLY"} == dict(writer.state.modes)
    assert 1 == len(list(writer.log.read(-1)))


async def test_a_tombstone_goes_under_every_spelling_of_its_key():
    """What another registry wrote under another spelling of a key is deleted under that spelling too."""
    log = MemoryLog()
    odd = b'{"magic":0,"keytype":"MODE","subject":"a"}'
    log.append(-1, [Record(odd, b'{"mode":"READONLY"}')])
    writer = Writer(log)
    writer.replay()

    await writer.write(lambda _state: Decision(None, [encode(ModeKey("a"))]))
    assert [(encode(ModeKey("a")).key, None), (odd, None)] == [(e.key, e.value) for e in log.read(0)]
    assert {} == dict(writer.state.modes)


async def test_waiting_writes_are_one_append_each_decided_on_the_last():
    """What waits while an append is under way is committed together, and each decision sees the ones before it."""
    log = ScriptedLog()
    writer = Writer(log)
    log.gate.clear()
    first = asyncio.create_task(writer.write(put("first")))
    await asyncio.to_thread(log.reached.wait, 30)
    others = [asyncio.create_task(writer.write(put(f"s{n}"))) for n in range(5)]
    await asyncio.sleep(0)  # all of them are waiting now
    log.gate.set()

    assert 0 == await first
    assert [1, 2, 3, 4, 5] == list(await asyncio.gather(*others))
    assert [1, 5] == log.appends


async def test_decision_without_records_appends_nothing():
    """An answer that stands already costs no append."""
    log = ScriptedLog()
    writer = Writer(log)

    assert "there" == await writer.write(lambda _state: Decision("there"))
    assert [] == log.appends


async def test_lost_race_is_decided_again_on_the_newer_state():
    """After a Conflict the decision is made anew, on what the winner wrote."""
    log = MemoryLog()
    writer = Writer(log)
    raced = []

    def decide(state):
        if not raced:
            raced.append(True)
            record = encode(ModeKey("rival"), "READONLY")
            log.append(log.end(), [record])
        return Decision(sorted(filter(None, state.modes)), [encode(ModeKey("mine"), "READONLY")])

    assert ["rival"] == await writer.write(decide)
    assert {"rival", "mine"} == set(writer.state.modes)


async def test_refused_request_does_not_touch_its_neighbours():
    """In a group, one that raises gets its error and the others their answers."""
    log = ScriptedLog()
    writer = Writer(log)
    log.gate.clear()
    first = asyncio.create_task(writer.write(put("first")))
    await asyncio.to_thread(log.reached.wait, 30)

    def refuse(_state):
        raise RegistryError(42205, "no")

    results = asyncio.gather(
        writer.write(put("a")), writer.write(refuse), writer.write(put("b")), return_exceptions=True
    )
    await asyncio.sleep(0)  # all of them are waiting now
    log.gate.set()
    await first
    one, refused, two = await results

    assert (1, 42205, 2) == (one, refused.code, two)


async def test_too_large_a_record_is_found_in_its_group():
    """The log refuses a group for one record: its request gets 42209, the others are written."""

    def fussy(records):
        return RecordTooLarge("too large") if any(len(record.value or b"") > 1000 for record in records) else None

    log = ScriptedLog(None, *[fussy] * 10)
    writer = Writer(log)
    log.gate.clear()
    first = asyncio.create_task(writer.write(put("first")))
    await asyncio.to_thread(log.reached.wait, 30)
    results = asyncio.gather(
        writer.write(put("a")), writer.write(put("b", "x" * 2000)), writer.write(put("c")), return_exceptions=True
    )
    await asyncio.sleep(0)  # all of them are waiting now
    log.gate.set()
    await first
    one, refused, two = await results

    assert (1, 42209, 2) == (one, refused.code, two)
    assert {"first", "a", "c"} == set(writer.state.modes)


@pytest.mark.parametrize(
    ("failure", "code"), [(LogTimeout("slow"), 50002), (LogError("broken"), 50001), (RuntimeError("bug"), 500)]
)
async def test_failing_log_is_answered_truthfully(failure, code):
    """A log that fails gives the error of its kind, and the next write works."""
    writer = Writer(ScriptedLog(failure))

    with pytest.raises(RegistryError) as caught:
        await writer.write(put("a"))
    assert code == caught.value.code
    assert 0 == await writer.write(put("b"))


async def test_races_without_end_are_given_up():
    """A writer that loses every race answers 50002 in the end."""
    writer = Writer(ScriptedLog(*[Conflict()] * 1000))

    with pytest.raises(RegistryError) as caught:
        await writer.write(put("a"))
    assert 50002 == caught.value.code


async def test_catch_up_that_begins_later_sees_more():
    """A read that asks while another one is under way gets one that began after it asked."""

    class SlowLog(MemoryLog):
        """Reads what stood when the read began, and takes a while."""

        reads = 0

        def read(self, after):
            self.reads += 1
            entries = list(super().read(after))
            begun.set()
            gate.wait(30)
            return iter(entries)

    begun, gate, log = threading.Event(), threading.Event(), SlowLog()
    writer = Writer(log)
    early = asyncio.create_task(writer.catch_up())
    await asyncio.to_thread(begun.wait, 30)
    record = encode(ModeKey("a"), "READONLY")
    log.append(-1, [Record(record.key, record.value)])
    late = [asyncio.create_task(writer.catch_up()) for _ in range(5)]
    await asyncio.sleep(0)  # all of them have asked now
    gate.set()
    await early

    assert [{"a"}] * 5 == [set((await task).modes) for task in late]
    assert 2 == log.reads


async def test_read_from_a_failing_log_is_50001():
    """A log that cannot be read makes the answer 50001, not a stale one."""

    class Broken(MemoryLog):
        """Cannot be read."""

        def read(self, after):
            raise LogError("no broker")

    with pytest.raises(RegistryError) as caught:
        await Writer(Broken()).catch_up()
    assert 50001 == caught.value.code


async def test_expensive_work_does_not_hold_up_reads_and_writes():
    """However many long computations run, the log is read and written beside them."""
    writer, gate = Writer(MemoryLog()), threading.Event()
    long_work = [asyncio.create_task(writer.in_thread(gate.wait, 60)) for _ in range(50)]
    await asyncio.sleep(0)  # all of them are under way, or waiting for a thread

    assert 0 == await asyncio.wait_for(writer.write(put("a")), 20)
    assert {"a"} == set((await asyncio.wait_for(writer.catch_up(), 20)).modes)
    gate.set()
    assert [True] * 50 == await asyncio.gather(*long_work)


class LostPenLog(ScriptedLog):
    """A log in which another node takes the right to write as soon as this one appends."""

    def holder(self):
        """The other node."""
        return "http://other:8081" if self.appends else None


async def test_whoever_lost_the_pen_does_not_take_it_back():
    """A race lost to a node that now holds the pen is no reason to fight for it: the request may go there instead."""
    log = LostPenLog(Conflict)
    writer = Writer(log)

    for _ in range(2):
        with pytest.raises(RegistryError) as refused:
            await writer.write(put("a"))
        assert 50004 == refused.value.code
    assert [1] == log.appends
    assert [] == list(log.read(-1))


async def test_a_holder_that_does_not_answer_is_passed_over():
    """The pen is taken from a node that is known not to answer."""
    log = LostPenLog(Conflict)
    writer = Writer(log)
    writer.passed_over = "http://other:8081"

    assert 0 == await writer.write(put("a"))
    assert [1, 1] == log.appends


class CompactedLog(MemoryLog):
    """A log whose last records a compaction has dropped since they were read."""

    compacted = False

    def read(self, after):
        """Read again from the start, once, and find the log shorter than it was."""
        if self.compacted and after != START:
            self.compacted = False
            self._entries = self._entries[:1]
            raise LogCompacted("compacted")
        return super().read(after)


async def test_a_replay_replaces_a_state_that_was_further_along():
    """What a replay no longer finds is gone, though the State before it had a higher offset."""
    log = CompactedLog()
    writer = Writer(log)
    await writer.write(put("a"))
    await writer.write(put("b"))
    before = writer.state
    log.compacted = True

    assert {"a": "READONLY"} == dict((await writer.catch_up()).modes)
    assert before.removals != writer.state.removals
