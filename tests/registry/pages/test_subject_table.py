"""The table of subjects follows the State: it holds what a table made from that State alone would hold."""

from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.registry.features.pages.subject_table import SORTS, SubjectTable
from strata.storage.record_json import encode
from strata.storage.records import SchemaKey, SchemaValue
from strata.storage.state import State

NAMES = [f"s{number:03}" for number in range(40)]
writes = st.lists(
    st.tuples(
        st.sampled_from(["register", "register", "register", "replace", "delete", "gone"]),
        st.sampled_from(NAMES),
        st.sampled_from(["AVRO", "JSON", "PROTOBUF"]),
    ),
    max_size=60,
)


def applied(state, number, write):
    """Return the State after a write: a new version, another text or the deletion of the first, or no first one."""
    kind, name, schema_type = write
    first = kind in ("replace", "delete", "gone")
    version = 1 if first else state.next_version(name)
    key = SchemaKey(name, version)
    value = SchemaValue(name, version, number + 1, f'"{number}"', schema_type, deleted=kind == "delete")
    return state.drafted([encode(key, None if kind == "gone" else value)], 1_000 + number)


@settings(max_examples=examples(100), deadline=None)
@given(writes)
def test_the_table_follows_the_state(given_writes):
    """After each write the rows and the orders are those of the State; filters may skip only blocks without a match."""
    table, state = SubjectTable(), State()
    for number, write in enumerate(given_writes):
        state = applied(state, number, write)
        if number % 3:  # a table that missed some States catches up
            continue
        blocks = list(table.blocks(state))
        rows = list(chain.from_iterable(block.rows for block in blocks))
        assert sorted(state.subjects) == [row.name for row in rows]
        for row in rows:
            entries = state.versions(row.name, include_deleted=True)
            live = [entry for entry in entries if not entry.deleted]
            latest = (live or entries)[-1]
            assert (latest.schema.schema_type, bool(live), len(entries)) == (row.schema_type, row.is_live, row.versions)
            assert entries[-1].timestamp == row.changed
        for block in blocks:
            assert {row.schema_type for row in block.rows} == block.schema_types
            assert all(row.folded in block.folded for row in block.rows)
        for order in SORTS:
            if order:
                assert list(SubjectTable().rows(state, order)) == list(table.rows(state, order))


def test_a_deleted_subject_leaves_the_table():
    """A subject that is gone is in no row."""
    state = applied(State(), 0, ("register", "a", "AVRO"))
    table = SubjectTable()
    assert 1 == len(list(table.blocks(state)))
    gone = state.drafted([encode(SchemaKey("a", 1))], 5)
    assert [] == list(table.blocks(gone))
    assert 1 == len(list(table.blocks(state)))
