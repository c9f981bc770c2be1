"""Logs as releases of Confluent's registry and of Karapace wrote them, one story in the form of each generation.

The forms are those of the registries' sources and of their topics: the order of a key's properties, which of them a
value has, and how each deletes. `tests/kafka/test_adoption.py` serves such records from a real topic.
"""

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.storage.log import Entry, Record
from strata.storage.record_json import encode
from strata.storage.records import ConfigKey, DeleteSubjectKey, ModeKey, SchemaKey
from strata.storage.state import State

USER = '{"type":"record","name":"User","fields":[{"name":"id","type":"long"}]}'
RESPELLED = '{"fields": [{"name": "id", "type": "long"}], "name": "User", "type": "record"}'


class Form(NamedTuple):
    """How a generation writes: the properties of keys and values in order, separators, and deletions."""

    schema_key: tuple[str, ...] = ("keytype", "subject", "version", "magic")
    setting_key: tuple[str, ...] = ("keytype", "subject", "magic")
    value: tuple[str, ...] = ("subject", "version", "id", "schema", "deleted")
    magic: int = 1
    separators: tuple[str, str] = (",", ":")
    global_subject: bool = False  # whether the key of the global level has "subject":null
    tombstone: bytes | None = None
    level: tuple[str, ...] = ("compatibilityLevel",)
    second_text: str = USER

    def json(self, names: tuple[str, ...], content: dict[str, Any]) -> bytes:
        """Return the named properties that the content has, as this generation writes them."""
        found = {name: content[name] for name in names if name in content}
        return json.dumps(found, separators=self.separators, ensure_ascii=False).encode()

    def schema(self, subject: str, version: int, schema_id: int, text: str, **more: Any) -> Record:
        """Return the record of a version."""
        content = {"subject": subject, "version": version, "id": schema_id, "schema": text, "deleted": False, **more}
        return Record(self.key_of(subject, version), self.json(self.value, {"md5": "bWQ1", **content}))

    def key_of(self, subject: str, version: int) -> bytes:
        """Return the key of a version."""
        content = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": self.magic}
        return self.json(self.schema_key, content)

    def setting(self, keytype: str, subject: str | None, **value: Any) -> Record:
        """Return the record of a level, mode or deletion; without a value its tombstone."""
        named = {} if subject is None and not self.global_subject else {"subject": subject}
        key = self.json(self.setting_key, {"keytype": keytype, "magic": 0, **named})
        content = {**value, **({"subject": subject} if subject else {})}
        names = self.level if keytype == "CONFIG" else ("subject", *value)
        return Record(key, self.json(names, content) if value else self.tombstone)


KARAPACE_KEY = ("subject", "version", "magic", "keytype")
KARAPACE_VALUE = ("subject", "version", "id", "schema", "deleted", "references", "schemaType")
FORMS = {
    "Confluent 1 to 3.2": Form(
        ("magic", "keytype", "subject", "version"), ("magic", "keytype", "subject"),
        ("subject", "version", "id", "schema"), magic=0, global_subject=True),
    "Confluent 3.3 to 5.4": Form(),
    "Confluent 5.5 to 6.2": Form(value=("subject", "version", "id", "schemaType", "references", "schema", "deleted")),
    "Confluent 7": Form(
        value=("subject", "version", "id", "md5", "schemaType", "references", "metadata", "ruleSet", "schema",
               "deleted"),
        level=("subject", "compatibilityLevel")),
    "Karapace 1": Form(
        KARAPACE_KEY, ("subject", "magic", "keytype"), KARAPACE_VALUE, global_subject=True, tombstone=b""),
    "Karapace 2": Form(
        KARAPACE_KEY, ("subject", "magic", "keytype"), KARAPACE_VALUE, separators=(", ", ": "), global_subject=True,
        tombstone=b"", second_text=RESPELLED),
    "Karapace 3 to 6": Form(value=KARAPACE_VALUE, global_subject=True, tombstone=b"", second_text=RESPELLED),
    "Karapace, restored from a backup": Form(value=KARAPACE_VALUE, global_subject=True, tombstone=b"null"),
    "Strata": Form(level=("subject", "compatibilityLevel")),
}  # fmt: skip
HAS_DELETIONS = [name for name in FORMS if name != "Confluent 1 to 3.2"]


def fold(records):
    """Return the State after some records."""
    return State().apply_all(Entry(i, 1000 + i, r.key, r.value) for i, r in enumerate(records))


def shown(state):
    """Return the versions that each subject lists: all, and those that live."""
    return {
        subject: tuple(
            [entry.version for entry in state.versions(subject, include_deleted=deleted)] for deleted in (True, False)
        )
        for subject in sorted(state.subject_names())
    }


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_registrations_and_levels(form):
    """Versions, ids that several subjects share, and levels are those of the registry that wrote them."""
    state = fold(
        [
            form.setting("CONFIG", None, compatibilityLevel="FORWARD"),
            form.schema("orders-value", 1, 1, USER),
            form.schema("größe/“a”", 1, 1, form.second_text),
            form.schema("orders-value", 2, 2, '"string"'),
            form.setting("CONFIG", "orders-value", compatibilityLevel="FULL_TRANSITIVE"),
        ]
    )

    assert {"größe/“a”": ([1], [1]), "orders-value": ([1, 2], [1, 2])} == shown(state)
    assert {1: USER, 2: '"string"'} == {number: state.schema(".", number).schema.text for number in (1, 2)}
    assert [form.second_text] == [entry.schema.text for entry in state.versions("größe/“a”", include_deleted=False)]
    assert {None: "FORWARD", "orders-value": "FULL_TRANSITIVE"} == {
        subject: value.get("compatibilityLevel") for subject, value in state.configs.items()
    }
    assert (0, 3) == (state.set_aside_count, state.next_id("."))


@pytest.mark.parametrize("name", HAS_DELETIONS)
def test_deletions(name):
    """Soft and hard deletions of versions, subjects and levels are applied, in every form."""
    form = FORMS[name]
    state = fold(
        [
            form.schema("a", 1, 1, USER),
            form.schema("a", 2, 2, '"int"'),
            form.schema("b", 1, 1, form.second_text),
            form.schema("c", 1, 3, '"long"'),
            form.schema("d", 1, 4, '"bytes"'),
            form.setting("CONFIG", "b", compatibilityLevel="NONE"),
            form.schema("b", 1, 1, USER, deleted=True),  # with the text of today, whatever the first one was
            form.schema("a", 1, 1, form.second_text, deleted=True),
            form.setting("DELETE_SUBJECT", "c", version=1),
            form.schema("d", 1, 4, '"bytes"', deleted=True),
            Record(form.key_of("d", 1), form.tombstone),
            form.setting("CONFIG", "b"),
        ]
    )

    assert {"a": ([1, 2], [2]), "b": ([1], []), "c": ([1], [])} == shown(state)
    assert (0, {}, None) == (state.set_aside_count, dict(state.configs), state.schema(".", 4))


@pytest.mark.parametrize("name", HAS_DELETIONS)
def test_what_strata_deletes_stays_deleted(name):
    """A hard deletion by Strata also removes the keys that the other registry spelled in its own way."""
    form = FORMS[name]
    left = [
        form.schema("a", 1, 1, USER),
        form.setting("CONFIG", "a", compatibilityLevel="NONE"),
        form.setting("CONFIG", None, compatibilityLevel="FULL"),
        form.setting("DELETE_SUBJECT", "a", version=1),
    ]
    state = fold(left)
    gone = [encode(SchemaKey("a", 1)), encode(ConfigKey("a")), encode(ConfigKey(None)), encode(DeleteSubjectKey("a"))]

    written = {record.key for record in [*gone, *state.tombstones_besides(gone)]}

    assert {record.key for record in left} <= written


def test_references_types_and_modes_of_release_5_5():
    """Release 5.5 brought types, references and modes."""
    form = FORMS["Confluent 5.5 to 6.2"]
    reference = {"name": "other.proto", "subject": "other.proto", "version": 1}
    state = fold(
        [
            form.schema("other.proto", 1, 1, 'syntax = "proto3";\n', schemaType="PROTOBUF"),
            form.schema("p-value", 1, 2, 'import "other.proto";', schemaType="PROTOBUF", references=[reference]),
            form.schema("j-value", 1, 3, "{}", schemaType="JSON"),
            form.setting("MODE", "j-value", mode="READONLY"),
            form.setting("MODE", None, mode="IMPORT"),
            form.setting("NOOP", None),
        ]
    )

    assert ["PROTOBUF", "JSON"] == [state.schema(".", number).schema.schema_type for number in (2, 3)]
    assert ["p-value"] == [entry.subject for entry in state.referred_by("other.proto", 1)]
    assert {"j-value": "READONLY", None: "IMPORT"} == dict(state.modes)
    assert 0 == state.set_aside_count


SPELLINGS = ('{"a":1,"b":[1.0,true]}', '{"b": [1.0, true], "a": 1}', ' {"a":1,"b":[1.0,true]}')
PAIRS = [("s", 1), ("s", 2), ("t", 1), ("u", 1)]
HISTORIES = st.lists(
    st.tuples(st.sampled_from(PAIRS), st.integers(1, 2), st.sampled_from([*SPELLINGS, None]), st.booleans()),
    max_size=20,
)


@settings(max_examples=examples(200))
@given(HISTORIES)
def test_spellings_of_one_id(history):
    """An id with texts that are equal as JSON names the oldest record's, also after each compaction and one by one."""
    form = FORMS["Karapace 2"]
    texts = [
        form.schema(*pair, schema_id, text.replace("1.0", f"{schema_id}.0"), deleted=deleted)
        if text
        else Record(form.key_of(*pair), form.tombstone)
        for pair, schema_id, text, deleted in history
    ]
    state = fold(texts)

    assert 0 == state.set_aside_count
    assert state == fold_one_by_one(texts)
    entries = [entry for subject in state.subject_names() for entry in state.versions(subject, include_deleted=True)]
    for entry in entries:
        assert entry.schema.schema_id == state.id_of(".", "AVRO", entry.schema.fingerprint)
    last = {record.key: record for record in texts}
    compacted = [
        record for number, record in enumerate(texts) if record.key not in {r.key for r in texts[number + 1 :]}
    ]
    assert len(last) == len(compacted)
    after = fold(compacted)
    assert [held(state, number) for number in (1, 2)] == [held(after, number) for number in (1, 2)]
    assert dict(state.context(".").ids) == dict(after.context(".").ids)
    assert shown(state) == shown(after)


def held(state, schema_id):
    """Return the text of an id and the versions that use it."""
    entry = state.schema(".", schema_id)
    return entry and (entry.schema.text, entry.used_by)


def fold_one_by_one(records):
    """Return the State after some records that are applied one after the other."""
    state = State()
    for offset, record in enumerate(records):
        state = state.apply(Entry(offset, 1000 + offset, record.key, record.value))
    return state


# name, the text under an id that another subject has with USER
OTHERS = [
    ("another number", USER.replace("User", "User1")),
    ("an integer for a float", USER.replace('"long"', '"long","x":1.0').replace("1.0", "1")),
    ("no JSON", "{"),
]


@pytest.mark.parametrize("text", [row[1] for row in OTHERS], ids=[row[0] for row in OTHERS])
def test_another_content_of_an_id_is_set_aside(text):
    """Only the spelling may differ."""
    form = FORMS["Karapace 2"]
    first = USER.replace('"long"', '"long","x":1.0')

    state = fold([form.schema("a", 1, 1, first), form.schema("b", 1, 1, text)])

    assert (1, {"a": ([1], [1])}) == (state.set_aside_count, shown(state))


def test_keys_that_karapace_reads():
    """The keys of schemas, levels and deletions have the order that Confluent's and Karapace's registries write."""
    keys = [encode(SchemaKey("s", 1)), encode(ConfigKey("s")), encode(ModeKey("s")), encode(DeleteSubjectKey("s"), 1)]

    assert [["keytype", "subject", "version", "magic"]] + 3 * [["keytype", "subject", "magic"]] == [
        [*json.loads(record.key)] for record in keys
    ]
