"""State as the fold of a log: the effect of each kind of record, and which records are set aside."""

from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.storage.log import Entry, Record
from strata.storage.record_json import encode
from strata.storage.records import (
    AclKey,
    AclValue,
    AssociationKey,
    AssociationValue,
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DekKey,
    DekValue,
    DeleteSubjectKey,
    ExporterKey,
    ExporterValue,
    ExportKey,
    ExportValue,
    HighWaterKey,
    KekKey,
    KekValue,
    ModeKey,
    NoopKey,
    SchemaKey,
    SchemaValue,
    StandbyKey,
    StandbyValue,
)
from strata.storage.state import State
from strata.storage.stored import GLUE_VERSION


def schema(subject, version, schema_id, text='"int"', **other):
    """Return a record that holds one version."""
    return encode(SchemaKey(subject, version), SchemaValue(subject, version, schema_id, text, **other))


def gone(subject, version):
    """Return the tombstone of one version."""
    return encode(SchemaKey(subject, version))


def fold(*records):
    """Return the State after some records."""
    return State().apply_all(Entry(i, 1000 + i, r.key, r.value) for i, r in enumerate(records))


def live(state, subject):
    """Return the live versions of a subject, as numbers."""
    return [entry.version for entry in state.versions(subject, include_deleted=False)]


def held(state, subject):
    """Return the versions of a subject, soft-deleted ones included, as numbers."""
    return [entry.version for entry in state.versions(subject, include_deleted=True)]


def test_empty_log_is_the_empty_state():
    """An empty fold has no subject, the default context, first id 1, and first version 1."""
    state = fold()

    assert (-1, {"."}, 0, 1) == (
        state.offset,
        set(state.contexts),
        state.context(".").high_water,
        state.next_version("s"),
    )


def test_schema_record_adds_a_version():
    """A schema record adds its version, its id and its identity."""
    state = fold(schema("s", 1, 5))
    entry = state.version("s", 1)

    assert ("s", 1, 5, '"int"', 1000, False) == (
        entry.subject, entry.version, entry.schema.schema_id, entry.schema.text, entry.timestamp, entry.deleted,
    )  # fmt: skip
    assert entry.schema == state.schema(".", 5).schema
    assert 5 == state.id_of(".", "AVRO", entry.schema.fingerprint)


def test_one_id_serves_several_subjects():
    """The versions that use an id are listed in the order of their records."""
    state = fold(schema("a", 1, 1), schema("b", 1, 1), schema("a", 2, 2, '"long"'))

    assert (("a", 1), ("b", 1)) == state.schema(".", 1).used_by
    assert 2 == state.context(".").high_water


def test_same_text_in_two_formats_has_two_ids():
    """The type is part of the index of identities, though not of the fingerprint."""
    state = fold(schema("a", 1, 1, "{}", schema_type="JSON"), schema("b", 1, 2, "{}"))
    digest = state.version("a", 1).schema.fingerprint

    assert (1, 2) == (state.id_of(".", "JSON", digest), state.id_of(".", "AVRO", digest))


@pytest.mark.parametrize("order", [(7, 3, 5), (3, 5, 7), (5, 7, 3)])
def test_the_lowest_of_several_ids_counts(order):
    """A content with several ids, from imports, is found by the lowest, until no version uses that."""
    records = [schema(f"s{number}", 1, number) for number in order]
    states = [fold(*records, *(gone(f"s{number}", 1) for number in left)) for left in ((), (3,), (3, 7), (3, 5, 7))]
    digest = states[0].version("s3", 1).schema.fingerprint

    assert [3, 5, 5, None] == [state.id_of(".", "AVRO", digest) for state in states]
    assert [3, 2, 0, 0] == [len(state.context(".").shared.get(("AVRO", digest), ())) for state in states]


def test_ids_are_per_context():
    """One number names different schemas in two contexts."""
    state = fold(schema("s", 1, 1), schema(":.c:s", 1, 1, '"long"'))

    assert ('"int"', '"long"') == (state.schema(".", 1).schema.text, state.schema(".c", 1).schema.text)


def test_soft_deleted_version_keeps_its_id_resolvable():
    """A version whose record has `deleted` is hidden, but its schema is still found by id."""
    state = fold(schema("s", 1, 1), schema("s", 1, 1, deleted=True))

    assert ([], [1]) == (live(state, "s"), held(state, "s"))
    assert '"int"' == state.schema(".", 1).schema.text


def test_soft_delete_of_a_subject_marks_the_versions_it_names():
    """DELETE_SUBJECT marks every version up to its own; later ones stay live."""
    state = fold(
        schema("s", 1, 1), schema("s", 2, 2, '"long"'), encode(DeleteSubjectKey("s"), 2), schema("s", 3, 3, '"float"')
    )

    assert ([3], [1, 2, 3], 4) == (live(state, "s"), held(state, "s"), state.next_version("s"))


def test_tombstone_takes_a_version_and_an_unused_id():
    """A hard-deleted version is gone, and its id too if no other version uses it."""
    state = fold(schema("a", 1, 1), schema("b", 1, 1), schema("b", 2, 2, '"long"'), gone("b", 1), gone("b", 2))

    assert ([1], []) == (held(state, "a"), held(state, "b"))
    assert (("a", 1),) == state.schema(".", 1).used_by
    assert state.schema(".", 2) is None


def from_glue(subject, version, schema_id, uuid):
    """Return a record of a version that had a UUID in AWS Glue; None: it had none."""
    metadata = {"properties": {GLUE_VERSION: uuid}} if uuid else {"properties": {"owner": "me"}}
    return schema(subject, version, schema_id, metadata=metadata)


OF_GLUE = st.one_of(
    st.builds(
        from_glue, st.sampled_from("ab"), st.integers(1, 3), st.integers(1, 4), st.sampled_from(["u", "v", 1, None])
    ),
    st.builds(gone, st.sampled_from("ab"), st.integers(1, 3)),
    st.just(encode(DeleteSubjectKey("a"), 3)),
    st.just(encode(ClearSubjectKey("a"))),
)


@settings(max_examples=examples(200))
@given(st.lists(st.lists(OF_GLUE, max_size=5), max_size=5))
def test_versions_of_glue_are_found_by_their_uuid(batches):
    """After any records the index has what a look at all versions finds, soft-deleted ones included."""
    state = State()
    for batch in batches:
        state = state.apply_all(Entry(state.offset + 1 + i, 0, r.key, r.value) for i, r in enumerate(batch))
        wanted = {}
        for entry in (entry for versions in state.subjects.values() for entry in versions.values()):
            uuid = entry.schema.value.metadata["properties"].get(GLUE_VERSION)
            if isinstance(uuid, str):
                wanted.setdefault(uuid, set()).add((entry.subject, entry.version))
        assert wanted == {uuid: set(places) for uuid, places in state.of_glue.items()}


def test_high_water_survives_the_highest_schema():
    """The high-water record keeps the highest id after its schema is gone."""
    mark = encode(HighWaterKey("."), 7)

    assert 7 == fold(schema("s", 1, 7), mark, gone("s", 1)).context(".").high_water
    assert 7 == fold(mark).context(".").high_water


def test_settings_are_set_and_taken():
    """Configurations and modes apply until their tombstone."""
    full = ConfigValue(MappingProxyType({"compatibilityLevel": "FULL"}))
    state = fold(encode(ConfigKey("s"), full), encode(ConfigKey(None), full), encode(ModeKey("s"), "READONLY"))
    after = state.apply_all(
        Entry(9 + i, 0, r.key, r.value) for i, r in enumerate([encode(ConfigKey("s")), encode(ModeKey("s"))])
    )

    assert ("FULL", "FULL", "READONLY") == (
        state.configs["s"].get("compatibilityLevel"), state.configs[None].get("compatibilityLevel"), state.modes["s"],
    )  # fmt: skip
    assert ({None}, set()) == (set(after.configs), set(after.modes))


def test_purge_takes_what_is_soft_deleted():
    """CLEAR_SUBJECT removes soft-deleted versions and keeps live ones."""
    state = fold(
        schema("s", 1, 1), encode(DeleteSubjectKey("s"), 1), schema("s", 2, 2, '"long"'), encode(ClearSubjectKey("s"))
    )

    assert [2] == held(state, "s")


def test_contexts_and_noops():
    """A context record alone creates a context; a NOOP changes only the offset."""
    state = fold(encode(ContextKey(".c"), ".c"), encode(NoopKey()))

    assert ({".", ".c"}, 1) == (set(state.contexts), state.offset)


def test_deleted_context_is_gone_but_not_its_highest_id():
    """The tombstone removes a context from the list; the record of its highest id stays, and restores no context."""
    made = [encode(ContextKey(".c"), ".c"), schema(":.c:s", 1, 1), encode(HighWaterKey(".c"), 1), gone(":.c:s", 1)]
    state = fold(*made, encode(ContextKey(".c")))

    assert [".", ".c"] == fold(*made).context_names()
    assert (
        [
            ".",
        ],
        1,
    ) == (state.context_names(), state.context(".c").high_water)
    assert ["."] == fold(encode(HighWaterKey(".c"), 1)).context_names()
    assert {"."} == set(fold(encode(ContextKey(".c"), ".c"), encode(ContextKey(".c"))).contexts)
    assert [".", ".c"] == fold(schema(":.c:s", 1, 1)).context_names()


def association(name="t", subject="s", kind="value", resource_id="id", **other):
    """Return a record that associates a topic with a subject."""
    value = AssociationValue("g", resource_id, other.get("lifecycle", "WEAK"), frozen=False, created=1)
    return encode(AssociationKey(other.get("namespace", "ns"), name, "topic", kind, subject), value)


def test_associations_are_found_from_every_side():
    """Associations are found by subject, by name in one or any namespace, by resource id; the newest record counts."""
    other = AssociationKey("ns", "t", "topic", "key", "k")
    state = fold(association(), association(lifecycle="STRONG"), association(namespace="b"), encode(other),
                 association("u", "s", resource_id="u")).associations  # fmt: skip

    assert ["b", "ns", "ns"] == [found.key.resource_namespace for found in state.of_subject("s")]
    assert ["b", "ns"] == [found.key.resource_namespace for found in state.of_name("t", None)]
    assert [("STRONG", 1, 1001)] == [
        (found.value.lifecycle, found.value.created, found.updated) for found in state.of_name("t", "ns")
    ]
    assert ["u"] == [found.key.resource_name for found in state.of_resource_id("u")]


def test_tombstone_takes_an_association_out_of_every_index():
    """A tombstone removes the association from every index."""
    record = association()

    assert fold().associations == fold(record, Record(record.key, None)).associations


def kek(name="k", **other):
    """Return a record that holds a key encryption key."""
    value = KekValue("aws-kms", "arn", {}, None, shared=False, deleted=other.get("deleted", False), created=1)
    return encode(KekKey(name), value)


def dek(version=1, subject="s", kek="k", algorithm="AES256_GCM", **other):
    """Return a record that holds a version of a data encryption key."""
    value = DekValue(other.get("material", "QQ=="), deleted=other.get("deleted", False), created=2)
    return encode(DekKey(kek, subject, algorithm, version), value)


def test_encryption_keys_are_found_by_name_and_subject():
    """Versions are sorted per algorithm, soft-deleted ones on request; the newest record counts."""
    series = [dek(2), dek(10), dek(1, deleted=True), dek(10, material="Qg==")]
    others = [dek(1, algorithm="AES256_SIV"), dek(1, "t", deleted=True), dek(1, "u", kek="none")]
    keys = fold(kek(), kek("gone", deleted=True), *series, *others).encryption_keys
    found = keys.versions("k", "s", "AES256_GCM", include_deleted=True)

    assert [(1, "QQ==", True), (2, "QQ==", False), (10, "Qg==", False)] == [
        (key.version, value.material, value.deleted) for key, value in found
    ]
    assert [2, 10] == [key.version for key, _ in keys.versions("k", "s", "AES256_GCM", include_deleted=False)]
    assert ["s", "s"] == list(keys.subjects("k", include_deleted=False))
    assert ["s", "s", "t"] == sorted(keys.subjects("k", include_deleted=True))
    assert (True, True) == (
        keys.kek("gone", include_deleted=False) is None,
        keys.kek("gone", include_deleted=True).deleted,
    )
    assert 6 == keys.dek_count


def test_tombstones_take_encryption_keys_away():
    """Tombstones remove the keys; a tombstone of an unknown key changes nothing."""
    records = [kek(), dek(), dek(2)]

    assert (
        fold().encryption_keys == fold(*records, *(Record(r.key, None) for r in [*records, *records])).encryption_keys
    )


def test_rules_of_access_come_and_go():
    """A rule is in the State until its tombstone; a tombstone of an unknown rule changes nothing."""
    keys = [AclKey("User:u", "*", "SUBJECT", name, "LITERAL", "READ", "ALLOW") for name in ("a", "b")]
    records = [encode(key, AclValue(1)) for key in keys]

    assert set(keys) == set(fold(*records).acls)
    assert keys[1:] == list(fold(*records, encode(keys[0]), encode(keys[0])).acls)


def test_the_mark_of_a_copy_comes_and_goes():
    """The State says which parts copy another registry, as the newest record of each says."""
    first, second = StandbyValue("http://a"), StandbyValue("http://a", copied_at=7)
    marks = [encode(StandbyKey(scope), first) for scope in (".", ".b")]

    assert {".": second, ".b": first} == dict(fold(*marks, encode(StandbyKey("."), second)).standbys)
    assert {".": first} == dict(fold(*marks, encode(StandbyKey(".b"))).standbys)


def test_exporters_and_their_progress():
    """The newest record of an exporter, and of its progress, counts; a tombstone takes it away."""
    exporter, progress = ExporterValue(("*",), "NONE", config={"a": "b"}), ExportValue("RUNNING", 7)
    records = [encode(ExporterKey("e"), exporter), encode(ExportKey("e"), progress), encode(ExporterKey("f"), exporter)]
    state = fold(*records, encode(ExporterKey("f")))

    assert ({"e": exporter}, {"e": progress}) == (dict(state.exporters), dict(state.exports))
    assert not fold(*records, encode(ExportKey("e"))).exports


@pytest.mark.parametrize("wrong", ['"subjects":[1]', '"config":{"a":1}', '"subjects":"a"'])
def test_an_exporter_of_other_things_than_texts_is_set_aside(wrong):
    """Patterns and configuration are texts."""
    key = encode(ExporterKey("e")).key
    state = fold(Record(key, f'{{"name":"e","contextType":"NONE",{wrong}}}'.encode()))

    assert (0, 1) == (len(state.exporters), state.set_aside_count)


def test_key_that_is_written_anew_loses_no_other_spelling():
    """A tombstone removes the other spellings of its key, unless the same append sets the key again."""
    odd = b'{"keytype":"MODE","magic":0,"subject":"s"}'
    state = fold(Record(odd, b'{"mode":"READONLY"}'))
    gone, again = encode(ModeKey("s")), encode(ModeKey("s"), "IMPORT")

    assert [Record(odd, None)] == state.tombstones_besides([gone])
    assert [] == state.tombstones_besides([gone, again])
    assert [Record(odd, None)] == state.tombstones_besides([again, gone])


def test_noop_of_an_unknown_kind_is_passed_over():
    """A NOOP with an unknown kind, from a later release, is not set aside, and its key is not remembered."""
    state = fold(Record(b'{"keytype":"NOOP","kind":"LATER","magic":0}', b"{}"))

    assert (0, 0, 0, 0) == (
        state.offset,
        state.set_aside_count,
        state.encryption_keys.dek_count,
        len(state.odd_keys),
    )


def test_entries_already_seen_change_nothing():
    """Applying an entry at or before the State's offset returns the same State."""
    state = fold(schema("s", 1, 1))
    record = gone("s", 1)

    assert state is state.apply(Entry(0, 0, record.key, record.value))


SET_ASIDE = [
    ("an unknown key", Entry(1, 0, b'{"keytype":"TEAPOT"}', None), "TEAPOT"),
    ("no key", Entry(1, 0, None, b"{}"), "no key"),
    ("an id bound to another text", Entry(1, 0, *(lambda r: (r.key, r.value))(schema("t", 1, 1, '"long"'))), "id 1"),
    (
        "metadata without a fingerprint",
        Entry(1, 0, *(lambda r: (r.key, r.value))(schema("t", 1, 2, metadata={"tags": {"t": 5}}))),
        "fingerprint of the schema",
    ),
    ("a KEK of no KMS", Entry(1, 0, b'{"keytype":"NOOP","kind":"KEK","name":"k"}', b'{"kmsKeyId":"a"}'), "kmsType"),
    (
        "a KEK whose properties are not texts",
        Entry(
            1, 0, b'{"keytype":"NOOP","kind":"KEK","name":"k"}', b'{"kmsType":"a","kmsKeyId":"a","kmsProps":{"p":1}}'
        ),
        "kmsProps",
    ),
    (
        "a DEK of version 0",
        Entry(
            1,
            0,
            b'{"keytype":"NOOP","kind":"DEK","kekName":"k","subject":"s","algorithm":"A","version":0}',
            b"{}",
        ),
        "out of range",
    ),
]


@pytest.mark.parametrize(("entry", "reason"), [row[1:] for row in SET_ASIDE], ids=[row[0] for row in SET_ASIDE])
def test_unreadable_record_is_set_aside(entry, reason):
    """A record that cannot be read is listed with its offset and reason, and the fold continues."""
    state = fold(schema("s", 1, 1)).apply(entry)

    assert (1, 1, 1) == (state.set_aside_count, state.set_aside[0].offset, state.offset)
    assert reason in state.set_aside[0].reason
    assert [1] == live(state, "s")


def test_list_of_what_is_set_aside_is_bounded():
    """The State keeps the newest thousand unreadable records and counts all."""
    state = State().apply_all(Entry(i, 0, b"junk", None) for i in range(1500))

    assert (1500, 1000, 500) == (state.set_aside_count, len(state.set_aside), state.set_aside[0].offset)


# name, the records after versions 1 and 2 of `s`, whether they remove something
TAKEN_BACK = [
    ("another version", [schema("s", 3, 3, '"float"')], False),
    ("another subject", [schema("t", 1, 3, '"float"')], False),
    ("a mode", [encode(ModeKey("s"), "READONLY")], False),
    ("a soft deletion", [encode(DeleteSubjectKey("s"), 1)], True),
    ("a hard deletion", [gone("s", 1)], True),
    ("a version overwritten", [schema("s", 1, 3, '"float"')], True),
    ("an id under a later version of its subject", [schema("s", 3, 1)], True),
]


@pytest.mark.parametrize(("records", "expected"), [row[1:] for row in TAKEN_BACK], ids=[row[0] for row in TAKEN_BACK])
def test_removals_change_when_something_is_taken_back(records, expected):
    """Adding versions keeps `removals`; marking, overwriting and deleting change it."""
    before = fold(schema("s", 1, 1), schema("s", 2, 2, '"long"'))
    assert expected == (before.drafted(records, 0).removals != before.removals)


def test_removals_of_two_lineages_never_tie():
    """Two folds that each remove something, and two replays that remove nothing, have different `removals`."""
    before = fold(schema("s", 1, 1), schema("s", 2, 2, '"long"'))
    one = before.drafted([encode(DeleteSubjectKey("s"), 1)], 0)
    two = before.drafted([encode(DeleteSubjectKey("s"), 2)], 0)
    replays = [fold(schema("s", 1, 1)), fold(schema("s", 1, 1))]

    assert 5 == len({state.removals for state in (before, one, two, *replays)})
