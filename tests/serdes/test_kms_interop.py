"""confluent-kafka and Strata read each other's records with keys of the same KMS, over the real registry.

AWS is moto; Vault is a fake, and the real transit engine if it was built. confluent-kafka reaches Azure over
TLS alone, so its cipher and ours are compared on the same RSA key. The libraries take long to import, so each test
imports those that it needs.
"""

import json
from contextlib import ExitStack
from types import SimpleNamespace
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives import serialization

from harness.fake_kms import aws_kms, fake_kms, rsa_key
from harness.transit import PROGRAM, real_transit
from strata.serdes.avro import AvroDeserializer, AvroSerializer
from strata.serdes.client import RegistryClient, Schema
from strata.serdes.encryption.azure_kms import AzureKms
from strata.serdes.encryption.ciphers import new_material
from strata.serdes.encryption.gcp_kms import GcpKms
from strata.serdes.model import Rule, RuleSet
from strata.serdes.subject_name_strategies import Context

PERSON = json.dumps(
    {
        "type": "record",
        "name": "Person",
        "fields": [{"name": "name", "type": "string", "confluent:tags": ["PII"]}, {"name": "age", "type": "int"}],
    }
)
ANN = {"name": "Ann Ünï", "age": 41}


@pytest.fixture(scope="module")
def aws():
    """Yield type, key id and settings of AWS KMS."""
    with aws_kms() as client:
        arn = client.create_key()["KeyMetadata"]["Arn"]
        yield "aws-kms", arn, {"access.key.id": "a", "secret.access.key": "b"}


@pytest.fixture
def vault(monkeypatch):
    """Yield the same of the fake of Vault, where both sides log in by a role."""
    monkeypatch.delenv("VAULT_TOKEN", raising=False)
    with fake_kms() as kms:
        allowed = kms.url.removeprefix("http://")
        role = {"approle.role.id": "role", "approle.secret.id": "secret of the role"}
        yield "hcvault", f"{kms.url}/transit/keys/{uuid4().hex}", {**role, "kms.allowed": allowed}


@pytest.fixture
def transit():
    """Yield the same of Vault's own transit engine."""
    with real_transit() as (url, token):
        allowed = url.removeprefix("http://")
        yield "hcvault", f"{url}/transit/keys/{uuid4().hex}", {"token.id": token, "kms.allowed": allowed}


@pytest.fixture(
    params=[
        "aws",
        "vault",
        pytest.param(
            "transit",
            marks=[
                pytest.mark.slow,
                pytest.mark.skipif(not PROGRAM.exists(), reason="needs python -m harness.transit"),
            ],
        ),
    ]
)
def service(request):
    """Return type, key id and settings of a KMS."""
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("rotated", ["0", "30"])
def test_both_read_what_either_writes(registry_url, service, rotated):
    """The data key that one side wraps is unwrapped by the other."""
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirAvroDeserializer
    from confluent_kafka.schema_registry.avro import AvroSerializer as TheirAvroSerializer
    from confluent_kafka.schema_registry.rule_registry import RuleRegistry
    from confluent_kafka.schema_registry.rules.encryption.awskms.aws_driver import AwsKmsDriver
    from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import FieldEncryptionExecutor
    from confluent_kafka.schema_registry.rules.encryption.hcvault.hcvault_driver import HcVaultKmsDriver
    from confluent_kafka.serialization import MessageField, SerializationContext

    kms_type, key_id, settings = service
    AwsKmsDriver.register()
    HcVaultKmsDriver.register()
    with ExitStack() as stack:
        ours = stack.enter_context(RegistryClient(registry_url))
        theirs = stack.enter_context(SchemaRegistryClient({"url": registry_url}))
        rules, executor = RuleRegistry(), FieldEncryptionExecutor()
        rules.register_executor(executor)
        stack.callback(executor.close)
        conf = {f"rule.executors._default_.param.{name}": value for name, value in settings.items()}
        writing = {"auto.register.schemas": False, "use.latest.version": True}
        more = {"rule_conf": dict(settings), "rule_registry": rules}
        for first in ("ours", "theirs"):
            topic = uuid4().hex[:8]
            params = {
                "encrypt.kek.name": f"kek-{topic}",
                "encrypt.kms.type": kms_type,
                "encrypt.kms.key.id": key_id,
                "encrypt.dek.expiry.days": rotated,
            }
            rule = Rule(name="hide", type="ENCRYPT", tags=frozenset({"PII"}), params=params)
            ours.register(f"{topic}-value", Schema(PERSON, rule_set=RuleSet(domain_rules=(rule,))))
            place, context = SerializationContext(topic, MessageField.VALUE), Context(topic)
            write_ours = AvroSerializer(ours, PERSON, conf={**conf, **writing})
            write_theirs = TheirAvroSerializer(theirs, PERSON, conf=writing, **more)
            frames = [write_ours(ANN, context)] if first == "ours" else []
            frames += [write_theirs(dict(ANN), place), write_ours(ANN, context)]
            read_ours, read_theirs = AvroDeserializer(ours, conf=conf), TheirAvroDeserializer(theirs, **more)
            for frame in frames:
                assert b"Ann" not in frame
                assert [ANN, ANN] == [read_ours(frame, context), read_theirs(frame, place)]


@pytest.mark.parametrize("saved", [True, False])
def test_azure_by_the_same_key(saved):
    """confluent-kafka's cipher unwraps what our driver wraps, and the other way round, with a version and without."""
    from azure.keyvault.keys import JsonWebKey
    from azure.keyvault.keys.crypto import CryptographyClient, EncryptionAlgorithm
    from confluent_kafka.schema_registry.rules.encryption.azurekms.azure_aead import AzureKmsAead

    material = new_material("AES256_GCM")
    with fake_kms() as kms:
        kms.azure.rotate("k")
        version, key = kms.azure.keys["k"][0]
        numbers = key.private_numbers()
        public = numbers.public_numbers

        def part(number):
            return number.to_bytes((number.bit_length() + 7) // 8, "big")

        jwk = JsonWebKey(
            kid=f"{kms.url}/keys/k/{version}", kty="RSA", key_ops=["encrypt", "decrypt"], n=part(public.n),
            e=part(public.e), d=part(numbers.d), p=part(numbers.p), q=part(numbers.q), dp=part(numbers.dmp1),
            dq=part(numbers.dmq1), qi=part(numbers.iqmp),
        )  # fmt: skip
        local = CryptographyClient.from_jwk(jwk)
        target = (lambda: (local, version)) if saved else None
        theirs = AzureKmsAead(local, EncryptionAlgorithm.rsa_oaep_256, target, lambda _: local)
        credential = SimpleNamespace(get_token=lambda _: SimpleNamespace(token="azure-token"))
        settings = {"encrypt.azure.key.version.save": str(saved).lower()}
        ours, key_id = AzureKms(settings, {}, credential=lambda _: credential), f"{kms.url}/keys/k"

        assert material == theirs.decrypt(ours.wrap(key_id, material), b"")
        assert material == ours.unwrap(key_id, theirs.encrypt(material, b""))


def test_google_by_the_same_key():
    """Google's library, as confluent-kafka calls it by Tink, unwraps what our driver wraps, and the other way round."""
    from google.cloud import kms_v1
    from google.cloud.kms_v1.services.key_management_service.transports import rest
    from google.oauth2 import credentials as oauth2_credentials
    from tink.integration.gcpkms._gcp_kms_client import _GcpKmsAead

    material, key_id = new_material("AES256_GCM"), "projects/p/locations/l/keyRings/r/cryptoKeys/k"
    with fake_kms() as kms:
        kms.google.rotate(key_id)
        kms.google.tokens.add("google-token")
        host = kms.url.removeprefix("http://")
        credentials = oauth2_credentials.Credentials(token="google-token")
        transport = rest.KeyManagementServiceRestTransport(host=host, url_scheme="http", credentials=credentials)
        theirs = _GcpKmsAead(kms_v1.KeyManagementServiceClient(transport=transport), key_id)
        ours = GcpKms(google_account(kms.url), {})

        assert material == theirs.decrypt(ours.wrap(key_id, material), b"")
        assert material == ours.unwrap(key_id, theirs.encrypt(material, b""))
        kms.google.rotate(key_id)
        assert material == theirs.decrypt(ours.wrap(key_id, material), b"")


def google_account(url):
    """Return the settings of a service account."""
    key = rsa_key()
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return {
        "client.id": "1",
        "client.email": "strata@p.iam",
        "private.key.id": "key",
        "private.key": text,
        "token.uri": f"{url}/token",
        "gcp.kms.endpoint": url,
    }
