"""Key encryption keys and data encryption keys: rules for creating, changing and deleting them."""

import pytest

from strata.registry.core.decide.deks import create_dek, dek_of, delete_deks, undelete_deks
from strata.registry.core.decide.keks import Kek, create_kek, delete_kek, kek_of, undelete_kek, update_kek
from strata.registry.core.decide.mode import set_mode
from strata.registry.core.errors import RegistryError
from strata.registry.core.lookup import LATEST
from strata.storage.encryption_keys import Dek
from strata.storage.record_json import encode
from strata.storage.records import DekKey, DekValue, KekKey, KekValue
from strata.storage.state import State

NOW = 1000
GCM, SIV = "AES256_GCM", "AES256_SIV"


def after(state, decision):
    """Return the State after a decision."""
    return state.drafted(decision.records, NOW)


def kek(state, name="k", now=NOW, most=100, **other):
    """Decide a key encryption key."""
    given = {"kms_type": "hcvault", "kms_key_id": "http://vault/k", "kms_props": {}, "doc": None, **other}
    return create_kek(state, Kek(name, KekValue(**{"shared": False, "deleted": False, **given}, created=0)), now, most)


def dek(
    state,
    subject="s",
    version=1,
    material="QQ==",
    name="k",
    now=NOW,
    most=100,
    algorithm=GCM,
    deleted=False,
    rewrap=False,
):
    """Decide a version of a data encryption key."""
    wanted = Dek(DekKey(name, subject, algorithm, version), DekValue(material, deleted=deleted, created=0))
    return create_dek(state, wanted, now, most, rewrap=rewrap)


@pytest.fixture(scope="module")
def base():
    """Return KEK `k` with `s` 1, 2 and (deleted) 3, all of `t` deleted; `empty`; `gone`, deleted; `shared`."""
    state = State()
    for name in ("k", "empty", "gone"):
        state = after(state, kek(state, name))
    for version in (1, 2, 3):
        state = after(state, dek(state, version=version))
    state = after(state, delete_deks(state, "k", "s", GCM, 3, permanent=False))
    state = after(state, dek(state, "t"))
    state = after(state, delete_deks(state, "k", "t", GCM, None, permanent=False))
    state = after(state, dek(state, "u", name="gone"))
    state = after(state, delete_deks(state, "gone", "u", GCM, None, permanent=False))
    state = after(state, delete_kek(state, "gone", permanent=False))
    # Another registry with a KMS may have stored it; this one does not create any.
    value = KekValue("aws-kms", "arn", {}, None, shared=True, deleted=False, created=1)
    return state.drafted([encode(KekKey("shared"), value)], NOW)


def versions(state, subject="s", name="k", *, deleted=False):
    """Return the versions of a data encryption key, and which are soft-deleted."""
    found = state.encryption_keys.versions(name, subject, GCM, include_deleted=deleted)
    return [(key.version, value.deleted) for key, value in found]


MADE = [
    pytest.param({}, {}, id="plain"),
    pytest.param({"kms_type": "AWS"}, {"kms_type": "aws-kms"}, id="aws by another name"),
    pytest.param({"kms_type": "azure-vault"}, {"kms_type": "azure-kms"}, id="azure by another name"),
    pytest.param({"kms_type": "gcp"}, {"kms_type": "gcp-kms"}, id="gcp by another name"),
    pytest.param({"kms_type": "My-KMS"}, {"kms_type": "My-KMS"}, id="an unknown KMS"),
    pytest.param({"doc": "d", "kms_props": {"KeyState": "Enabled"}},
                 {"doc": "d", "kms_props": {"KeyState": "Enabled"}}, id="with words and properties"),
    pytest.param({"deleted": True}, {"deleted": True}, id="deleted from the start"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "stored"), MADE)
def test_key_encryption_key_is_made(asked, stored):
    """The registry stores what the client asked for, with the KMS type spelled as clients know it."""
    expected = {"kms_type": "hcvault", "kms_key_id": "http://vault/k", "kms_props": {}, "doc": None, "shared": False}
    state = after(State(), kek(State(), **asked))

    assert KekValue(**{**expected, "deleted": False, "created": NOW, **stored}) == state.encryption_keys.keks["k"]


CREDENTIALS = ["token.id", "approle.secret.id", "ssl.keystore.password", "secret.access.key", "client.secret",
               "private.key", "secret", "Client.Secret", "my.password"]  # fmt: skip


@pytest.mark.parametrize("name", CREDENTIALS)
def test_credentials_never_reach_the_log(name):
    """The registry drops properties with KMS credentials, from a new key and from a change."""
    state = after(State(), kek(State()))
    props = {name: "hush-hush", "private.key.id": "public", "role.arn": "public"}
    records = [*kek(State(), kms_props=props).records, *update_kek(state, "k", {"kmsProps": props}).records]

    assert [(False, True)] * 2 == [(b"hush" in r.value, b"role.arn" in r.value) for r in records]


def test_create_takes_a_soft_deletion_back(base):
    """A repeated request for a deleted KEK or DEK undeletes it, and the key keeps its age."""
    keyed = after(base, kek(base, "gone", now=NOW + 5))
    made = after(base, dek(base, version=3, now=NOW + 5))

    assert (False, NOW) == (
        kek_of(keyed, "gone", include_deleted=False).deleted,
        keyed.encryption_keys.keks["gone"].created,
    )
    assert [(1, False), (2, False), (3, False)] == versions(made)
    assert NOW == dek_of(made, "k", "s", GCM, 3, include_deleted=False).value.created


def test_create_as_deleted_deletes(base):
    """A request for a live key with `deleted` soft-deletes it."""
    assert [(1, True), (2, False), (3, True)] == versions(after(base, dek(base, deleted=True)), deleted=True)


def test_rewrap_replaces_the_material_and_keeps_the_age(base):
    """Rewrapping a key does not change its age, which clients count, nor any other version."""
    state = after(base, dek(base, version=2, material="Wg==", now=NOW + 5, rewrap=True))
    found = [value for _, value in state.encryption_keys.versions("k", "s", GCM, include_deleted=False)]

    assert [("QQ==", NOW), ("Wg==", NOW)] == [(value.material, value.created) for value in found]


REFUSED = [
    pytest.param(lambda s: kek(s, ""), 42271, "name", id="a KEK without a name"),
    pytest.param(lambda s: kek(s, "1k"), 42271, "name", id="a KEK whose name begins with a digit"),
    pytest.param(lambda s: kek(s, "a/b"), 42271, "name", id="a KEK with a slash in its name"),
    pytest.param(lambda s: kek(s, "k" * 65), 42271, "name", id="a KEK with a long name"),
    pytest.param(lambda s: kek(s, "n", kms_key_id=None), 42271, "kmsKeyId", id="a KEK without a key id"),
    pytest.param(lambda s: kek(s, "n", kms_key_id=""), 42271, "kmsKeyId", id="a KEK with an empty key id"),
    pytest.param(lambda s: kek(s, "n", kms_type=None), 42271, "kmsType", id="a KEK without a KMS"),
    pytest.param(lambda s: kek(s, "n", shared=True), 40370, "Set shared to false", id="a shared KEK"),
    pytest.param(kek, 40971, "Key 'k'", id="a KEK again"),
    pytest.param(lambda s: kek(s, "gone", doc="other"), 40971, "Key 'gone'", id="another KEK in a deleted one's place"),
    pytest.param(lambda s: kek(s, "gone", deleted=True), 40971, "Key 'gone'", id="a deleted KEK again, deleted"),
    pytest.param(lambda s: kek(s, "n", most=4), 40972, "A maximum of 4 keys", id="a KEK too many"),
    pytest.param(lambda s: update_kek(s, "n", {}), 40470, "Key 'n'", id="change of an unknown KEK"),
    pytest.param(lambda s: update_kek(s, "gone", {}), 40470, "Key 'gone'", id="change of a deleted KEK"),
    pytest.param(lambda s: update_kek(s, "k", {"shared": True}), 40370, "shared", id="a KEK becomes shared"),
    pytest.param(lambda s: delete_kek(s, "n", permanent=False), 40470, "Key 'n'", id="deletion of an unknown KEK"),
    pytest.param(lambda s: delete_kek(s, "k", permanent=False), 42272, "the key k", id="deletion of a KEK in use"),
    pytest.param(lambda s: delete_kek(s, "gone", permanent=True), 42272, "the key gone",
                 id="hard deletion of a KEK with deleted DEKs"),
    pytest.param(lambda s: delete_kek(s, "empty", permanent=True), 40471, "Key 'empty' was not deleted",
                 id="hard deletion of a live KEK"),
    pytest.param(lambda s: undelete_kek(s, "n"), 40470, "Key 'n'", id="undeletion of an unknown KEK"),
    pytest.param(lambda s: dek(s, ""), 42271, "subject", id="a DEK without a subject"),
    pytest.param(lambda s: dek(s, "a\nb"), 42271, "subject", id="a DEK of a subject with control characters"),
    pytest.param(lambda s: dek(s, "s" * 4097), 42271, "subject", id="a DEK of a long subject"),
    pytest.param(lambda s: dek(s, version=0), 42271, "version", id="a DEK of version 0"),
    pytest.param(lambda s: dek(s, version=-1), 42271, "version", id="a DEK of version -1"),
    pytest.param(lambda s: dek(s, version=2**31), 42271, "version", id="a DEK of a version out of range"),
    pytest.param(lambda s: dek(s, "n", material=None), 42271, "encryptedKeyMaterial", id="a DEK without material"),
    pytest.param(lambda s: dek(s, "n", material=""), 42271, "encryptedKeyMaterial", id="a DEK with empty material"),
    pytest.param(lambda s: dek(s, version=2, material=None, rewrap=True), 42271, "encryptedKeyMaterial",
                 id="rewrapping without material"),
    pytest.param(lambda s: dek(s, material=None, name="shared"), 40370, "shared", id="a DEK that the KMS should make"),
    pytest.param(lambda s: dek(s, name="n"), 40470, "Key 'n'", id="a DEK under an unknown KEK"),
    pytest.param(lambda s: dek(s, name="gone"), 40470, "Key 'gone'", id="a DEK under a deleted KEK"),
    pytest.param(lambda s: dek(s, name="1"), 42271, "name", id="a DEK under what is not a KEK"),
    pytest.param(dek, 40971, "Key 's'", id="a DEK again"),
    pytest.param(lambda s: dek(s, material="Wg=="), 40971, "Key 's'", id="another DEK in its place"),
    pytest.param(lambda s: dek(s, version=3, material="Wg=="), 40971, "Key 's'",
                 id="another DEK in a deleted one's place"),
    pytest.param(lambda s: dek(s, "n", most=5), 40972, "A maximum of 5 keys", id="a DEK too many"),
    pytest.param(lambda s: delete_deks(s, "n", "s", GCM, None, permanent=False), 40470, "Key 'n'",
                 id="deletion of a DEK under an unknown KEK"),
    pytest.param(lambda s: delete_deks(s, "k", "n", GCM, None, permanent=False), 40470, "Key 'n'",
                 id="deletion of an unknown DEK"),
    pytest.param(lambda s: delete_deks(s, "k", "s", SIV, None, permanent=False), 40470, "Key 's'",
                 id="deletion for another algorithm"),
    pytest.param(lambda s: delete_deks(s, "k", "s", GCM, 9, permanent=False), 40470, "Key 's'",
                 id="deletion of an unknown version"),
    pytest.param(lambda s: delete_deks(s, "k", "s", GCM, None, permanent=True), 40471, "Key 's' was not deleted",
                 id="hard deletion of a DEK with live versions"),
    pytest.param(lambda s: delete_deks(s, "k", "s", GCM, 1, permanent=True), 40471, "Key 's' was not deleted",
                 id="hard deletion of a live version"),
    pytest.param(lambda s: undelete_deks(s, "k", "n", GCM, None), 40470, "Key 'n'", id="undeletion of an unknown DEK"),
    pytest.param(lambda s: undelete_deks(s, "gone", "u", GCM, None), 40472, "Key 'gone' must be undeleted",
                 id="undeletion of a DEK under a deleted KEK"),
    pytest.param(lambda s: dek_of(s, "k", "t", GCM, LATEST, include_deleted=False), 40470, "Key 't'",
                 id="look at the latest of a deleted DEK"),
    pytest.param(lambda s: dek_of(s, "k", "s", GCM, 3, include_deleted=False), 40470, "Key 's'",
                 id="look at a deleted version"),
]  # fmt: skip


@pytest.mark.parametrize(("decide", "code", "words"), REFUSED)
def test_what_cannot_be_is_refused(base, decide, code, words):
    """Each rule has its own error code, and the message names the key or property."""
    with pytest.raises(RegistryError) as refused:
        decide(base)

    assert (code, True) == (refused.value.code, words in refused.value.message)


WRITES = [
    pytest.param(lambda s: kek(s, "n"), None, id="making a KEK"),
    pytest.param(lambda s: update_kek(s, "k", {"doc": "d"}), None, id="changing a KEK"),
    pytest.param(lambda s: delete_kek(s, "empty", permanent=False), None, id="deleting a KEK"),
    pytest.param(lambda s: undelete_kek(s, "gone"), None, id="undeleting a KEK"),
    pytest.param(lambda s: dek(s, version=9), "s", id="making a DEK"),
    pytest.param(lambda s: delete_deks(s, "k", "s", GCM, None, permanent=False), "s", id="deleting a DEK"),
    pytest.param(lambda s: undelete_deks(s, "k", "s", GCM, 3), "s", id="undeleting a DEK"),
]


@pytest.mark.parametrize(("decide", "scope"), WRITES)
def test_read_only_scopes_refuse_writes(base, decide, scope):
    """A KEK follows the registry's mode, a DEK its subject's: neither changes in READONLY, both do in IMPORT."""
    closed = after(base, set_mode(base, scope, "READONLY", force=False))
    importing = after(base, set_mode(base, scope, "IMPORT", force=True))

    with pytest.raises(RegistryError) as refused:
        decide(closed)
    assert 42205 == refused.value.code
    assert len(decide(importing).records)


def test_change_keeps_what_it_does_not_name(base):
    """An absent property keeps its value, null clears it, and a change without effect writes nothing."""
    full = after(base, update_kek(base, "k", {"kmsProps": {"p": "1"}, "doc": "d"}))
    cleared = after(full, update_kek(full, "k", {"doc": None}))
    bare = after(full, update_kek(full, "k", {"kmsProps": None, "shared": None}))

    assert ({"p": "1"}, "d") == (full.encryption_keys.keks["k"].kms_props, full.encryption_keys.keks["k"].doc)
    assert ({"p": "1"}, None) == (cleared.encryption_keys.keks["k"].kms_props, cleared.encryption_keys.keks["k"].doc)
    assert ({}, "d") == (bare.encryption_keys.keks["k"].kms_props, bare.encryption_keys.keks["k"].doc)
    assert [] == list(update_kek(full, "k", {"doc": "d", "shared": False}).records)


def test_deletions_mark_then_remove(base):
    """A soft-deleted key is visible on request and can be undeleted; repeating either writes nothing."""
    soft = after(base, delete_deks(base, "k", "s", GCM, None, permanent=False))
    back = after(soft, undelete_deks(soft, "k", "s", GCM, 2))
    gone = after(soft, delete_deks(soft, "k", "s", GCM, None, permanent=True))

    assert ([], [(1, True), (2, True), (3, True)]) == (versions(soft), versions(soft, deleted=True))
    assert [(2, False)] == versions(back)
    assert ([], 2) == (versions(gone, deleted=True), gone.encryption_keys.dek_count)
    assert [[], [], []] == [
        list(decision.records)
        for decision in (
            delete_deks(soft, "k", "s", GCM, None, permanent=False),
            undelete_deks(base, "k", "s", GCM, 1),
            undelete_kek(base, "k"),
        )
    ]


def test_key_encryption_key_goes_when_it_is_empty(base):
    """A soft and then a hard deletion make the name available for another key."""
    soft = after(base, delete_kek(base, "empty", permanent=False))
    gone = after(soft, delete_kek(soft, "empty", permanent=True))
    other = after(gone, kek(gone, "empty", kms_type="aws-kms", now=NOW + 5))

    assert (True, False) == (soft.encryption_keys.keks["empty"].deleted, "empty" in gone.encryption_keys.keks)
    assert ("aws-kms", NOW + 5) == (
        other.encryption_keys.keks["empty"].kms_type,
        other.encryption_keys.keks["empty"].created,
    )


def test_latest_version_is_the_highest_that_is_seen(base):
    """The latest version is the highest visible one, with soft-deleted versions on request."""
    state = after(base, dek(base, version=10))
    found = [
        dek_of(s, "k", "s", GCM, LATEST, include_deleted=d).key.version for s in (base, state) for d in (False, True)
    ]

    assert [2, 3, 10, 10] == found


def test_full_registry_takes_back_what_it_holds(base):
    """The limit applies to new keys only: undeletion and rewrapping still work."""
    assert 1 == len(dek(base, version=3, most=1).records)
    assert 1 == len(dek(base, version=1, material="Wg==", most=1, rewrap=True).records)
    assert 1 == len(kek(base, "gone", most=1).records)
