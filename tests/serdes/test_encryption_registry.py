"""Our executors and confluent-kafka's share the same keys over the real registry (CSFLE)."""

import base64
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from uuid import uuid4

import pytest
from confluent_kafka.schema_registry import RuleMode, SchemaRegistryError
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry.rules.encryption.dek_registry.dek_registry_client import DekRegistryClient
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import Clock, FieldEncryptionExecutor
from confluent_kafka.schema_registry.rules.encryption.localkms.local_driver import LocalKmsDriver
from confluent_kafka.schema_registry.schema_registry_client import Rule as TheirRule
from confluent_kafka.schema_registry.schema_registry_client import RuleKind, RuleParams
from confluent_kafka.schema_registry.serde import FieldContext as TheirFieldContext
from confluent_kafka.schema_registry.serde import FieldType
from confluent_kafka.schema_registry.serde import RuleContext as TheirRuleContext
from confluent_kafka.serialization import MessageField, SerializationContext

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.encryption.ciphers import ALGORITHMS
from strata.serdes.encryption.csfle import FieldEncryption, PayloadEncryption
from strata.serdes.encryption.dek_registry import DekRegistry
from strata.serdes.errors import RuleError
from strata.serdes.model import Rule
from strata.serdes.rules.executors import FieldContext, RuleContext

SECRET = {"secret": "of both sides; Tink keeps the first one that a process meets"}
DAYS = 86_400
VALUES = {"STRING": "Ann Ünï €", "BYTES": b"\x00\xff photo"}


class Later(Clock):
    """Confluent's clock, set some days ahead."""

    def __init__(self, days: float) -> None:
        self.days = days

    def now(self) -> int:
        """Return milliseconds."""
        return int((time.time() + self.days * DAYS) * 1000)


class Side:
    """A subject and a rule, to be encrypted by either side."""

    def __init__(self, url: str, subject: str, **params: str) -> None:
        self.url, self.subject = url, subject
        self.params = {
            "encrypt.kek.name": f"kek-{subject.strip(':.').replace(':', '-')}",
            "encrypt.kms.type": "local-kms",
            "encrypt.kms.key.id": "mykey",
        } | {f"encrypt.{name.replace('_', '.')}": value for name, value in params.items()}
        self.closing = ExitStack()
        self.client = self.closing.enter_context(RegistryClient(url))

    def ours(self, days: float = 0, secret: dict[str, str] = SECRET):
        """Return `(mode, type, value) -> value` of a new executor of ours, some days ahead."""
        executor = FieldEncryption(self.client, secret, clock=lambda: time.time() + days * DAYS)
        rule = Rule(name="hide", type="ENCRYPT", params=self.params)

        def apply(mode, type_name, value):
            context = RuleContext(rule, "domainRules", mode, self.subject, "t", False, None, Schema('"string"'))
            return executor.field_transform(context)(FieldContext("f", "f", type_name, frozenset(), {}), value)

        return apply

    def theirs(self, days: float = 0):
        """Return the same of a new executor of theirs."""
        executor = FieldEncryptionExecutor(Later(days))
        executor.configure({"url": self.url}, dict(SECRET))
        self.closing.callback(executor.close)
        rule = TheirRule(
            "hide", None, RuleKind.TRANSFORM, RuleMode.WRITEREAD, "ENCRYPT", [], RuleParams(self.params), None, None,
            None, False,
        )  # fmt: skip

        def apply(mode, type_name, value):
            place = SerializationContext("t", MessageField.VALUE)
            schema = TheirSchema('"string"', "AVRO")
            context = TheirRuleContext(
                None, place, None, schema, self.subject, RuleMode[mode], rule, 0, [rule], None, None
            )
            field = TheirFieldContext({}, "f", "f", FieldType(type_name), set())
            return executor.new_transform(context)(context, field, value)

        return apply

    def versions(self) -> list[int]:
        """Return the versions of the data key."""
        path = f"/dek-registry/v1/keks/{self.params['encrypt.kek.name']}/deks/{self.subject}/versions"
        query = {"algorithm": self.params.get("encrypt.dek.algorithm", "AES256_GCM")}
        return self.client.ask(list, "GET", path.replace(":", "%3A"), query=query)


@pytest.fixture
def side(registry_url):
    """Yield a factory of sides, each with its own subject."""
    LocalKmsDriver.register()
    with ExitStack() as all_of_them:

        def make(subject="", **params):
            one = Side(registry_url, f"{subject}{uuid4().hex[:8]}-value", **params)
            all_of_them.callback(one.closing.close)
            return one

        yield make


@pytest.mark.parametrize(
    ("algorithm", "expiry", "context"),
    [
        *(pytest.param(name, "0", "", id=name) for name in sorted(ALGORITHMS)),
        *(pytest.param(name, "7", "", id=f"{name}, rotated") for name in sorted(ALGORITHMS)),
        pytest.param("AES256_GCM", "7", ":.eu:", id="in a context"),
    ],
)
def test_both_read_what_either_writes(side, algorithm, expiry, context):
    """Both sides use the same keys, whichever makes them; an encrypted string is base64, bytes stay bytes."""
    for first, second in (("ours", "theirs"), ("theirs", "ours")):
        one = side(context, dek_algorithm=algorithm, dek_expiry_days=expiry)
        writer, reader = getattr(one, first)(), getattr(one, second)()

        for type_name, value in VALUES.items():
            written = writer("WRITE", type_name, value)
            again = reader("WRITE", type_name, value)

            assert type(written) is type(value)
            assert value != written
            assert (algorithm == "AES256_SIV") == (written == again)
            assert [value] * 4 == [read("READ", type_name, it) for read in (writer, reader) for it in (written, again)]
        assert [1] == one.versions()


def front(written: str) -> int:
    """Return the version of the key in a ciphertext."""
    return int.from_bytes(base64.b64decode(written)[1:5], "big")


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_keys_rotate_by_their_age(side, first):
    """The first side that meets an expired key makes the next; both write with it then, and read all."""
    one = side(dek_expiry_days="7")
    rotating, following = (one.ours, one.theirs) if first == "ours" else (one.theirs, one.ours)
    written = [
        rotating()("WRITE", "STRING", "first"),
        following(days=6.9)("WRITE", "STRING", "second"),
        rotating(days=7.1)("WRITE", "STRING", "third"),
        following(days=0)("WRITE", "STRING", "fourth"),
    ]

    assert [1, 1, 2, 2] == [front(it) for it in written]
    assert [1, 2] == one.versions()
    for reader in (one.ours(), one.theirs()):
        assert ["first", "second", "third", "fourth"] == [reader("READ", "STRING", it) for it in written]


def test_many_clients_at_once_make_one_key(side):
    """A client that is second to make a key gets 409 and uses the key of the first."""
    one = side()
    clients = [one.ours() for _ in range(6)]

    with ThreadPoolExecutor(6) as threads:
        written = list(threads.map(lambda client: client("WRITE", "STRING", "same"), clients))

    assert [1] == one.versions()
    assert {"same"} == {clients[0]("READ", "STRING", it) for it in written}


def test_another_secret(side):
    """Another secret can neither read nor write and changes nothing; with the old secret as well it can read."""
    one = side()
    written = one.ours()("WRITE", "STRING", "Ann")
    stranger = one.ours(secret={"secret": "another"})

    for mode in ("READ", "WRITE"):
        with pytest.raises(RuleError, match="wrapped with another secret"):
            stranger(mode, "STRING", written)
    assert "Ann" == one.ours(secret={"secret": "another", "old.secrets": SECRET["secret"]})("READ", "STRING", written)
    assert [1] == one.versions()


def test_payloads(side):
    """A whole payload is encrypted; damage is an error, and so is any type but bytes."""
    one = side()
    executor = PayloadEncryption(one.client, SECRET)
    rule = Rule(name="hide", type="ENCRYPT_PAYLOAD", params=one.params)
    write, read = (
        RuleContext(rule, "encodingRules", mode, one.subject, "t", False, None, Schema('"string"'))
        for mode in ("WRITE", "READ")
    )

    hidden = executor.transform(write, b"payload")

    assert b"payload" not in hidden
    assert b"payload" == executor.transform(read, hidden)
    with pytest.raises(RuleError, match="the payload cannot be decrypted: the ciphertext was changed"):
        executor.transform(read, hidden[:-1])
    with pytest.raises(RuleError, match="encoding rule"):
        executor.transform(write, {"name": "Ann"})


def test_a_key_that_is_deleted(side):
    """After a soft deletion old records stay readable, and new ones fail; after a hard deletion all fail."""
    one = side()
    written = one.ours()("WRITE", "STRING", "Ann")
    path = f"/dek-registry/v1/keks/{one.params['encrypt.kek.name']}/deks/{one.subject}"
    one.client.ask(lambda it: it, "DELETE", path)

    assert "Ann" == one.ours()("READ", "STRING", written)
    with pytest.raises(RuleError, match="cannot be encrypted"):
        one.ours()("WRITE", "STRING", "Ann")
    one.client.ask(lambda it: it, "DELETE", path, query={"permanent": "true"})
    with pytest.raises(RuleError, match="no version 1 of the data key"):
        one.ours()("READ", "STRING", written)


def test_what_is_stored(side, registry_url):
    """The registry stores wrapped keys, and neither plain keys nor the secret."""
    one = side()
    one.ours()("WRITE", "STRING", "Ann")
    theirs = one.closing.enter_context(DekRegistryClient({"url": registry_url}))
    kek, name = theirs.get_kek(one.params["encrypt.kek.name"]), one.params["encrypt.kek.name"]
    dek = theirs.get_dek(name, one.subject)

    assert ("local-kms", "mykey", None) == (kek.kms_type, kek.kms_key_id, kek.kms_props)
    assert None is dek.key_material
    assert 12 + (2 + 32) + 16 == len(base64.b64decode(dek.encrypted_key_material))
    with pytest.raises(SchemaRegistryError):
        theirs.get_kek("nobody")
    ours = DekRegistry(one.client)
    assert ours.find_kek("nobody", "s") is None
    assert ours.find_dek(name, one.subject, "AES128_GCM", 1, deleted=False) is None
