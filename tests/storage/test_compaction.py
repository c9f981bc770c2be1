"""Compaction of a SQL log: the rest folds to the same State, also for concurrent readers and writers."""

import threading
from contextlib import closing, suppress
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.examples import examples
from harness.logs import DATABASES, new_log_url
from strata.storage.log import START, Conflict, Entry, LogCompacted, Record
from strata.storage.record_json import encode
from strata.storage.records import (
    AclKey,
    AclValue,
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DekKey,
    DekValue,
    DeleteSubjectKey,
    ExportKey,
    ExportValue,
    HighWaterKey,
    KekKey,
    KekValue,
    LoweredKey,
    LoweredValue,
    ModeKey,
    NoopKey,
    SchemaKey,
    SchemaValue,
)
from strata.storage.sql.compaction import CompactionRefused, compact, plan_compaction
from strata.storage.sql.log import SqlLog
from strata.storage.state import State


def schema(subject, version, schema_id, text='"int"', **other):
    """Return a record that holds one version."""
    return encode(SchemaKey(subject, version), SchemaValue(subject, version, schema_id, text, **other))


def gone(subject, version):
    """Return the tombstone of one version."""
    return encode(SchemaKey(subject, version))


def entries(records):
    """Return records as a log holds them."""
    return [Entry(i, 1000 + i, r.key, r.value) for i, r in enumerate(records)]


def dropped(*records):
    """Return the offsets that a compaction would drop."""
    return sorted(plan_compaction(lambda: entries(records)).dropped)


NOOP = encode(NoopKey())
KEK = encode(KekKey("k"), KekValue("aws-kms", "arn", {}, None, shared=False, deleted=False, created=1))
DEK = encode(DekKey("k", "s", "A", 1), DekValue("QQ==", deleted=False, created=1))
ACL = encode(AclKey("User:u", "*", "SUBJECT", "s", "LITERAL", "READ", "ALLOW"), AclValue(created=1))
EXPORT = encode(ExportKey("e"), ExportValue("RUNNING", 1))
FULL = encode(ConfigKey("s"), ConfigValue(MappingProxyType({"compatibilityLevel": "FULL"})))

# records, offsets to drop
PLANS = [
    pytest.param([schema("s", 1, 1), schema("s", 2, 2, '"long"')], [], id="nothing is superseded"),
    pytest.param([schema("s", 1, 1), schema("s", 1, 1, deleted=True), NOOP], [0], id="an older value"),
    pytest.param(
        [schema("s", 1, 1), schema("t", 1, 2, '"long"'), gone("s", 1), NOOP], [0, 2], id="a tombstone with its value"
    ),
    pytest.param([FULL, encode(ConfigKey("s")), NOOP], [0, 1], id="a setting taken back"),
    pytest.param([NOOP, NOOP, FULL], [0, 1], id="NOOPs"),
    pytest.param([NOOP, NOOP], [0], id="the last record stays"),
    pytest.param([KEK, DEK, encode(DekKey("k", "s", "A", 1)), KEK, NOOP], [0, 1, 2], id="encryption keys"),
    pytest.param([ACL, ACL, DEK, Record(ACL.key, None), NOOP], [0, 1, 3], id="a rule of access taken back"),
    pytest.param([EXPORT, EXPORT, NOOP, encode(ExportKey("e")), NOOP], [0, 1, 2, 3], id="an exporter that is deleted"),
    pytest.param(
        [schema("s", 1, 7), encode(HighWaterKey("."), 7), gone("s", 1), NOOP], [0, 2], id="the highest id's mark stays"
    ),
    pytest.param([schema("s", 1, 7), gone("s", 1), NOOP], [], id="the highest id without a mark stays on record"),
    pytest.param([schema(":.c:s", 1, 1), gone(":.c:s", 1), NOOP], [], id="a context known by its schemas alone"),
    pytest.param(
        [schema("s", 1, 1), schema("s", 2, 2, '"long"'), encode(DeleteSubjectKey("s"), 2),
         encode(DeleteSubjectKey("s"), 1), NOOP],
        [], id="a deletion that named more than the one after it",
    ),
    pytest.param(
        [schema("s", 1, 1), encode(DeleteSubjectKey("s"), 1), schema("s", 1, 1), NOOP], [0], id="registered again"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("records", "expected"), PLANS)
def test_what_goes(records, expected):
    """A compaction drops superseded records, and none on which the State depends."""
    assert expected == dropped(*records)


SUBJECTS = st.sampled_from(["a", "b", ":.c:a"])
NUMBERS = st.integers(1, 3)
TEXTS = st.sampled_from(['"int"', '"long"', '"string"'])
RECORDS = st.one_of(
    st.builds(lambda s, v, i, t, d: schema(s, v, i, t, deleted=d), SUBJECTS, NUMBERS, NUMBERS, TEXTS, st.booleans()),
    st.builds(schema, SUBJECTS, NUMBERS, NUMBERS, TEXTS),
    st.builds(gone, SUBJECTS, NUMBERS),
    st.builds(lambda s, v: encode(DeleteSubjectKey(s), v), SUBJECTS, NUMBERS),
    st.builds(lambda s: encode(ClearSubjectKey(s)), SUBJECTS),
    st.builds(lambda s, m: encode(ModeKey(s), m), SUBJECTS, st.sampled_from(["READONLY", None])),
    st.builds(lambda n: encode(HighWaterKey("."), n), NUMBERS),
    st.builds(lambda n: encode(LoweredKey("."), LoweredValue(n, 1)), NUMBERS),
    st.just(NOOP),
    st.just(encode(ContextKey(".d"))),
    st.sampled_from([KEK, DEK, encode(KekKey("k")), encode(DekKey("k", "s", "A", 1))]),
    st.sampled_from([ACL, Record(ACL.key, None)]),
    st.sampled_from([EXPORT, Record(EXPORT.key, None)]),
)
HISTORIES = st.lists(RECORDS, min_size=5, max_size=40)


@settings(max_examples=examples(200), deadline=None)
@given(HISTORIES)
def test_any_history_adds_up_to_the_same(records):
    """Records in any order, also of other writers, fold to the same State after compaction, ids included."""
    log = entries(records)
    plan = plan_compaction(lambda: log)
    left = State().apply_all(entry for entry in log if entry.offset not in plan.dropped)

    assert State().apply_all(log) == left


# --- on a database


@pytest.fixture(params=DATABASES)
def url(request, tmp_path):
    """Return an empty database of each kind."""
    return new_log_url(request.param, tmp_path, request)


HISTORY = [
    schema("s", 1, 1), schema("s", 2, 2, '"long"'), schema("s", 2, 2, '"long"', deleted=True),
    encode(HighWaterKey("."), 2), gone("s", 2), NOOP, schema("t", 1, 1),
]  # fmt: skip


def test_a_compacted_database_reads_as_before(url):
    """Compaction removes rows, keeps the State and the end, and the next append comes after the end."""
    with closing(SqlLog(url)) as log:
        log.append(START, HISTORY)
        before = State().apply_all(log.read(START))
        assert (7, 4) == (compact(log, dry_run=True).records, len(compact(log).dropped))
        log.vacuum()
        after = State().apply_all(log.read(START))

        assert (before, 3) == (after, after.records)
        assert 7 == log.append(6, [schema("u", 1, 3, '"string"')])[0].offset
        assert frozenset() == compact(log).dropped


def test_a_node_that_had_not_read_on_is_told(url):
    """A reader that was before dropped rows reads again from the start; one that was past them continues."""
    with closing(SqlLog(url)) as log, closing(SqlLog(url)) as other:
        log.append(START, HISTORY)
        compact(other)
        with pytest.raises(LogCompacted):
            list(log.read(1))
        assert [] == list(log.read(6))
        assert [0, 3, 6] == [entry.offset for entry in log.read(START)]


def test_a_replay_that_a_compaction_overtakes_is_told(url, monkeypatch):
    """If a compaction drops rows between two batches of a replay, the replay begins again."""
    monkeypatch.setattr("strata.storage.sql.tables.BATCH", 2)
    with closing(SqlLog(url)) as log, closing(SqlLog(url)) as other:
        log.append(START, HISTORY)
        reading = log.read(START)
        read = [next(reading), next(reading)]
        compact(other)
        with pytest.raises(LogCompacted):
            read += list(reading)
        assert [0, 3, 6] == [entry.offset for entry in log.read(START)]


def test_of_two_compactions_one_goes(url):
    """A compaction planned before another one is not carried out."""
    with closing(SqlLog(url)) as log:
        log.append(START, HISTORY)
        generation = log.generation()
        compact(log)
        with pytest.raises(Conflict):
            log.drop([0], upto=6, generation=generation)
        assert 0 in [entry.offset for entry in log.read(START)]


@settings(max_examples=examples(16), deadline=None, suppress_health_check=list(HealthCheck))
@given(histories=st.lists(HISTORIES, min_size=2, max_size=3))
def test_histories_with_compactions_on_a_database(url, histories):
    """After writes and compactions, the database folds to the State of a node that read all of it, next id included."""
    with closing(SqlLog(url)) as log:
        # Each example continues the log of the one before: one long history.
        live = State().apply_all(log.read(START))
        for records in histories:
            live = live.apply_all(log.append(live.offset, records))
            compact(log)
            assert live == State().apply_all(log.read(START))


def test_writers_beside_a_compaction_lose_nothing(url):
    """Two writers append during repeated compactions: every acknowledged append stays, at its offset."""
    written = {}

    def write(name):
        with closing(SqlLog(url)) as log:
            state = State()
            for number in range(12):
                while True:
                    with suppress(Conflict, LogCompacted):
                        state = state.apply_all(log.read(state.offset))
                        entry = log.append(state.offset, [encode(ModeKey(f"{name}{number}"), "READONLY"), NOOP])[0]
                        written[entry.key] = entry.offset
                        break
                    if state.offset < log.end():
                        state = State()

    with closing(SqlLog(url)) as log:
        writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            with suppress(CompactionRefused):
                compact(log)
        held = {entry.key: entry.offset for entry in log.read(START)}

    assert 24 == len(written)
    assert written.items() <= held.items()
