"""`strata keys rewrap` wraps the data keys of a KEK again, and records stay readable."""

import json
import sys

import pytest
from click.testing import CliRunner

from harness.fake_kms import fake_kms
from harness.neighbours import served
from strata.gitops.cli import main
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient, Rule, RuleSet, Schema

PERSON = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "fields": [{"name": "name", "type": "string", "confluent:tags": ["PII"]}],
    }
)
ANN = {"name": "Ann"}


@pytest.fixture
def kms(monkeypatch):
    """Yield a Vault."""
    monkeypatch.delenv("VAULT_TOKEN", raising=False)
    with fake_kms() as services:
        yield services


@pytest.fixture
def registry():
    """Yield a registry."""
    with served("memory:") as running:
        yield running


def param(kms):
    """Return the settings of the KMS."""
    return {"token.id": "root", "kms.allowed": kms.url.removeprefix("http://")}


def conf(kms):
    """Return the same as settings of serdes."""
    return {f"rule.executors._default_.param.{name}": value for name, value in param(kms).items()}


def written(client, kms, topic, algorithm):
    """Return a record of a topic, whose data key is made with it."""
    params = {
        "encrypt.kek.name": "customers",
        "encrypt.kms.type": "hcvault",
        "encrypt.kms.key.id": f"{kms.url}/transit/keys/k",
        "encrypt.dek.algorithm": algorithm,
    }
    rule = Rule(name="hide", type="ENCRYPT", tags=frozenset({"PII"}), params=params)
    schema = Schema(PERSON, rule_set=RuleSet(domain_rules=(rule,)))
    client.register(f"{topic}-value", schema)
    more = {"auto.register.schemas": False, "use.latest.version": True}
    return AvroSerializer(client, conf={**conf(kms), **more})(ANN, topic=topic)


def material(client, topic, algorithm):
    """Return the stored material of a data key."""
    path = f"/dek-registry/v1/keks/customers/deks/{topic}-value/versions/1"
    return client.ask(lambda dek: dek["encryptedKeyMaterial"], "GET", path, query={"algorithm": algorithm})


def rewrap(registry, folder, kms, *arguments, **changes):
    """Run the command; return its exit code and output."""
    lines = (f"{name}={value}\n" for name, value in (param(kms) | changes).items())
    (folder / "kms").write_text("# of the tests\n\n" + "".join(lines))
    given = ["keys", "rewrap", "customers", "--url", registry.url, "--kms-config", str(folder / "kms"), *arguments]
    ended = CliRunner().invoke(main, given)
    return ended.exit_code, ended.output


def test_keys_are_wrapped_again_and_records_stay_readable(registry, kms, tmp_path):
    """After a rotation the keys of all subjects and algorithms get the new version; the old one may go then."""
    topics = {"a": "AES256_GCM", "b": "AES256_SIV"}
    with RegistryClient(registry.url) as client:
        frames = {topic: written(client, kms, topic, algorithm) for topic, algorithm in topics.items()}
        before = {topic: material(client, *one) for topic, one in zip(topics, topics.items(), strict=True)}
        kms.vault.rotate("k")
        trial = rewrap(registry, tmp_path, kms, "--dry-run")
        assert (0, True) == (trial[0], "2 data keys would be wrapped again, 0 failed" in trial[1]), trial
        assert before == {topic: material(client, *one) for topic, one in zip(topics, topics.items(), strict=True)}

        done = rewrap(registry, tmp_path, kms)

        assert 0 == done[0], done
        assert ["a-value  AES256_GCM  version 1", "b-value  AES256_SIV  version 1"] == done[1].splitlines()[:2]
        kms.vault.oldest = 2
        for topic, frame in frames.items():
            assert ANN == AvroDeserializer(client, conf=conf(kms))(frame, topic=topic)


def test_keys_that_fail_are_named(registry, kms, tmp_path):
    """A key that the KMS does not unwrap is left as it is, and the others are wrapped again."""
    with RegistryClient(registry.url) as client:
        written(client, kms, "a", "AES256_GCM")
        before = material(client, "a", "AES256_GCM")
        kms.vault.rotate("k")
        kms.vault.oldest = 2
        written(client, kms, "b", "AES256_GCM")

        code, output = rewrap(registry, tmp_path, kms)

        assert 1 == code, output
        assert "strata: a-value  AES256_GCM  version 1: Vault at" in output
        assert "too old" in output
        assert "1 data key wrapped again, 1 failed" in output
        assert before == material(client, "a", "AES256_GCM")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"kms.allowed": "elsewhere"}, "is not in the setting kms.allowed"),
        ({"token.id": ""}, "hcvault needs the setting"),
    ],
)
def test_settings_of_the_kms_that_do_not_do(registry, kms, tmp_path, changes, says):
    """Nothing is sent to a KMS that the settings do not allow."""
    with RegistryClient(registry.url) as client:
        written(client, kms, "a", "AES256_GCM")
    kms.requests.clear()

    code, output = rewrap(registry, tmp_path, kms, **changes)

    assert (True, True) == (code in (1, 2), says in output), output
    assert [] == kms.requests


def test_a_kek_that_is_not_there(registry, kms, tmp_path):
    """An unknown KEK is one line and exit code 2."""
    assert (2, "strata: the registry has no key encryption key customers\n") == rewrap(registry, tmp_path, kms)


def test_without_the_extra(registry, kms, tmp_path, monkeypatch):
    """Without cryptography the error says what to install."""
    for name in [name for name in sys.modules if name.startswith("strata.serdes.encryption")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)

    code, output = rewrap(registry, tmp_path, kms)

    assert (2, True) == (code, "install strata-registry[encryption]" in output), output
