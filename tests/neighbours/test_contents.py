"""What differs between two registries, and the records that make one hold what the other holds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.registry.features.standby.copying import Target, copy_step, mark_of
from strata.registry.features.standby.scope import Scope
from strata.registry.transfer.contents import changed_subjects, contents_of, differing, first_records, highest_held
from strata.storage.log import START, Entry, Record
from strata.storage.record_json import encode
from strata.storage.records import (
    AclKey,
    AclValue,
    AssociationKey,
    AssociationValue,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DekKey,
    DekValue,
    DeleteSubjectKey,
    HighWaterKey,
    KekKey,
    KekValue,
    LoweredKey,
    LoweredValue,
    ModeKey,
    NoopKey,
    Reference,
    SchemaKey,
    SchemaValue,
    StandbyKey,
    StandbyValue,
)
from strata.storage.sql.compaction import plan_compaction
from strata.storage.state import State

SUBJECTS = ("s", "t", ":.c:s", ":.c.d:u")
WHOLE = Scope()


def fold(records, state=None):
    """Return the State after some records."""
    state = state or State()
    return state.apply_all(Entry(state.offset + i, 0, r.key, r.value) for i, r in enumerate(records, 1))


def schema(subject, version, schema_id, text="", **more):
    """Return the record of a version."""
    return encode(
        SchemaKey(subject, version), SchemaValue(subject, version, schema_id, text or f'"{schema_id}"', **more)
    )


def gone(subject, version):
    """Return the tombstone of a version."""
    return encode(SchemaKey(subject, version))


KEK = encode(KekKey("k"), KekValue("aws-kms", "arn", {}, None, shared=False, deleted=False, created=1))
DEK = encode(DekKey("k", "s", "A", 1), DekValue("QQ==", deleted=False, created=1))
ACL = encode(AclKey("User:u", "*", "SUBJECT", "s", "LITERAL", "READ", "ALLOW"), AclValue(1))
LINK = encode(
    AssociationKey("n", "r", "topic", "value", "s"), AssociationValue("g", "i", "WEAK", frozen=False, created=1)
)
NUMBERS = st.integers(1, 4)
RECORDS = st.one_of(
    st.builds(schema, st.sampled_from(SUBJECTS), NUMBERS, NUMBERS, st.sampled_from(["", '"x"']), deleted=st.booleans()),
    st.builds(gone, st.sampled_from(SUBJECTS), NUMBERS),
    st.builds(lambda s, n: encode(DeleteSubjectKey(s), n), st.sampled_from(SUBJECTS), NUMBERS),
    st.builds(lambda c, n: encode(HighWaterKey(c), n), st.sampled_from([".", ".c"]), st.integers(1, 9)),
    st.builds(lambda c, n: encode(LoweredKey(c), LoweredValue(n, n)), st.sampled_from([".", ".c"]), NUMBERS),
    st.builds(
        lambda s, level: encode(ConfigKey(s), ConfigValue({"compatibilityLevel": level}) if level else None),
        st.sampled_from([None, "s", ":.c:"]),
        st.sampled_from(["FULL", "NONE", ""]),
    ),
    st.builds(
        lambda s, mode: encode(ModeKey(s), mode),
        st.sampled_from([None, "s", ":.c:"]),
        st.sampled_from(["IMPORT", "READONLY", None]),
    ),
    st.sampled_from(
        [encode(ContextKey(".c"), ".c"), encode(ContextKey(".c")), encode(NoopKey())]
        + [each for one in (KEK, DEK, ACL, LINK) for each in (one, Record(one.key, None))]
    ),
)
HISTORIES = st.lists(RECORDS, max_size=25)


def but_for_marks(state):
    """Return what a State holds, without marks of highest ids."""
    return {key: value for key, value in contents_of(state).items() if not isinstance(key, HighWaterKey)}


@settings(max_examples=examples(200))
@given(HISTORIES, HISTORIES)
def test_what_differs_makes_both_equal(own, other):
    """After the records that differ, a registry holds what the other one holds, at once and after compaction."""
    mine, theirs = fold(own), fold(other)

    after = fold(differing(mine, contents_of(theirs), WHOLE.covers), mine)

    assert but_for_marks(theirs) == but_for_marks(after)
    assert [] == differing(after, contents_of(theirs), WHOLE.covers)
    assert 0 == after.set_aside_count - mine.set_aside_count


@settings(max_examples=examples(200))
@given(HISTORIES, HISTORIES)
def test_a_comparison_of_what_has_changed_is_enough(earlier, later):
    """A copy of an earlier moment becomes one of a later moment by comparing the changed subjects alone."""
    before = fold(earlier)
    after, mine = fold(later, before), fold(differing(State(), contents_of(before), WHOLE.covers))
    subjects = changed_subjects(before, after)

    records = differing(mine, contents_of(after, subjects), WHOLE.covers, shown=highest_held(after), subjects=subjects)

    assert records == differing(mine, contents_of(after), WHOLE.covers)
    assert but_for_marks(after) == but_for_marks(fold(records, mine))


NOT_LOWERED = st.lists(RECORDS.filter(lambda record: b"LOWERED" not in record.key), max_size=25)


@settings(max_examples=examples(200))
@given(NOT_LOWERED, NOT_LOWERED)
def test_no_id_of_either_side_is_given_again(own, other):
    """Unless an administrator lowered it, the next id is above all ids of both sides, also in compacted records."""
    mine, theirs = fold(own), fold(other)
    records = [*own, *differing(mine, contents_of(theirs), WHOLE.covers), encode(NoopKey())]
    entries = [Entry(at, 0, r.key, r.value) for at, r in enumerate(records)]
    dropped = set(plan_compaction(lambda: entries).dropped)

    for after in (fold(records), State().apply_all(e for e in entries if e.offset not in dropped)):
        for name in {*mine.contexts, *theirs.contexts}:
            assert after.next_id(name) > max(mine.context(name).high_water, theirs.context(name).high_water)


@settings(max_examples=examples(200))
@given(HISTORIES)
def test_a_copy_below_a_context_leaves_the_rest_alone(other):
    """What was there outside the context stays; what the source holds is there under longer names."""
    mine, scope = fold([schema("s", 1, 1), schema(":.hub:old", 1, 1), KEK]), Scope(into=".hub")

    after = fold(differing(mine, scope.wanted(fold(other)), scope.covers), mine)

    held = contents_of(after)
    assert SchemaKey("s", 1) in held
    assert SchemaKey(":.hub:old", 1) not in held
    assert [] == differing(after, scope.wanted(fold(other)), scope.covers)


def test_names_below_a_context():
    """Subjects, references, aliases and settings get names below the context; what is set for all is set for each."""
    references = (Reference("a", "t", 1), Reference("b", ":.c:s", 1), Reference("d", ":.:t", 1))
    source = fold(
        [
            schema("t", 1, 1),
            schema(":.c:s", 1, 1),
            schema("u", 1, 2, references=references),
            encode(ConfigKey("old"), ConfigValue({"alias": "t"})),
            encode(ModeKey(None), "READONLY"),
            encode(ConfigKey(":.__GLOBAL:"), ConfigValue({"compatibilityLevel": "FULL"})),
            ACL,
        ]
    )

    found = Scope(into=".hub").wanted(source)

    assert ["t", ":.hub.c:s", ":.hub:t"] == [one.subject for one in found[SchemaKey(":.hub:u", 1)].references]
    assert {"alias": ":.hub:t"} == dict(found[ConfigKey(":.hub:old")].fields)
    assert "READONLY" == found[ModeKey(":.hub:")]
    assert {":.hub:old", ":.hub:", ":.hub.c:"} == {key.subject for key in found if isinstance(key, ConfigKey)}
    assert not [key for key in found if isinstance(key, AclKey)]


# what is chosen, the subjects that are copied
CHOICES = [
    pytest.param(Scope(subjects=("s",)), {"s"}, id="a subject"),
    pytest.param(Scope(subjects=("u",)), {"u", "t"}, id="a subject with what it refers to"),
    pytest.param(Scope(subjects=("s", "t*")), {"s", "t"}, id="subjects and a prefix"),
    pytest.param(Scope(contexts=(".c",)), {":.c:s"}, id="a context"),
    pytest.param(Scope(subjects=("s",), contexts=(".c",)), {"s", ":.c:s"}, id="both"),
    pytest.param(Scope(subjects=("s",), into=".h"), {":.h:s"}, id="a subject into a context"),
]


@pytest.mark.parametrize(("scope", "subjects"), CHOICES)
def test_a_choice_of_subjects(scope, subjects):
    """A part holds the chosen subjects, those that they refer to, and what is set for all."""
    source = fold(
        [
            schema("s", 1, 1), schema("t", 1, 1), schema("u", 1, 2, references=(Reference("t", "t", 1),)),
            schema(":.c:s", 1, 1), encode(ModeKey(None), "READONLY"), encode(ConfigKey("t"), ConfigValue({})), ACL,
        ]
    )  # fmt: skip

    found = scope.wanted(source)

    assert subjects == {key.subject for key in found if isinstance(key, SchemaKey)}
    assert 1 == sum(isinstance(key, ModeKey) for key in found)
    assert not [key for key in found if isinstance(key, AclKey)]


def test_marks_of_copies_are_no_content():
    """A standby can be followed and exported: what it copies from is not part of what it holds."""
    assert {} == contents_of(fold([encode(StandbyKey("."), StandbyValue("http://a"))]))


NOW, LATER = 1_000, 3_600_000  # the second one is the clock of another node, or of this one before it was set right
MARKS = [
    # the mark before the reading, the mark now, what the step is
    pytest.param(LATER, LATER, False, id="nothing was copied meanwhile, and the last copy is from the future"),
    pytest.param(NOW - 1, NOW - 1, False, id="nothing was copied meanwhile"),
    pytest.param(NOW - 2, NOW - 1, True, id="another node copied meanwhile"),
    pytest.param(NOW - 2, LATER, True, id="another node copied meanwhile, whose clock is ahead"),
]


@pytest.mark.parametrize(("before", "now", "is_late"), MARKS)
def test_which_reading_is_later_does_not_depend_on_clocks(before, now, is_late):
    """A reading of a service is later than a copy that was complete when it began, and yields to one made meanwhile."""
    scope = Scope()
    marks = {at: mark_of("http://a", scope, START, at) for at in (before, now)}
    state = fold([encode(StandbyKey("."), marks[now])])
    target = Target("http://a", scope, scope.wanted(fold([schema("s", 1, 1)])), START, NOW)

    decision = copy_step(state, target, marks[before])

    assert is_late == decision.answer.is_late
    assert is_late == (not decision.records)


# sizes of records, the most records and bytes, how many come first
APPENDS = [([1, 1, 1], 2, 99, 2), ([5, 5, 5], 9, 10, 2), ([50, 1], 9, 10, 1), ([], 9, 10, 0), ([1], 9, 10, 1)]


@pytest.mark.parametrize(("sizes", "most", "most_bytes", "count"), APPENDS)
def test_an_append_takes_no_more_than_it_may(sizes, most, most_bytes, count):
    """An append takes a number of records or of bytes, but at least one record."""
    records = [Record(b"", b"x" * size) for size in sizes]

    assert records[:count] == first_records(records, most, most_bytes)
