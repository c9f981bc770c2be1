"""The executor selects the right key, and copes with a slow, contested, unavailable or hostile registry (CSFLE)."""

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.encryption.ciphers import CipherError, cipher_of, new_material
from strata.serdes.encryption.csfle import FieldEncryption
from strata.serdes.encryption.kms import DRIVERS, LocalKms
from strata.serdes.errors import RuleError
from strata.serdes.model import Metadata, Rule
from strata.serdes.rules.executors import FieldContext, RuleContext

DAY = 86_400.0
NOW = 1_800_000_000.0
SECRET = {"secret": "our-secret"}
PARAMS = {"encrypt.kek.name": "kek-1", "encrypt.kms.type": "local-kms", "encrypt.kms.key.id": "key-1"}
KEK = {"name": "kek-1", "kmsType": "local-kms", "kmsKeyId": "key-1", "shared": False, "ts": 1}
NO_KEY = {"error_code": 40470, "message": "Key 'kek-1' not found"}
TAKEN = {"error_code": 40971, "message": "Key 'kek-1' already exists; use a different value"}
DOWN = {"error_code": 50003, "message": "no leader"}
MATERIAL = {version: new_material("AES256_GCM") for version in (1, 2, 3)}


def dek(version=1, age_days=0.0, **changes: Any) -> dict[str, Any]:
    """Return an answer with a data key that the secret unwraps."""
    wrapped = LocalKms(SECRET, {}).wrap("key-1", MATERIAL[version])
    return {
        "kekName": "kek-1",
        "subject": "s",
        "version": version,
        "algorithm": "AES256_GCM",
        "encryptedKeyMaterial": base64.b64encode(wrapped).decode(),
        "ts": int((NOW - age_days * DAY) * 1000),
    } | changes


def context(mode="WRITE", subject="s", kind="TRANSFORM", metadata=None, **params: str | None) -> RuleContext:
    """Return the context of a rule with some parameters, `_` for dots, over one record."""
    given = PARAMS | {f"encrypt.{name.replace('_', '.')}": value for name, value in params.items()}
    rule = Rule(
        name="hide",
        type="ENCRYPT",
        kind=kind,
        params={name: value for name, value in given.items() if value is not None},
    )
    return RuleContext(
        rule=rule,
        phase="domainRules",
        mode=mode,
        subject=subject,
        topic="t",
        is_key=False,
        source=None,
        target=Schema('"string"', metadata=metadata),
    )


def apply(executor, rule, value, type_name="STRING"):
    """Apply an executor to one field."""
    field = FieldContext(full_name="User.name", name="name", type_name=type_name, tags=frozenset({"PII"}), message={})
    return executor.field_transform(rule)(field, value)


def opened(ciphertext: str, version=1) -> str:
    """Return the text encrypted with one of the prepared keys."""
    return cipher_of("AES256_GCM", MATERIAL[version]).decrypt(base64.b64decode(ciphertext)).decode()


@pytest.fixture
def asked(scripted_servers, answer):
    """Return a factory of an executor over a server with a script of statuses and bodies; it returns the server too."""

    def make(*script: tuple[int, Any], settings=SECRET, now=None, **options: Any):
        server = scripted_servers(*(answer(status=status, body=body) for status, body in script))
        client = RegistryClient(server.url, retries=0)
        moment = [NOW] if now is None else now
        return FieldEncryption(client, settings, clock=lambda: moment[0], **options), server

    return make


def paths(server) -> list[str]:
    """Return methods and paths of the requests."""
    return [f"{one.method} {one.path.removeprefix('/dek-registry/v1')}" for one in server.requests]


def test_a_first_record_makes_the_keys(asked):
    """The first record registers the rule's KEK and a wrapped data key; the secret and the plain key stay local."""
    executor, server = asked((404, NO_KEY), (200, KEK), (404, NO_KEY), (200, dek()))

    assert "Ann" == opened(apply(executor, context(), "Ann"))
    assert "Bob" == opened(apply(executor, context(), "Bob"))
    assert [
        "GET /keks/kek-1",
        "POST /keks",
        "GET /keks/kek-1/deks/s/versions/1?algorithm=AES256_GCM&deleted=false",
        "POST /keks/kek-1/deks/s",
    ] == paths(server)
    assert {"name": "kek-1", "kmsType": "local-kms", "kmsKeyId": "key-1", "shared": False} == server.requests[1].body
    sent = server.requests[3].body
    wrapped = base64.b64decode(sent.pop("encryptedKeyMaterial"))
    assert {"subject": "s", "version": 1, "algorithm": "AES256_GCM"} == sent
    assert cipher_of("AES256_GCM", LocalKms(SECRET, {}).unwrap("", wrapped))


def test_a_registry_of_before_takes_the_subject_in_the_body(asked):
    """An older registry answers 405 to a path with the subject, and takes the subject in the body."""
    refusal = {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
    executor, server = asked((200, KEK), (404, NO_KEY), (405, refusal), (200, dek()))

    assert "Ann" == opened(apply(executor, context(), "Ann"))
    assert ["POST /keks/kek-1/deks/s", "POST /keks/kek-1/deks"] == paths(server)[2:]
    assert "s" == server.requests[-1].body["subject"]


def test_who_comes_second_takes_the_others_keys(asked):
    """After a conflict (409) the executor uses the key of the client that was first."""
    executor, server = asked((404, NO_KEY), (409, TAKEN), (200, KEK), (404, NO_KEY), (409, TAKEN), (200, dek()))

    assert "Ann" == opened(apply(executor, context(), "Ann"))
    assert 6 == len(server.requests)


def test_threads_share_the_requests(scripted_servers, answer):
    """Any number of threads that write first send each request once."""
    gate = threading.Event()
    server = scripted_servers(answer(body=KEK, when=lambda: gate.wait(60)), answer(body=dek()))
    executor = FieldEncryption(RegistryClient(server.url), SECRET, clock=lambda: NOW)

    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(apply, executor, context(), f"v{n}") for n in range(8)]
        gate.set()
        found = {opened(one.result(60)) for one in waiting}

    assert {f"v{n}" for n in range(8)} == found
    assert 2 == len(server.requests)


def test_names_are_quoted_and_contexts_told(asked):
    """Names are quoted in paths, and a KEK is looked up in the subject's context."""
    executor, server = asked((404, NO_KEY), (200, KEK), (200, dek()))

    apply(executor, context(subject=":.eu:a/b", kek_name="k/1 ?"), "Ann")

    assert [
        "GET /keks/k%2F1%20%3F?context=.eu",
        "POST /keks?context=.eu",
        "GET /keks/k%2F1%20%3F/deks/%3A.eu%3Aa%2Fb/versions/1?algorithm=AES256_GCM&deleted=false",
    ] == paths(server)


def test_parameters_may_stand_in_the_metadata(asked):
    """The metadata of the schema supplies the parameters that the rule lacks."""
    executor, server = asked((200, KEK), (200, dek()))
    metadata = Metadata(properties={"encrypt.kek.name": "kek-from-metadata"})

    apply(executor, context(kek_name=None, metadata=metadata), "Ann")

    assert "GET /keks/kek-from-metadata" == paths(server)[0]


# Rotation


def prefix(ciphertext: str) -> tuple[int, str]:
    """Return the version before a ciphertext, and the text."""
    raw = base64.b64decode(ciphertext)
    assert raw[0] == 0
    version = int.from_bytes(raw[1:5], "big")
    return version, opened(base64.b64encode(raw[5:]).decode(), version)


def test_a_key_is_used_until_it_is_old_enough(asked):
    """An expired key gets a new version; records before that need no request."""
    now = [NOW]
    executor, server = asked((200, KEK), (200, dek(1)), (200, dek(1)), (200, dek(2, age_days=-10.5)), now=now)
    rule = context(dek_expiry_days="10")

    written = [apply(executor, rule, "a"), apply(executor, rule, "b")]
    now[0] = NOW + 10 * DAY
    written.append(apply(executor, rule, "c"))
    assert 2 == len(server.requests)
    now[0] = NOW + 10.5 * DAY
    written += [apply(executor, rule, "d"), apply(executor, rule, "e")]

    assert [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (2, "e")] == [prefix(one) for one in written]
    assert [
        "GET /keks/kek-1/deks/s/versions/-1?algorithm=AES256_GCM&deleted=false",
        "GET /keks/kek-1/deks/s/versions/-1?algorithm=AES256_GCM&deleted=false",
        "POST /keks/kek-1/deks/s",
    ] == paths(server)[1:]
    assert 2 == server.requests[-1].body["version"]


def test_a_version_that_somebody_else_added_is_taken(asked):
    """Two clients that rotate at once end with one new version."""
    executor, server = asked((200, KEK), (200, dek(1, age_days=11)), (409, TAKEN), (200, dek(2)))

    assert (2, "a") == prefix(apply(executor, context(dek_expiry_days="10"), "a"))
    assert paths(server)[-1].startswith("GET /keks/kek-1/deks/s/versions/2?")


def test_a_rotation_that_fails_keeps_the_old_key_for_a_while(asked):
    """While rotation fails, records are encrypted with the old key, and the registry is asked once a minute."""
    now = [NOW]
    old = (200, dek(1, age_days=11))
    executor, server = asked((200, KEK), old, (500, DOWN), old, (200, dek(2)), now=now)
    rule = context(dek_expiry_days="10")

    written = [apply(executor, rule, "a"), apply(executor, rule, "b")]
    assert 3 == len(server.requests)
    now[0] += 61
    written.append(apply(executor, rule, "c"))

    assert [(1, "a"), (1, "b"), (2, "c")] == [prefix(one) for one in written]


def test_a_registry_whose_clock_is_off_does_not_make_a_key_for_each_record(asked):
    """A key that is already expired when made is still used for a minute."""
    executor, server = asked((200, KEK), (200, dek(1, ts=None)), (200, dek(2, ts=None)))
    rule = context(dek_expiry_days="10")

    assert [(2, "a"), (2, "b")] == [prefix(apply(executor, rule, one)) for one in "ab"]
    assert 3 == len(server.requests)


def test_reading_takes_the_version_in_front(asked):
    """Each version is requested once, soft-deleted ones too."""
    executor, server = asked((200, KEK), (200, dek(3)), (200, dek(1)))
    rule = context("READ", dek_expiry_days="10")
    written = {
        version: base64.b64encode(
            b"\x00" + version.to_bytes(4, "big") + cipher_of("AES256_GCM", MATERIAL[version]).encrypt(b"text")
        ).decode()
        for version in (3, 1)
    }

    assert ["text"] * 4 == [apply(executor, rule, written[version]) for version in (3, 1, 1, 3)]
    assert [
        "GET /keks/kek-1",
        "GET /keks/kek-1/deks/s/versions/3?algorithm=AES256_GCM&deleted=true",
        "GET /keks/kek-1/deks/s/versions/1?algorithm=AES256_GCM&deleted=true",
    ] == paths(server)


# What is refused


def test_versions_that_are_not_there_are_believed_missing(asked):
    """Missing versions are cached, so that damaged records cost few requests."""
    executor, server = asked((200, KEK), (404, NO_KEY))
    value = base64.b64encode(b"\x00\x00\x00\x00\x09" + bytes(40)).decode()

    for _ in range(5):
        with pytest.raises(RuleError, match="no version 9 of the data key of kek-1 and s"):
            apply(executor, context("READ", dek_expiry_days="1"), value)

    assert 2 == len(server.requests)


def test_a_reader_makes_no_keys(asked):
    """A reader creates no missing key: it cannot have encrypted anything."""
    executor, server = asked((404, NO_KEY))

    for _ in range(3):
        with pytest.raises(RuleError, match="no key encryption key kek-1"):
            apply(executor, context("READ"), base64.b64encode(bytes(40)).decode())

    assert ["GET /keks/kek-1"] == paths(server)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        pytest.param({"kek_name": None}, "no parameter encrypt.kek.name", id="no KEK"),
        pytest.param({"kek_name": ""}, "no parameter encrypt.kek.name", id="empty KEK"),
        pytest.param({"dek_algorithm": "ROT13"}, "expected AES128_GCM, AES256_GCM, AES256_SIV", id="algorithm"),
        pytest.param({"dek_expiry_days": "-1"}, "expected a whole number", id="negative days"),
        pytest.param({"dek_expiry_days": "soon"}, "expected a whole number", id="no days"),
        pytest.param({"dek_expiry_days": "9" * 400}, "expected a whole number", id="too many days"),
        pytest.param({"kms_type": None}, "needs encrypt.kms.type and encrypt.kms.key.id", id="no KMS"),
        pytest.param({"kms_key_id": None}, "needs encrypt.kms.type and encrypt.kms.key.id", id="no key id"),
        pytest.param(
            {"kms_type": "my-kms"}, "no driver for the KMS type my-kms; expected aws-kms, azure-kms", id="KMS"
        ),
        pytest.param(
            {"kms_type": "hcvault", "kms_key_id": "https://elsewhere/transit/keys/k"},
            r"no credentials were given; to use it, add it to the setting rule.executors._default_.param.kms.allowed",
            id="host",
        ),
    ],
)
def test_rules_that_cannot_be_kept(asked, monkeypatch, params, says):
    """The error names the parameter, and the KEK is not registered."""
    monkeypatch.setenv("VAULT_TOKEN", "of another host")
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    executor, server = asked((404, NO_KEY))

    with pytest.raises(RuleError, match=says) as refused:
        apply(executor, context(**params), "Ann")

    assert ("hide", "s", "t") == (refused.value.rule, refused.value.subject, refused.value.topic)
    assert not [one for one in paths(server) if one.startswith("POST")]
    assert "Ann" not in str(refused.value)


@pytest.mark.parametrize("mode", ["WRITE", "READ"])
@pytest.mark.parametrize("change", [{"kmsType": "aws-kms"}, {"kmsKeyId": "key-of-another"}], ids=["type", "key id"])
def test_a_kek_that_is_not_the_rules(asked, mode, change):
    """A registry cannot replace the key that a rule names."""
    executor, _ = asked((200, KEK | change), (200, dek()))

    with pytest.raises(RuleError, match=r"(local-kms|key-1) of the rule, got"):
        apply(executor, context(mode), base64.b64encode(bytes(40)).decode())


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"encryptedKeyMaterial": None}, id="no material"),
        pytest.param({"encryptedKeyMaterial": "!!!"}, id="not base64"),
        pytest.param({"encryptedKeyMaterial": "AAAA"}, id="short"),
        pytest.param({"encryptedKeyMaterial": base64.b64encode(bytes(60)).decode()}, id="another secret"),
        pytest.param({"encryptedKeyMaterial": None, "keyMaterial": "AAAA"}, id="no key"),
        pytest.param({"algorithm": "AES256_SIV"}, id="another algorithm"),
        pytest.param({"version": "x"}, id="version"),
        pytest.param({"version": 0}, id="version 0"),
        pytest.param({"version": 2**31}, id="version of 32 bits"),
        pytest.param({"ts": "x"}, id="time"),
        pytest.param({"ts": float("inf")}, id="time without end"),
        pytest.param({"ts": 10**400}, id="time of 400 digits"),
        pytest.param({"encryptedKeyMaterial": "A" * 70_000}, id="a long key"),
        pytest.param({"encryptedKeyMaterial": ["AAAA"]}, id="a list"),
    ],
)
@pytest.mark.parametrize("mode", ["WRITE", "READ"])
def test_data_keys_that_are_none(asked, mode, changes):
    """Invalid data keys encrypt nothing, and the error does not show the value."""
    executor, _ = asked((200, KEK), (200, dek() | changes))
    value = base64.b64encode(b"the value, 28 bytes or longer").decode()

    with pytest.raises(RuleError) as refused:
        apply(executor, context(mode), value)

    assert value not in str(refused.value)


def test_a_wrong_secret_asks_the_registry_once(asked):
    """A wrong secret fails each record from the cache, after one request."""
    executor, server = asked((200, KEK), (200, dek()), settings={"secret": "another"})

    for _ in range(3):
        with pytest.raises(RuleError, match=r"User\.name cannot be decrypted: .* wrapped with another secret"):
            apply(executor, context("READ"), base64.b64encode(bytes(40)).decode())

    assert 2 == len(server.requests)


@pytest.mark.parametrize(
    ("value", "expiry", "says"),
    [
        pytest.param("plain text", "0", "not base64", id="plain text"),
        pytest.param("ünï", "0", "not base64", id="not ASCII"),
        pytest.param("", "0", "too short", id="empty"),
        pytest.param("AAAA", "0", "too short", id="short"),
        pytest.param(base64.b64encode(bytes(40)).decode(), "0", "the ciphertext was changed", id="another key"),
        pytest.param("", "1", "begin with a key version", id="empty, rotated"),
        pytest.param(
            base64.b64encode(b"\x01\x00\x00\x00\x01").decode(), "1", "begin with a key version", id="first byte"
        ),
        pytest.param(base64.b64encode(bytes(40)).decode(), "1", "begin with a key version", id="version 0"),
        pytest.param(
            base64.b64encode(b"\x00" + b"\xff" * 40).decode(), "1", "begin with a key version", id="version -1"
        ),
        pytest.param(
            base64.b64encode(b"\x00\x00\x00").decode(), "1", "begin with a key version", id="cut in the version"
        ),
        pytest.param(base64.b64encode(b"\x00\x00\x00\x00\x01").decode(), "1", "too short", id="nothing behind it"),
    ],
)
def test_values_that_were_not_encrypted(asked, value, expiry, says):
    """A string that is not a ciphertext of the key is an error, never a value."""
    executor, _ = asked((200, KEK), (200, dek()))

    with pytest.raises(RuleError, match=says):
        apply(executor, context("READ", dek_expiry_days=expiry), value)


def test_bytes_that_are_no_text_are_not_made_one(asked):
    """Bytes that are not UTF-8 are not decrypted as a string."""
    executor, _ = asked((200, KEK), (200, dek()), (200, KEK), (200, dek()))
    hidden = apply(executor, context(), b"\xff\xfe", "BYTES")

    assert b"\xff\xfe" == apply(executor, context("READ"), hidden, "BYTES")
    assert b"\xff\xfe" == apply(executor, context("READ"), memoryview(hidden), "BYTES")
    with pytest.raises(RuleError, match="expected encrypted text"):
        apply(executor, context("READ"), base64.b64encode(hidden).decode())


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        pytest.param("INT", 4711, id="an int"),
        pytest.param("FIXED", b"4711", id="fixed"),
        pytest.param("ENUM", "4711", id="enum"),
        pytest.param("STRING", 4711, id="not a string"),
        pytest.param("STRING", b"4711", id="a string that is bytes"),
        pytest.param("BYTES", "4711", id="bytes that are a string"),
    ],
)
def test_only_strings_and_bytes_are_encrypted(asked, type_name, value):
    """Any other type is an error when written, and the value does not show."""
    executor, server = asked((200, KEK), (200, dek()))

    with pytest.raises(RuleError, match="expected a string or bytes") as refused:
        apply(executor, context(), value, type_name)

    assert "4711" not in str(refused.value)
    assert [] == server.requests


def test_what_needs_no_key(asked):
    """Null stays null, and a value of a type that is never encrypted is read unchanged."""
    executor, server = asked((500, DOWN))

    assert apply(executor, context(), None) is None
    assert apply(executor, context("READ"), None) is None
    assert 7 == apply(executor, context("READ"), 7, "INT")
    assert [] == server.requests


@pytest.mark.parametrize(
    ("mode", "kind"), [("UPGRADE", "TRANSFORM"), ("DOWNGRADE", "TRANSFORM"), ("WRITE", "CONDITION")]
)
def test_encryption_is_a_transform_of_writing_and_reading(asked, mode, kind):
    """A rule of another kind or mode is refused with the reason."""
    executor, _ = asked((500, DOWN))

    with pytest.raises(RuleError, match="encryption rule of the kind TRANSFORM"):
        apply(executor, context(mode, kind=kind), "Ann")


def test_a_record_of_no_topic(asked):
    """A record without a subject has no data key, and the registry is not asked."""
    executor, server = asked((500, DOWN))

    with pytest.raises(RuleError, match="pass the topic of the record"):
        apply(executor, context("READ", subject=""), "Ann")

    assert [] == server.requests


def test_a_registry_that_is_down(asked):
    """While the registry is down the record is not written, and the error does not show the value."""
    executor, _ = asked((500, DOWN))

    with pytest.raises(RuleError, match=r"User\.name cannot be encrypted: .*no leader") as refused:
        apply(executor, context(), "Ann")

    assert "Ann" not in str(refused.value)


def test_a_registry_without_data_keys(asked):
    """A 404 of a registry without data keys does not count as a missing key, and nothing is registered."""
    executor, server = asked((404, {"error_code": 404, "message": "HTTP 404 Not Found"}))

    with pytest.raises(RuleError, match="HTTP 404 Not Found"):
        apply(executor, context(), "Ann")

    assert 1 == len(server.requests)


# Shared keys, other services


def test_a_shared_kek_leaves_the_making_to_the_registry(asked):
    """With a shared KEK the registry has its own KMS, and returns the plain key."""
    made = dek(keyMaterial=base64.b64encode(MATERIAL[1]).decode(), encryptedKeyMaterial=None)
    executor, server = asked((200, KEK | {"shared": True}), (404, NO_KEY), (200, made), settings={})

    assert "Ann" == opened(apply(executor, context(), "Ann"))
    assert "encryptedKeyMaterial" not in server.requests[-1].body


def test_another_kms_is_another_driver(asked):
    """Another KMS driver gets the user's settings and the KEK's properties, and is tried with each key id."""
    made: list[tuple[Any, Any]] = []
    tried: list[str] = []

    class MyKms:
        def __init__(self, settings, properties):
            made.append((settings, properties))

        def wrap(self, key_id, material):
            raise AssertionError(key_id)

        def unwrap(self, key_id, wrapped):
            tried.append(key_id)
            if key_id != "in-east":
                raise CipherError("not here")
            return wrapped

    properties = {"region": "west", "encrypt.alternate.kms.key.ids": "in-north, in-east"}
    kek = KEK | {"kmsType": "my-kms", "kmsProps": properties}
    key = dek(encryptedKeyMaterial=base64.b64encode(MATERIAL[1]).decode())
    executor, _ = asked((200, kek), (200, key), settings={"role": "r"}, drivers={**DRIVERS, "my-kms": MyKms})

    assert "Ann" == opened(apply(executor, context(kms_type="my-kms"), "Ann"))
    assert [({"role": "r"}, properties)] == made
    assert ["key-1", "in-north", "in-east"] == tried


def test_preparing_finds_a_key_without_the_secret(asked):
    """A caller that only sends a wrapped key along need not unwrap it; to add a missing key it needs the secret."""
    there, server = asked((200, KEK), (200, dek()), (200, KEK), (200, dek()), settings={})
    missing, _ = asked((404, NO_KEY), (200, KEK), (404, NO_KEY), (404, NO_KEY), (404, NO_KEY), settings={})
    other = (200, KEK | {"kmsKeyId": "key-2"})
    of_another, _ = asked(other, other, (200, dek()))

    there.prepare(context())
    with pytest.raises(RuleError, match="there is no data key to encrypt with: local-kms needs the setting"):
        missing.prepare(context())
    with pytest.raises(RuleError, match="kek-1: expected the KMS key id key-1 of the rule, got key-2"):
        of_another.prepare(context())

    assert ["GET", "GET"] == [path.split()[0] for path in paths(server)[-2:]]


def test_preparing_renews_an_old_key(asked):
    """An expired key is replaced, and the new one is asked for, so that an answer kept for others has it."""
    newest = (200, dek(version=2))
    executor, server = asked((200, KEK), (200, dek(age_days=2)), newest, (200, KEK), newest)

    executor.prepare(context(dek_expiry_days="1"))

    assert "POST /keks/kek-1/deks/s" == paths(server)[2]
    assert "GET /keks/kek-1/deks/s/versions/-1?algorithm=AES256_GCM&deleted=false" == paths(server)[-1]
