"""The highest id of a context, lowered: every fold of the log, and every copy of it, agree on what the next id is."""

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from faults.ledger import read_ledger
from harness.examples import examples
from harness.serving import serving
from strata.registry.app import create_app
from strata.registry.commands.cli import main
from strata.registry.core.decide.highest_id import lower_highest, mark_highest
from strata.registry.core.errors import RegistryError
from strata.registry.features.standby.scope import Scope
from strata.registry.settings import Settings
from strata.registry.transfer.contents import contents_of, differing
from strata.registry.transfer.copies import copy_of_entries
from strata.storage.log import START, Entry, MemoryLog, Record
from strata.storage.record_json import decode_key, decode_value, encode
from strata.storage.records import LoweredKey, LoweredValue, SchemaKey, SchemaValue
from strata.storage.sql.compaction import plan_compaction
from strata.storage.state import State

FAR = 2**31 - 1
WHOLE = Scope()


def stored(version, schema_id):
    """Return the record of a version of `s`, whose text names its id and version."""
    text = f'{{"type":"fixed","name":"F{version}","size":{schema_id}}}'
    return encode(SchemaKey("s", version), SchemaValue("s", version, schema_id, text))


def lowered(state, highest):
    """Return the records that lower the highest id; none if that is refused."""
    try:
        return lower_highest(state, ".", highest).records
    except RegistryError:
        return ()


def removed(state, index):
    """Return the records that hard-delete one of the versions of `s`."""
    versions = state.versions("s", include_deleted=True)
    if not versions:
        return ()
    gone = versions[index % len(versions)]
    return [*mark_highest(state, [gone]), encode(SchemaKey("s", gone.version))]


def added(state, gap):
    """Return the records of a new version, with the next id or one after a gap; none if the ids are used up."""
    schema_id = min(state.next_id(".") + gap, FAR)
    return (
        ()
        if state.schema(".", schema_id) or schema_id < state.next_id(".")
        else [stored(state.next_version("s"), schema_id)]
    )


def step(decide, *choices):
    """Return steps that decide on the State with one of some values."""
    return st.builds(lambda value: lambda state: decide(state, value), st.sampled_from(choices))


STEPS = st.one_of(step(added, 0, 3, FAR), step(removed, 0, 1, 2), step(removed, 0, 1, 2), step(lowered, None, 1, 2, 5))


def history(steps):
    """Return the entries of a log after some steps, each decided on the State that the steps before it left."""
    log, state = [], State()
    for step in steps:
        made = [Entry(len(log) + i, 0, r.key, r.value) for i, r in enumerate(step(state))]
        log, state = [*log, *made], state.apply_all(made)
    return log


def highest(state):
    """Return the highest id of the default context."""
    return state.context(".").high_water


def newest(log, *, tombstones):
    """Return what a topic's compaction leaves, with tombstones or without."""
    kept = {entry.key: entry for entry in log}
    return [entry for entry in sorted(kept.values()) if tombstones or entry.value is not None]


def followed(source, standby):
    """Return the State of a standby after it has copied what a source holds."""
    records = differing(standby, contents_of(source), WHOLE.covers)
    return standby.drafted(records, 0)


@settings(max_examples=examples(100))
@given(st.lists(STEPS, max_size=14), st.integers(0, 20))
def test_all_agree_on_the_highest_id(steps, cut):
    """Replay, compaction, an export, a standby from the start or from earlier, and the faults' own fold agree."""
    log = history(steps)
    state = State().apply_all(log)
    plan = plan_compaction(lambda: log)
    earlier = followed(State().apply_all(log[:cut]), State())
    ledger = read_ledger(log, imported_contexts=(".",))
    found = {
        "compacted rows": State().apply_all(entry for entry in log if entry.offset not in plan.dropped),
        "a compacted topic": State().apply_all(newest(log, tombstones=True)),
        "a topic without tombstones": State().apply_all(newest(log, tombstones=False)),
        "an export": copy_of_entries("x", log).state,
        "a new standby": followed(state, State()),
        "an earlier standby": followed(state, earlier),
    }

    assert dict.fromkeys(found, highest(state)) == {name: highest(one) for name, one in found.items()}
    assert (highest(state), []) == (ledger.highest.get(".", 0), ledger.broken)


def test_no_id_in_use_is_lowered_away():
    """A record that contradicts the State, as another writer may leave it, frees no id that a version has."""
    record = encode(LoweredKey("."), LoweredValue(2, 1))
    log = [Entry(i, 0, r.key, r.value) for i, r in enumerate([stored(1, 7), record])]

    assert 7 == highest(State().apply_all(log))
    assert (LoweredKey("."), LoweredValue(2, 1)) == (key := decode_key(record.key), decode_value(key, record.value))
    assert ["offset 1: the highest id became 2, but 7 is in use"] == read_ledger(log, (".",)).broken


@pytest.fixture
def log():
    """Return a log whose id 100 was hard-deleted, and whose highest id in use is 1."""
    log = MemoryLog()
    entries = history([lambda _: [stored(1, 1)], lambda _: [stored(2, 100)], lambda state: removed(state, 1)])
    log.append(START, [Record(entry.key, entry.value) for entry in entries])
    return log


def test_the_command_lowers_it_once_reuse_is_accepted(log):
    """`strata ids lower` says what would happen, does it with --accept-reuse, and then has nothing to do."""

    def run(*arguments):
        result = CliRunner().invoke(main, ["ids", *arguments])
        return result.exit_code, result.stdout, result.stderr

    with serving(lambda _: create_app(log, Settings(log="memory:"))) as port:
        url = f"http://127.0.0.1:{port}"
        assert (0, "context .: the highest id is 100, in use 1\n", "") == run("show", url)
        code, said, _ = run("lower", url, "--to", "7")
        assert (1, "ids 8 to 100 would be assigned again; records and clients may hold them\n") == (code, said)
        code, said, warned = run("lower", url, "--to", "7", "--accept-reuse")
        assert (0, "context .: the highest id is 7, in use 1\n") == (code, said)
        assert "ids 8 to 100 are assigned again" in warned
        assert 0 == run("lower", url, "--to", "7", "--accept-reuse")[0]
        code, _, refused = run("lower", url, "--to", "0", "--accept-reuse")

    assert (2, True) == (code, "in use by subject 's' version 1" in refused)
