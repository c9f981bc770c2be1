"""Pages of `/subjects` and `/schemas`: the same as pages of everything, filtered and sorted."""

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.registry.core import lookup
from strata.registry.core.subject_names import has_prefix
from strata.storage.log import Entry
from strata.storage.record_json import encode
from strata.storage.records import DeleteSubjectKey, SchemaKey, SchemaValue
from strata.storage.state import State

NAMES = ["a", "a1", "b", "a:b", "a:b:a", "0", ":a", ":.x", ":.c:", ":.c:a", ":.c:a1", ":.c-d:b", ":.d:a", "zz"]
PREFIXES = ["", "a", "0", ":", ":.", ":.c", ":.c:", ":.c:a", ":.d:", ":.e:", ":.:a", ":*:", ":*:a", ":*:b", "zz", "zzz"]
RECORDS = st.one_of(
    st.builds(
        lambda name, version, deleted: encode(
            SchemaKey(name, version), SchemaValue(name, version, version, f'"t{version}"', deleted=deleted)
        ),
        st.sampled_from(NAMES),
        st.integers(1, 4),
        st.booleans(),
    ),
    st.builds(lambda name, version: encode(SchemaKey(name, version)), st.sampled_from(NAMES), st.integers(1, 4)),
    st.builds(lambda name, version: encode(DeleteSubjectKey(name), version), st.sampled_from(NAMES), st.integers(1, 4)),
)
PAGES = st.tuples(st.integers(-1, 12), st.integers(1, 6))


def folded(batches):
    """Return the State after batches of records."""
    state, offset = State(), 0
    for batch in batches:
        state = state.apply_all(Entry(offset + i, 0, record.key, record.value) for i, record in enumerate(batch))
        offset += len(batch)
    return state


def under(state, prefix):
    """Return the subjects under a prefix, in order."""
    return sorted(name for name in state.subjects if has_prefix(name, prefix))


@settings(max_examples=examples(200, part=8), deadline=None)
@given(st.lists(st.lists(RECORDS, max_size=12), max_size=6), st.sampled_from(PREFIXES), PAGES, st.booleans())
def test_pages_of_lists(batches, prefix, place, flag):
    """Each page of each list, under any prefix, is that part of the list that sorting everything gives."""
    state, (offset, limit) = folded(batches), place
    names = under(state, prefix)
    listed = [name for name in names if state.versions(name, include_deleted=flag)]
    deleted = [name for name in names if not state.versions(name, include_deleted=False)]
    versions = [entry for name in listed for entry in state.versions(name, include_deleted=flag)]
    newest = [state.latest(name, include_deleted=flag) for name in listed]
    part = slice(max(offset, 0), max(offset, 0) + limit)

    def subjects(**how):
        return lookup.subjects(state, prefix, include_deleted=flag, **how)

    def schemas(*, latest_only):
        return lookup.schemas(state, prefix, include_deleted=flag, latest_only=latest_only, offset=offset, limit=limit)

    assert listed == subjects(deleted_only=False)
    assert listed[part] == subjects(deleted_only=False, offset=offset, limit=limit)
    assert deleted[part] == subjects(deleted_only=True, offset=offset, limit=limit)
    assert versions[part] == schemas(latest_only=False)
    assert newest[part] == schemas(latest_only=True)
