"""The drivers of cloud KMSs wrap and unwrap data keys, after rotations and with every kind of credentials.

AWS is moto, in this process. The other services are fakes on loopback that speak the documented wire form; Vault's real
transit engine runs in `tests/serdes/test_kms_interop.py`.
"""

import base64
import threading
from functools import cache
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives import serialization

from harness.fake_kms import aws_kms, fake_kms, rsa_key
from strata.serdes.encryption.aws_kms import AwsKms
from strata.serdes.encryption.azure_kms import AzureKms
from strata.serdes.encryption.ciphers import ALGORITHMS, CipherError, new_material
from strata.serdes.encryption.gcp_kms import GcpKms
from strata.serdes.encryption.hcvault import HcVault

MATERIAL = new_material("AES256_GCM")
STATIC = {"access.key.id": "AKIAEXAMPLE", "secret.access.key": "secret of the key"}
GOOGLE_KEY = "projects/p/locations/global/keyRings/r/cryptoKeys/k"


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Remove what the environment of the tests may say about credentials."""
    for name in ("VAULT_TOKEN", "VAULT_ADDR", "VAULT_NAMESPACE", "AWS_PROFILE", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kms():
    """Yield the fakes."""
    with fake_kms() as services:
        yield services


@pytest.fixture(scope="module")
def aws():
    """Yield a client of AWS KMS."""
    with aws_kms() as client:
        yield client


def arn_of(aws):
    """Return the ARN of a new key."""
    return aws.create_key()["KeyMetadata"]["Arn"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_aws(aws, algorithm):
    """A key and its alias wrap and unwrap every kind of data key; another key unwraps nothing."""
    arn, other, material = arn_of(aws), arn_of(aws), new_material(algorithm)
    aws.create_alias(AliasName=f"alias/{algorithm}", TargetKeyId=arn)
    alias = arn.partition(":key/")[0] + f":alias/{algorithm}"
    driver = AwsKms(STATIC, {})
    for key_id in (arn, alias):
        assert material == driver.unwrap(key_id, driver.wrap(key_id, material))
    with pytest.raises(CipherError, match=f"AWS KMS refused to decrypt with {other}: "):
        driver.unwrap(other, driver.wrap(arn, material))
    assert material == aws.decrypt(CiphertextBlob=driver.wrap(arn, material))["Plaintext"]


def test_aws_after_a_rotation(aws):
    """What was wrapped before a rotation is unwrapped after it."""
    arn, driver = arn_of(aws), AwsKms(STATIC, {})
    wrapped = driver.wrap(arn, MATERIAL)
    aws.rotate_key_on_demand(KeyId=arn)

    assert MATERIAL == driver.unwrap(arn, wrapped)


@pytest.mark.parametrize("key_id", ["alias/strata", "1234abcd-12ab", "arn:aws:s3:eu-west-1:1:key/k", "arn:aws:kms:x"])
def test_aws_wants_a_full_arn(aws, key_id):
    """An id without a region is refused, with what is expected."""
    with pytest.raises(CipherError, match="expected the full ARN"):
        AwsKms(STATIC, {}).wrap(key_id, MATERIAL)


ROLE, OTHER_ROLE = "arn:aws:iam::123456789012:role/strata", "arn:aws:iam::123456789012:role/other"
PLAIN = {"RoleArn": ROLE, "RoleSessionName": "confluent-encrypt"}
NAMED = {"role.arn": ROLE, "role.session.name": "reader", "role.external.id": "of us"}
WEB = {"AWS_ROLE_ARN": OTHER_ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token"}
ROLES = [
    # settings, environment, what STS is asked for
    ("no role", {}, {}, []),
    ("a role of the settings", {"role.arn": ROLE}, {}, [PLAIN]),
    (
        "all settings",
        NAMED,
        {"AWS_ROLE_ARN": OTHER_ROLE},
        [{"RoleArn": ROLE, "RoleSessionName": "reader", "ExternalId": "of us"}],
    ),
    (
        "a role of the environment",
        {},
        {"AWS_ROLE_ARN": ROLE, "AWS_ROLE_SESSION_NAME": "writer", "AWS_ROLE_EXTERNAL_ID": "of us"},
        [{"RoleArn": ROLE, "RoleSessionName": "writer", "ExternalId": "of us"}],
    ),
    ("a role of a web identity", {}, WEB, []),
    ("an explicit role beside a web identity", {"role.arn": ROLE}, WEB, [PLAIN]),
]


@pytest.mark.parametrize(
    ("settings", "environment", "expected"), [row[1:] for row in ROLES], ids=[row[0] for row in ROLES]
)
def test_aws_roles(aws, monkeypatch, settings, environment, expected):
    """An explicit role is assumed in any case, one of the environment unless there is a web identity."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    from botocore.client import BaseClient

    asked, real = [], BaseClient._make_api_call

    def recorded(client, name, options):
        if name.startswith("Assume"):
            asked.append(options)
        return real(client, name, options)

    monkeypatch.setattr(BaseClient, "_make_api_call", recorded)
    arn, driver = arn_of(aws), AwsKms({**STATIC, **settings}, {})

    assert MATERIAL == driver.unwrap(arn, driver.wrap(arn, MATERIAL))
    assert expected == asked


def test_aws_without_credentials(monkeypatch):
    """A missing credential is named, and nothing is sent."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    with pytest.raises(CipherError, match="Unable to locate credentials"):
        AwsKms({}, {}).wrap("arn:aws:kms:eu-west-1:123456789012:key/k", MATERIAL)


@pytest.mark.parametrize("mount", ["transit", "team/transit"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_vault(kms, mount, algorithm):
    """Vault wraps and unwraps every kind of data key, with the newest version and any older one."""
    driver, key_id, material = HcVault({"token.id": "root"}, {}), f"{kms.url}/{mount}/keys/k", new_material(algorithm)
    first = driver.wrap(key_id, material)
    kms.vault.rotate("k")
    second = driver.wrap(key_id, material)

    assert (b"vault:v1:", b"vault:v2:") == (first[:9], second[:9])
    assert [material] * 2 == [driver.unwrap(key_id, wrapped) for wrapped in (first, second)]
    assert [f"POST /v1/{mount}/encrypt/k"] * 2 + [f"POST /v1/{mount}/decrypt/k"] * 2 == kms.requests


def test_the_headers_of_vault(kms, monkeypatch):
    """Token and namespace go as headers; the user's namespace wins over that of the KEK."""
    monkeypatch.setenv("VAULT_TOKEN", "root")
    for settings, properties, expected in (
        ({}, {}, None),
        ({}, {"namespace": "theirs", "token.id": "theirs"}, "theirs"),
        ({"namespace": "ours"}, {"namespace": "theirs"}, "ours"),
    ):
        HcVault(settings, properties).wrap(f"{kms.url}/transit/keys/k", MATERIAL)
        sent = {name.lower(): value for name, value in kms.headers.items()}
        assert ("root", "true", expected) == tuple(
            sent.get(name) for name in ("x-vault-token", "x-vault-request", "x-vault-namespace")
        )


@pytest.mark.parametrize("lease", [3600, 0])
def test_approle_logs_in_once_and_again_when_it_is_refused(kms, lease):
    """One login serves all threads until the token is revoked; then the driver logs in again, once."""
    kms.vault.lease = lease
    settings = {"approle.role.id": "role", "approle.secret.id": "secret of the role", "token.id": "not used"}
    driver, key_id = HcVault(settings, {}), f"{kms.url}/transit/keys/k"
    threads = [threading.Thread(target=driver.wrap, args=(key_id, MATERIAL)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == kms.vault.logins
    kms.vault.tokens.clear()
    wrapped = driver.wrap(key_id, MATERIAL)

    assert MATERIAL == driver.unwrap(key_id, wrapped)
    assert 2 == kms.vault.logins


def test_a_token_of_approle_is_replaced_before_its_lease_ends(kms):
    """A lease of a second is over before the next call that takes longer."""
    kms.vault.lease = 1
    settings = {"approle.role.id": "role", "approle.secret.id": "secret of the role"}
    driver, key_id = HcVault(settings, {}), f"{kms.url}/transit/keys/k"
    driver.wrap(key_id, MATERIAL)
    base = next(iter(driver._logins))
    driver._logins[base] = driver._logins[base][0], 0.0
    driver.wrap(key_id, MATERIAL)

    assert 2 == kms.vault.logins


@pytest.mark.parametrize(
    ("wrapped", "settings", "says"),
    [
        (b"vault:v1:AAAAAAAAAAAAAAAAAAAAAAAAAAAA", {"token.id": "root"}, "400: cipher: message authentication failed"),
        (b"raw", {"token.id": "root"}, "is not a ciphertext of Vault"),
        (b"vault:v1:AAAA", {"token.id": "other-token"}, "403: permission denied"),
        (b"vault:v1:AAAA", {"approle.role.id": "r", "approle.secret.id": "s-of-r"}, "400: invalid role or secret ID"),
    ],
)
def test_what_vault_refuses(kms, wrapped, settings, says):
    """The error has Vault's reason and no secret."""
    kms.vault.rotate("k")
    with pytest.raises(CipherError, match=says) as refused:
        HcVault(settings, {}).unwrap(f"{kms.url}/transit/keys/k", wrapped)

    assert not any(value in str(refused.value) for value in settings.values() if len(value) > 4)


def test_vault_without_credentials():
    """The setting that is missing is named."""
    with pytest.raises(CipherError, match=r"param\.token\.id"):
        HcVault({"approle.role.id": "half"}, {})


def azure(settings=None, properties=None, token="azure-token"):
    """Return a driver of Azure with a token."""
    scopes = []
    credential = SimpleNamespace(get_token=lambda scope: scopes.append(scope) or SimpleNamespace(token=token))
    driver = AzureKms(settings or {}, properties or {}, credential=lambda _: credential)
    driver.scopes = scopes
    return driver


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_azure(kms, algorithm):
    """The version is written by default, so that a rotation changes nothing for what was wrapped before."""
    kms.azure.rotate("k")
    driver, key_id, material = azure(), f"{kms.url}/keys/k", new_material(algorithm)
    first = driver.wrap(key_id, material)
    kms.azure.rotate("k")
    second = driver.wrap(key_id, material)

    versions = [version.encode() for version, _ in kms.azure.keys["k"]]
    assert [b"azure:v1:" + version + b":" for version in versions] == [first[:42], second[:42]]
    assert [material] * 2 == [driver.unwrap(key_id, wrapped) for wrapped in (first, second)]
    assert {"https://vault.azure.net/.default"} == set(driver.scopes)


@pytest.mark.parametrize("place", ["settings", "properties"])
def test_azure_without_the_version(kms, place):
    """Without the version a block is decrypted with the newest version, and then with the others."""
    for _ in range(3):
        kms.azure.rotate("k")
    driver, key_id = azure(**{place: {"encrypt.azure.key.version.save": "false"}}), f"{kms.url}/keys/k"
    first = driver.wrap(key_id, MATERIAL)
    assert 256 == len(first)
    for _ in range(2):
        kms.azure.rotate("k")

    assert MATERIAL == azure().unwrap(key_id, first)
    assert MATERIAL == azure().unwrap(f"{key_id}/{kms.azure.keys['k'][4][0]}", first)


def test_azure_of_a_named_version(kms):
    """A key id with a version wraps with that version."""
    for _ in range(2):
        kms.azure.rotate("k")
    version = kms.azure.keys["k"][0][0]
    wrapped = azure().wrap(f"{kms.url}/keys/k/{version}", MATERIAL)

    assert wrapped.startswith(f"azure:v1:{version}:".encode())
    assert MATERIAL == azure().unwrap(f"{kms.url}/keys/k", wrapped)


@pytest.mark.parametrize("version", [b"../../../secrets/s/0000000000000", b"0" * 31, b"G" * 32, b""])
def test_a_version_that_is_not_one_of_azure(kms, version):
    """What would become a part of a URL is checked first."""
    kms.azure.rotate("k")
    with pytest.raises(CipherError, match="names a version that is not one"):
        azure().unwrap(f"{kms.url}/keys/k", b"azure:v1:" + version + b":" + b"x" * 256)

    assert [] == kms.requests


@pytest.mark.parametrize(
    ("key", "token", "says"),
    [
        ("gone", "azure-token", "404: KeyNotFound"),
        ("k", "other-token", "401: Unauthorized"),
        ("k", "azure-token", "400"),
    ],
)
def test_what_azure_refuses(kms, key, token, says):
    """The error has Azure's reason and no token."""
    kms.azure.rotate("k")
    with pytest.raises(CipherError, match=says) as refused:
        azure(token=token).unwrap(f"{kms.url}/keys/{key}", b"x" * 256)

    assert "other-token" not in str(refused.value)


@cache
def private_key():
    """Return a private key in PEM."""
    key = rsa_key()
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def account(kms, *, escaped=False):
    """Return the settings of a service account."""
    text = private_key()
    return {
        "account.type": "service_account",
        "client.id": "1",
        "client.email": "strata@p.iam",
        "private.key.id": "key",
        "private.key": text.replace("\n", "\\n") if escaped else text,
        "token.uri": f"{kms.url}/token",
        "gcp.kms.endpoint": kms.url,
    }


@pytest.mark.parametrize(("algorithm", "escaped"), [*((name, False) for name in ALGORITHMS), ("AES256_GCM", True)])
def test_google(kms, escaped, algorithm):
    """Google wraps and unwraps every kind of data key after a rotation, with a key in PEM in both spellings."""
    kms.google.rotate(GOOGLE_KEY)
    driver, material = GcpKms(account(kms, escaped=escaped), {}), new_material(algorithm)
    first = driver.wrap(GOOGLE_KEY, material)
    kms.google.rotate(GOOGLE_KEY)

    assert material == driver.unwrap(GOOGLE_KEY, first)
    assert material == driver.unwrap(GOOGLE_KEY, driver.wrap(GOOGLE_KEY, material))
    named = f"{GOOGLE_KEY}/cryptoKeyVersions/1"
    assert material == driver.unwrap(named, driver.wrap(named, material))
    assert 1 == len(kms.google.assertions)


def test_google_gets_a_new_token_when_one_is_refused(kms):
    """A token that was revoked is replaced once."""
    kms.google.rotate(GOOGLE_KEY)
    driver = GcpKms(account(kms), {})
    wrapped = driver.wrap(GOOGLE_KEY, MATERIAL)
    kms.google.tokens.clear()

    assert MATERIAL == driver.unwrap(GOOGLE_KEY, wrapped)
    assert 2 == len(kms.google.assertions)


@pytest.mark.parametrize("key_id", ["k", "projects/p/locations/../keyRings/r/cryptoKeys/k", "gcp-kms://" + GOOGLE_KEY])
def test_google_wants_a_whole_name(kms, key_id):
    """An id that is not the name of a key is refused, with what is expected."""
    with pytest.raises(CipherError, match="expected projects/P"):
        GcpKms(account(kms), {}).wrap(key_id, MATERIAL)


def test_what_google_refuses(kms):
    """The error has Google's reason and no part of the key."""
    kms.google.rotate(GOOGLE_KEY)
    driver, settings = GcpKms(account(kms), {}), account(kms)
    with pytest.raises(CipherError, match="400: INVALID_ARGUMENT"):
        driver.unwrap(GOOGLE_KEY, b"\1" + b"x" * 40)
    with pytest.raises(CipherError, match="404: NOT_FOUND"):
        driver.wrap(GOOGLE_KEY + "2", MATERIAL)
    with pytest.raises(CipherError, match="expected a private key in PEM") as refused:
        GcpKms({**settings, "private.key": "s3cret"}, {}).wrap(GOOGLE_KEY, MATERIAL)
    assert "s3cret" not in str(refused.value)
    assert base64.b64encode(MATERIAL).decode() not in str(refused.value)
