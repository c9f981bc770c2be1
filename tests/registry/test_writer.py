"""The writer: groups, lost races, and logs that fail."""

import asyncio
import threading
import time
from contextlib import suppress

import pytest

from harness.logs import ServerLog
from strata.registry.core.decide.decision import Decision
from strata.registry.core.errors import RegistryError
from strata.registry.core.write_group import Gathering
from strata.registry.core.writer import Writer
from strata.storage.log import (
    START,
    Conflict,
    LogCompacted,
    LogError,
    LogFull,
    LogReadOnly,
    LogStatus,
    LogTimeout,
    MemoryLog,
    Record,
    RecordTooLarge,
)
from strata.storage.record_json import encode
from strata.storage.records import ModeKey


class ScriptedLog(MemoryLog):
    """A memory log whose next appends fail as scripted, and which records how many records each append had."""

    def __init__(self, *failures):
        super().__init__()
        self.failures = list(failures)
        self.appends = []
        self.reached, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def append(self, after, records):
        """Append, or fail as scripted."""
        self.reached.set()
        self.gate.wait(60)
        self.appends.append(len(records))
        failure = self.failures.pop(0) if self.failures else None
        if callable(failure):
            failure = failure(records)
        if failure:
            raise failure
        return super().append(after, records)


def put(subject, mode="READONLY"):
    """Return a decision that writes one mode and answers how many the State held before."""
    return lambda state: Decision(len(state.modes), [encode(ModeKey(subject), mode)])


async def test_write_appends_applies_and_answers():
    """The answer comes once the records are in the log and in State."""
    writer = Writer(MemoryLog())

    assert 0 == await writer.write(put("a"))
    assert {"a": "READONLY"} == dict(writer.state.modes)
    assert 1 == len(list(writer.log.read(-1)))


async def test_a_tombstone_goes_under_every_spelling_of_its_key():
    """A deletion also writes a tombstone for each spelling of the key that another registry used."""
    log = MemoryLog()
    odd = b'{"magic":0,"keytype":"MODE","subject":"a"}'
    log.append(-1, [Record(odd, b'{"mode":"READONLY"}')])
    writer = Writer(log)
    writer.replay()

    await writer.write(lambda _state: Decision(None, [encode(ModeKey("a"))]))
    assert [(encode(ModeKey("a")).key, None), (odd, None)] == [(e.key, e.value) for e in log.read(0)]
    assert {} == dict(writer.state.modes)


async def test_waiting_writes_are_one_append_each_decided_on_the_last():
    """Requests that wait during an append are committed together, and each decision sees the ones before it."""
    log = ScriptedLog()
    writer = Writer(log)
    log.gate.clear()
    first = asyncio.create_task(writer.write(put("first")))
    await asyncio.to_thread(log.reached.wait, 30)
    others = [asyncio.create_task(writer.write(put(f"s{n}"))) for n in range(5)]
    await asyncio.sleep(0)  # All of them are waiting now.
    log.gate.set()

    assert 0 == await first
    assert [1, 2, 3, 4, 5] == list(await asyncio.gather(*others))
    assert [1, 5] == log.appends


@pytest.mark.parametrize(("moment_s", "appends"), [(30.0, [1, 2]), (0.001, [1, 1, 1])])
async def test_a_group_waits_a_moment_for_the_clients_of_a_slow_one(monkeypatch, moment_s, appends):
    """After a slow append, a group waits for the clients that were just answered, but not for long."""
    monkeypatch.setattr("strata.registry.core.write_group._SLOW_S", 0.0)
    monkeypatch.setattr("strata.registry.core.write_group._MOMENT_S", moment_s)
    log = ScriptedLog()
    writer = Writer(log)
    log.gate.clear()
    first = asyncio.create_task(writer.write(put("first")))
    await asyncio.to_thread(log.reached.wait, 30)
    second = asyncio.create_task(writer.write(put("second")))
    await asyncio.sleep(0)  # It is waiting now.
    log.gate.set()

    assert 0 == await first
    if moment_s < 1:
        assert 1 == await second
    assert 2 == await writer.write(put("third"))
    assert 1 == await second
    assert appends == log.appends


@pytest.mark.parametrize(
    ("before", "after_s", "waiting", "waits"),
    [(4, 1.0, 3, True), (4, 1.0, 4, False), (4, 0.0, 3, False), (64, 1.0, 15, True), (64, 1.0, 16, False)],
)
async def test_how_many_clients_a_group_waits_for(before, after_s, waiting, waits):
    """A group waits after a slow one, for as many clients as that one had, but not for more than sixteen."""
    gathering = Gathering(load=lambda: 0.0)
    gathering.expect(before, after_s=after_s)
    moment = asyncio.create_task(gathering.wait(waiting))
    await asyncio.sleep(0)  # it has begun, and is over if it does not wait

    assert waits != moment.done()
    await moment


@pytest.mark.parametrize(
    ("load", "reads", "writes", "waiting", "waits"),
    [
        (0.9, 400, 4, 4, True),
        (0.9, 400, 4, 16, False),  # enough of them
        (0.9, 400, 1, 1, False),  # a client that writes alone
        (0.9, 7, 4, 4, False),  # few reads
        (0.2, 400, 4, 4, False),  # time left
    ],
)
async def test_beside_many_reads_on_a_busy_loop_a_group_pauses(monkeypatch, load, reads, writes, waiting, waits):
    """Many reads on a busy event loop come first: even a group that has all its clients waits, unless it is large."""
    monkeypatch.setattr("strata.registry.core.write_group._PAUSE_S", 3600.0)
    gathering = Gathering(load=lambda: load)
    gathering.reads = lambda: reads
    gathering.expect(writes, after_s=0.0)
    pause = asyncio.create_task(gathering.wait(waiting))
    await asyncio.sleep(0)  # it has begun, and is over if it does not wait

    assert waits != pause.done()
    gathering.note(16)
    await pause


async def test_the_pause_beside_reads_ends_by_itself():
    """A pause is over after some milliseconds; while no further reads come, there is no other one."""
    gathering = Gathering(load=lambda: 1.0)
    gathering.reads = lambda: 400
    gathering.expect(4, after_s=0.0)
    await gathering.wait(1)
    gathering.expect(4, after_s=0.0)
    rest = asyncio.create_task(gathering.wait(1))
    await asyncio.sleep(0)

    assert rest.done()


async def test_a_follower_applies_what_the_writer_appends():
    """A writer tells what it appends, and another one applies that only if it had read exactly as far before."""
    log, told = MemoryLog(), []
    writer, follower, late = Writer(log), Writer(log), Writer(log)
    writer.on_append = lambda after, entries: told.append((after, entries))
    for subject in "ab":
        await writer.write(put(subject))
    await writer.write(lambda _state: Decision("there"))
    assert [-1, 0] == [after for after, _ in told]

    for after, entries in (*told, *told):
        follower.follow(after, entries)
    assert writer.state == follower.state

    late.follow(*told[1])
    assert -1 == late.state.offset
    assert writer.state == await late.catch_up()


async def test_decision_without_records_appends_nothing():
    """An answer without records causes no append."""
    log = ScriptedLog()
    writer = Writer(log)

    assert "there" == await writer.write(lambda _state: Decision("there"))
    assert [] == log.appends


async def test_lost_race_is_decided_again_on_the_newer_state():
    """After a Conflict the writer decides again, on the winner's records."""
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
    """A request that raises gets its error, and the others in its group get their answers."""
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
    await asyncio.sleep(0)  # All of them are waiting now.
    log.gate.set()
    await first
    one, refused, two = await results

    assert (1, 42205, 2) == (one, refused.code, two)


async def test_too_large_a_record_is_found_in_its_group():
    """If the log refuses one record of a group, its request gets 42209, and the others are written."""

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
    await asyncio.sleep(0)  # All of them are waiting now.
    log.gate.set()
    await first
    one, refused, two = await results

    assert (1, 42209, 2) == (one, refused.code, two)
    assert {"first", "a", "c"} == set(writer.state.modes)


ADDRESS = "postgresql+psycopg://strata@db.internal:5432/schemas: connection refused"


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        pytest.param(LogTimeout(ADDRESS), 50002, "it is not known whether it was written", id="unknown fate"),
        pytest.param(LogError(ADDRESS), 50302, "Nothing was written: the log failed or did not answer", id="failed"),
        pytest.param(LogFull(ADDRESS), 50001, "no space is left where the log is kept. Nothing was written", id="full"),
        pytest.param(LogReadOnly(ADDRESS), 50001, "the log is read-only. Nothing was written", id="read-only"),
        pytest.param(RuntimeError(ADDRESS), 500, "Internal Server Error", id="bug"),
    ],
)
async def test_failing_log_is_answered_truthfully(failure, code, words, caplog):
    """The answer has the code of the failure and no address, one log line names it, and the next write works."""
    writer = Writer(ScriptedLog(failure))

    with pytest.raises(RegistryError, match=words) as caught:
        await writer.write(put("a"))
    assert (code, [("Retry-After", "1")] if code == 50302 else []) == (caught.value.code, caught.value.headers)
    assert "db.internal" not in caught.value.message
    assert [ADDRESS] == [record.getMessage().split("failed: ")[1] for record in caplog.records]
    assert [code == 500] == [bool(record.exc_info) for record in caplog.records]
    assert 0 == await writer.write(put("b"))


async def test_races_without_end_are_given_up(caplog, monkeypatch):
    """A writer that loses every race answers in the end that nothing was written, and logs it."""
    monkeypatch.setattr("strata.registry.core.writer._MAX_PAUSE", 0.0)
    writer = Writer(ScriptedLog(*[Conflict()] * 1000))

    with pytest.raises(RegistryError, match="Nothing was written: other writers came first") as caught:
        await writer.write(put("a"))
    assert 50302 == caught.value.code
    assert [{"event": "races_lost", "races": 200}] == [record.args for record in caplog.records]


async def test_catch_up_that_begins_later_sees_more():
    """A request for a read while another one runs gets a read that began after the request."""

    class SlowLog(ServerLog):
        """A log whose read returns, after a while, what the log held when the read began."""

        reads = 0

        def read(self, after):
            self.reads += 1
            entries = list(super().read(after))
            begun.set()
            gate.wait(60)
            return iter(entries)

    begun, gate, log = threading.Event(), threading.Event(), SlowLog()
    writer = Writer(log)
    early = asyncio.create_task(writer.catch_up())
    await asyncio.to_thread(begun.wait, 30)
    record = encode(ModeKey("a"), "READONLY")
    log.append(-1, [Record(record.key, record.value)])
    late = [asyncio.create_task(writer.catch_up()) for _ in range(5)]
    await asyncio.sleep(0)  # All of them have asked now.
    gate.set()
    await early

    assert [{"a"}] * 5 == [set((await task).modes) for task in late]
    assert 2 == log.reads


class UnreadLog(ScriptedLog):
    """A log that counts its reads."""

    reads = 0

    def read(self, after):
        """Read, and count it."""
        self.reads += 1
        return super().read(after)


async def test_a_log_that_shows_that_nothing_changed_is_not_read():
    """A catch-up reads only what another node appended; without reading, it is as fresh as with a read."""
    log = UnreadLog()
    writer = Writer(log)
    writer.read_at, before = 0.0, writer.state
    writer.lag()

    assert before is await writer.catch_up()
    assert (0, False) == (log.reads, writer.lags)
    assert writer.read_at > 0
    record = encode(ModeKey("a"), "READONLY")
    log.append(-1, [record])
    assert {"a"} == set((await writer.catch_up()).modes) == set((await writer.catch_up()).modes)
    assert 1 == log.reads


async def test_an_append_that_is_not_yet_applied_is_waited_for():
    """A read between the commit of this node's own append and its publication includes that append."""

    class HeldBack(UnreadLog):
        """A log whose append lands, and returns when the gate opens."""

        def append(self, after, records):
            entries = MemoryLog.append(self, after, records)
            self.reached.set()
            self.gate.wait(60)
            return entries

    log = HeldBack()
    log.gate.clear()
    writer = Writer(log)
    writing = asyncio.create_task(writer.write(put("a")))
    await asyncio.to_thread(log.reached.wait, 30)

    assert {} == dict(writer.state.modes)
    assert {"a"} == set((await writer.catch_up()).modes)
    log.gate.set()
    assert 0 == await writing


async def test_read_from_a_failing_log_is_50301(caplog):
    """If the log cannot be read, the answer is 50301, not a stale one; the reason is logged once."""

    class Broken(ServerLog):
        """A log that always fails to read."""

        def read(self, after):
            raise LogError(ADDRESS)

    writer = Writer(Broken())
    for _ in range(3):
        with pytest.raises(RegistryError) as caught:
            await writer.catch_up()
        assert (50301, [("Retry-After", "1")]) == (caught.value.code, caught.value.headers)
        assert "The log cannot be read: the log failed or did not answer. Try again later" == caught.value.message
    assert [f"the log cannot be read: {ADDRESS}"] == [record.getMessage() for record in caplog.records]


@pytest.fixture
def pass_time(monkeypatch):
    """Let the clock jump, so that deadlines pass without waiting."""
    passed, clock = [], time.monotonic
    monkeypatch.setattr("time.monotonic", lambda: clock() + sum(passed))
    return passed.append


async def test_a_read_does_not_wait_for_ever(pass_time):
    """If the log hangs, each of many requests that wait for one read gets 50301 after a while."""
    log = StuckLog()
    log.reads.clear()
    writer = Writer(log)

    reads = [asyncio.create_task(writer.catch_up()) for _ in range(3)]
    await asyncio.sleep(0)
    pass_time(31)
    answers = await asyncio.gather(*reads, return_exceptions=True)
    assert [50301] * 3 == [answer.code for answer in answers]
    log.reads.set()
    assert writer.state == await writer.catch_up()


class StuckLog(ScriptedLog, ServerLog):
    """A log whose reads hang while `reads` is clear, and its appends while `gate` is."""

    def __init__(self, *failures):
        super().__init__(*failures)
        self.reads = threading.Event()
        self.reads.set()

    def read(self, after):
        """Read once reads are allowed."""
        self.reads.wait(60)
        return super().read(after)


async def settled(writer):
    """Wait until the writer has nothing left to do."""
    if writer._writing:
        await asyncio.wait([writer._writing])


async def test_a_write_that_has_waited_too_long_is_never_carried_out(pass_time):
    """If the log hangs before the write starts, nothing is written, neither then nor when the log continues."""
    log = StuckLog()
    log.reads.clear()
    writer = Writer(log)

    writes = [asyncio.create_task(writer.write(put(f"s{n}"))) for n in range(3)]
    await asyncio.sleep(0)
    pass_time(31)
    refused = await asyncio.gather(*writes, return_exceptions=True)
    assert [(50302, [("Retry-After", "1")])] * 3 == [(error.code, error.headers) for error in refused]
    log.reads.set()
    await settled(writer)
    assert ([], {}) == (log.appends, dict(writer.state.modes))
    assert 0 == await writer.write(put("later"))


async def test_a_write_that_waits_behind_a_stuck_one_is_never_carried_out(pass_time):
    """A write passed to the log has an unknown outcome; a write that waits behind it is not written."""
    log = StuckLog()
    writer = Writer(log)
    await writer.write(put("before"))
    log.gate.clear()
    log.reached.clear()
    first = asyncio.create_task(writer.write(put("in the log's hands")))
    await asyncio.to_thread(log.reached.wait, 30)
    second = asyncio.create_task(writer.write(put("behind")))
    await asyncio.sleep(0)
    pass_time(31)
    answers = await asyncio.gather(first, second, return_exceptions=True)
    assert [50002, 50302] == [error.code for error in answers]
    assert [] == writer._waiting

    log.gate.set()
    await settled(writer)
    assert {"before", "in the log's hands"} == set(writer.state.modes)


async def test_a_write_whose_deadline_comes_first_is_not_begun():
    """The deadline of the request applies if it is earlier than the writer's own."""
    log = StuckLog()
    writer = Writer(log)

    with pytest.raises(RegistryError) as caught:
        await writer.write(put("a"), deadline=0.0)
    assert 50302 == caught.value.code
    await settled(writer)
    assert [] == log.appends


@pytest.mark.parametrize("stuck", ["reads", "gate"])
async def test_a_write_whose_client_has_gone_is_dropped(stuck):
    """A write is dropped if its client disconnects before the log gets it; afterwards it is written."""
    log = StuckLog()
    writer = Writer(log)
    getattr(log, stuck).clear()
    write = asyncio.create_task(writer.write(put("a")))
    if stuck == "gate":
        await asyncio.to_thread(log.reached.wait, 30)
    else:
        await asyncio.sleep(0)
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    getattr(log, stuck).set()
    await settled(writer)

    assert ([1] if stuck == "gate" else []) == log.appends


async def test_a_write_given_up_during_a_lost_race_is_not_tried_again(pass_time):
    """A write whose append ends in Conflict after its deadline has an unknown outcome, and is not retried."""
    log = StuckLog(None, Conflict())
    writer = Writer(log)
    await writer.write(put("before"))
    log.gate.clear()
    log.reached.clear()
    first = asyncio.create_task(writer.write(put("a")))
    await asyncio.to_thread(log.reached.wait, 30)
    pass_time(31)
    with pytest.raises(RegistryError) as caught:
        await first
    assert 50002 == caught.value.code
    log.gate.set()
    await settled(writer)

    assert ([1, 1], {"before"}) == (log.appends, set(writer.state.modes))


async def test_one_that_goes_between_decision_and_append_does_not_harm_its_group():
    """The writer decides the others again, because the State behind their decisions will not be written."""
    log = StuckLog()
    writer = Writer(log)
    log.reads.clear()
    blocker = asyncio.create_task(writer.write(lambda _state: Decision("first")))
    await asyncio.sleep(0)
    goes = []

    def decide(state):
        if not goes:
            goes.append(loop.call_soon_threadsafe(going.cancel))
            cancelled.wait(60)
        return Decision("gone", [encode(ModeKey("gone"), "READONLY")])

    async def write_until_cancelled():
        try:
            await writer.write(decide)
        finally:
            cancelled.set()

    loop, cancelled = asyncio.get_running_loop(), threading.Event()
    going = asyncio.create_task(write_until_cancelled())
    stays = asyncio.create_task(writer.write(put("stays")))
    await asyncio.sleep(0)
    log.reads.set()

    assert ("first", 0) == (await blocker, await stays)
    assert {"stays"} == set(writer.state.modes)
    assert going.cancelled()


async def test_expensive_work_does_not_hold_up_reads_and_writes():
    """However many long computations run, the writer still reads and writes the log."""
    writer, gate = Writer(MemoryLog()), threading.Event()
    long_work = [asyncio.create_task(writer.in_thread(gate.wait, 240)) for _ in range(50)]
    await asyncio.sleep(0)  # All of them are running, or waiting for a thread.

    assert 0 == await asyncio.wait_for(writer.write(put("a")), 60)
    assert {"a"} == set((await asyncio.wait_for(writer.catch_up(), 60)).modes)
    gate.set()
    assert [True] * 50 == await asyncio.gather(*long_work)


class LostPenLog(ScriptedLog):
    """A log in which another node takes the pen as soon as this one appends."""

    def holder(self):
        """Return the URL of the other node."""
        return "http://other:8081" if self.appends else None


async def test_whoever_lost_the_pen_does_not_take_it_back():
    """After losing a race to the pen's new holder, the writer does not take the pen back: forward the request."""
    log = LostPenLog(Conflict)
    writer = Writer(log)

    for _ in range(2):
        with pytest.raises(RegistryError) as refused:
            await writer.write(put("a"))
        assert (50004, "Leader not known. Nothing was written") == (refused.value.code, refused.value.message)
    assert [1] == log.appends
    assert [] == list(log.read(-1))


async def test_a_holder_that_does_not_answer_is_passed_over():
    """The writer takes the pen from a node that is known not to answer."""
    log = LostPenLog(Conflict)
    writer = Writer(log)
    writer.pass_over("http://other:8081")

    assert 0 == await writer.write(put("a"))
    assert [1, 1] == log.appends


class SigningLog(LostPenLog):
    """A log in which the other node signs whenever this one has tried to append."""

    def status(self):
        """Return the newest signature."""
        return LogStatus("kafka", False, signature=(len(self.appends), b"http://other:8081", b"other", 0))


@pytest.mark.parametrize(
    ("name", "passed_over", "appends"),
    [
        ("until it signs again", {}, [1]),
        ("also when it signs again", {"despite_signing": True}, [1, 1]),
        ("for a time that is over", {"seconds": -1.0, "despite_signing": True}, [1]),
    ],
)
async def test_how_long_a_holder_is_passed_over(name, passed_over, appends):
    """A holder that signs again lives: this node forwards to it, instead of taking the pen from it again and again."""
    log = SigningLog(Conflict)
    writer = Writer(log)
    writer.pass_over("http://other:8081", **passed_over)

    with suppress(RegistryError):
        await writer.write(put("a"))
    assert appends == log.appends
    assert name


class CompactedLog(ServerLog):
    """A log from which a compaction has dropped the last records after they were read."""

    compacted = False

    def read(self, after):
        """Raise LogCompacted once, then return a shorter log."""
        if self.compacted and after != START:
            self.compacted = False
            self._entries = self._entries[:1]
            raise LogCompacted("compacted")
        return super().read(after)


async def test_a_replay_replaces_a_state_that_was_further_along():
    """A replay replaces the State, even one with a higher offset."""
    log = CompactedLog()
    writer = Writer(log)
    await writer.write(put("a"))
    await writer.write(put("b"))
    before = writer.state
    log.compacted = True

    assert {"a": "READONLY"} == dict((await writer.catch_up()).modes)
    assert before.removals != writer.state.removals
