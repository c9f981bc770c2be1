"""The laws of the log, over random histories of real decisions.

Live State = replayed State = State replayed after compaction, with tombstones and without; an id that the registry
gives never names two schemas, not even after hard delete, compaction and restart; version numbers only grow.
"""

import json
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.compat.levels import Level
from strata.registry.core.decide.association_requests import AssociationRequest, Resource, Wanted
from strata.registry.core.decide.associations import change_associations, delete_associations
from strata.registry.core.decide.config import delete_config, set_config
from strata.registry.core.decide.contexts import delete_context
from strata.registry.core.decide.deks import create_dek, delete_deks, undelete_deks
from strata.registry.core.decide.delete import delete_subject, delete_version
from strata.registry.core.decide.keks import Kek, create_kek, delete_kek, undelete_kek, update_kek
from strata.registry.core.decide.mode import delete_mode, set_mode
from strata.registry.core.decide.register import Rules, register
from strata.registry.core.errors import RegistryError
from strata.registry.core.lookup import LATEST
from strata.registry.core.schema_request import SchemaRequest
from strata.storage.encryption_keys import Dek
from strata.storage.log import Entry
from strata.storage.records import DekKey, DekValue, KekValue
from strata.storage.state import State

SUBJECTS = st.sampled_from(["a", "b", ":.c:a"])
SCOPES = st.sampled_from([None, "a", "b", ":.c:a", ":.c:"])
TEXTS = st.sampled_from(
    ['"int"', '"long"', '"string"', '{"type":"int","x":1,"y":2}', '{"type":"int","y":2,"x":1}', "{"]
)
VERSIONS = st.none() | st.integers(1, 4)
HELD = st.sampled_from([LATEST, 1, 2, 3, 4])
IDS = st.none() | st.integers(1, 6)
FLAGS = st.booleans()
MODES = st.sampled_from(["READWRITE", "READONLY", "IMPORT", "IMPORT", None])


def _register(subject, text, schema_id, version):
    request = SchemaRequest(text, version=version or 0, schema_id=schema_id)
    return lambda state: register(state, subject, request, Rules(Level.NONE))


def _associate(op, topic, subject, lifecycle, text):
    schema = SchemaRequest(text) if text else None
    wanted = Wanted(op, "value", subject, lifecycle, None, schema, guid=f"{topic}-{subject}")
    request = AssociationRequest(Resource(topic, "ns", topic), [wanted])
    return lambda state: change_associations(state, request, Rules(Level.NONE), 7)


def _dissociate(topic, cascade):
    return lambda state: delete_associations(state, topic, "topic", (), 7, cascade=cascade, dry_run=False)


TOPICS = st.sampled_from(["t", "u"])
OWN_IDS = st.one_of(
    st.builds(_register, SUBJECTS, TEXTS, st.none(), st.none()),
    st.builds(_register, SUBJECTS, TEXTS, st.none(), st.none()),
    st.builds(lambda s, p: lambda state: delete_subject(state, s, permanent=p), SUBJECTS, FLAGS),
    st.builds(lambda s, v, p: lambda state: delete_version(state, s, v, permanent=p), SUBJECTS, HELD, FLAGS),
    st.builds(lambda c: lambda state: delete_context(state, c), st.sampled_from([".", ".c"])),
    st.builds(
        _associate,
        st.sampled_from(["CREATE", "UPSERT"]),
        TOPICS,
        SUBJECTS | st.none(),
        st.sampled_from(["STRONG", "WEAK", None]),
        TEXTS | st.none(),
    ),
    st.builds(_dissociate, TOPICS, FLAGS),
)
COMMANDS = st.one_of(
    OWN_IDS,
    st.builds(_register, SUBJECTS, TEXTS, IDS, VERSIONS),
    st.builds(
        lambda s, level: lambda state: set_config(state, s, {"compatibility": level}),
        SCOPES,
        st.sampled_from(["NONE", None]),
    ),
    st.builds(lambda s: lambda state: delete_config(state, s, Level.NONE), SCOPES),
    st.builds(lambda s, m, f: lambda state: set_mode(state, s, m, force=f), SCOPES, MODES, FLAGS),
    st.builds(lambda s, f: lambda state: delete_mode(state, s, recursive=f), SCOPES, FLAGS),
)
# Histories in which the caller gives ids and versions, so that versions are overwritten.
IMPORTS = st.lists(
    st.one_of(
        st.builds(_register, st.just("a"), TEXTS, IDS, VERSIONS),
        st.builds(lambda p: lambda state: delete_subject(state, "a", permanent=p), FLAGS),
        st.builds(lambda v, p: lambda state: delete_version(state, "a", v, permanent=p), HELD, FLAGS),
    ),
    min_size=6,
    max_size=20,
).map(lambda rest: [lambda state: set_mode(state, "a", "IMPORT", force=True), *rest])


def _kek(name, props, deleted, now):
    wanted = Kek(name, KekValue("aws-kms", "arn", props, None, shared=False, deleted=deleted, created=0))
    return lambda state: create_kek(state, wanted, now, 2)


def _dek(kek, subject, version, material, flags):
    wanted = Dek(DekKey(kek, subject, "AES256_GCM", version), DekValue(material, deleted=flags[0], created=0))
    return lambda state: create_dek(state, wanted, version, 3, rewrap=flags[1])


KEKS, DEK_VERSIONS, TIMES = st.sampled_from(["k", "l"]), st.integers(1, 2), st.integers(1, 3)
SERIES = st.tuples(KEKS, st.sampled_from(["a", ":.c:a"]), st.just("AES256_GCM"), st.none() | DEK_VERSIONS)
# Histories of encryption keys, with modes that forbid some of the changes.
KEYS = st.lists(
    st.one_of(
        st.builds(_kek, KEKS, st.sampled_from([{}, {"p": "1"}]), FLAGS, TIMES),
        st.builds(lambda k, doc: lambda state: update_kek(state, k, {"doc": doc}), KEKS, st.sampled_from(["d", None])),
        st.builds(lambda k, p: lambda state: delete_kek(state, k, permanent=p), KEKS, FLAGS),
        st.builds(lambda k: lambda state: undelete_kek(state, k), KEKS),
        st.builds(_dek, KEKS, SUBJECTS, DEK_VERSIONS, st.sampled_from(["QQ==", "Qg=="]), st.tuples(FLAGS, FLAGS)),
        st.builds(lambda s, p: lambda state: delete_deks(state, *s, permanent=p), SERIES, FLAGS),
        st.builds(lambda s: lambda state: undelete_deks(state, *s), SERIES),
        st.builds(lambda s, m: lambda state: set_mode(state, s, m, force=True), SCOPES, MODES),
    ),
    min_size=10,
    max_size=40,
).map(lambda rest: [_kek("k", {}, deleted=False, now=1), *rest])
HISTORIES = st.lists(COMMANDS, min_size=15, max_size=40) | IMPORTS | KEYS


def run(commands, start=None):
    """Carry out commands as the writer does; return the State after each, and the log."""
    states, log = [start or State()], []
    for command in commands:
        state = states[-1]
        try:
            records = command(state).records
        except RegistryError:
            continue
        records = [*records, *state.tombstones_besides(records)]
        added = [Entry(state.offset + i, 1000 + len(log), r.key, r.value) for i, r in enumerate(records, start=1)]
        log += added
        states.append(state.apply_all(added))
    return states, log


def respelt(log):
    """Return the log with keys as another registry spells them: another magic, another order of properties."""
    return [e._replace(key=json.dumps({**json.loads(e.key), "magic": 0, "z": 1}, sort_keys=True).encode()) for e in log]


def compacted(log, *, keep_tombstones):
    """Return the newest record of each key, as the broker keeps them."""
    newest = {entry.key: entry.offset for entry in log}
    return [e for e in log if newest[e.key] == e.offset and (keep_tombstones or e.value is not None)]


@settings(max_examples=examples(300, part=10), deadline=None)
@given(HISTORIES)
def test_live_is_replayed_is_replayed_after_compaction(commands):
    """The State is a function of the log, whatever the history, and compaction does not change it."""
    states, log = run(commands)
    live = states[-1]

    assert live == State().apply_all(log)
    for keep_tombstones in (True, False):
        replayed = State().apply_all(compacted(log, keep_tombstones=keep_tombstones))
        assert live == replace(replayed, offset=live.offset)
    assert 0 == live.set_aside_count


@settings(max_examples=examples(300, part=10), deadline=None)
@given(HISTORIES, HISTORIES)
def test_what_is_deleted_stays_deleted_however_its_key_was_spelt(before, after):
    """Compaction, which compares keys as bytes, restores nothing that was deleted under our spelling of its key."""
    _, log = run(before)
    adopted = respelt(log)
    states, rest = run(after, State().apply_all(adopted))
    live = states[-1]

    for keep_tombstones in (True, False):
        replayed = State().apply_all(compacted([*adopted, *rest], keep_tombstones=keep_tombstones))
        assert live == replace(replayed, offset=live.offset)
    assert 0 == live.set_aside_count


@settings(max_examples=examples(300, part=10), deadline=None)
@given(st.lists(OWN_IDS, min_size=10, max_size=40), st.integers(0, 40))
def test_an_id_never_names_two_schemas(commands, restart):
    """An id of a context names one content for ever, also across a compaction and a restart."""
    named = {}
    states, log = run(commands[:restart])
    restarted = State().apply_all(compacted(log, keep_tombstones=False))
    later, _ = run(commands[restart:], replace(restarted, offset=states[-1].offset))
    for state in [*states, *later]:
        for context, ids in state.contexts.items():
            for schema_id, entry in ids.schemas.items():
                identity = (entry.schema.schema_type, entry.schema.fingerprint)
                assert identity == named.setdefault((context, schema_id), identity)


def test_deleted_context_gives_no_id_again():
    """A context that is emptied, deleted, compacted away and created again does not reuse its ids."""
    made = [_register(":.c:a", '"int"', None, None)]
    gone = [lambda state, p=p: delete_subject(state, ":.c:a", permanent=p) for p in (False, True)]
    _, log = run([*made, *gone, lambda state: delete_context(state, ".c")])
    restarted = State().apply_all(compacted(log, keep_tombstones=False))
    again, _ = run([_register(":.c:a", '"long"', None, None)], restarted)

    assert ["."] == restarted.context_names()
    assert [2] == list(again[-1].context(".c").schemas)


@settings(max_examples=examples(300, part=10), deadline=None)
@given(st.lists(OWN_IDS, min_size=10, max_size=40))
def test_versions_only_grow(commands):
    """While a subject keeps its highest version, its next version never decreases."""
    states, _ = run(commands)
    for before, after in pairwise(states):
        for subject, versions in before.subjects.items():
            if after.version(subject, max(versions)):
                assert before.next_version(subject) <= after.next_version(subject)
