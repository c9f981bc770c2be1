"""The registry does not choose where tokens and data keys go: key ids pass the client's settings first."""

import pytest

from harness.fake_kms import fake_kms
from strata.serdes.encryption.ciphers import CipherError
from strata.serdes.encryption.dek_registry import Kek
from strata.serdes.encryption.key_ids import check_endpoint, check_key_id
from strata.serdes.encryption.kms import DRIVERS, Service

VAULT, AZURE, AWS, GCP = "hcvault", "azure-kms", "aws-kms", "gcp-kms"
ARN = "arn:aws:kms:eu-west-1:123456789012:key/k"
NAME = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
OTHER = "for which no credentials were given"
ROWS = [
    # type, key id, kms.allowed, VAULT_ADDR, the refusal (None: it may be used)
    (VAULT, "https://vault:8200/transit/keys/k", None, None, OTHER),
    (VAULT, "https://vault:8200/transit/keys/k", None, "https://vault:8200", None),
    (VAULT, "https://vault:8200/transit/keys/k", None, "https://vault:8201", OTHER),
    (VAULT, "https://vault/transit/keys/k", None, "https://vault:443/", None),
    (VAULT, "https://elsewhere:8200/transit/keys/k", None, "https://vault:8200", OTHER),
    (VAULT, "https://vault:8200/transit/keys/k", "https://vault:8200/transit/keys/k", None, None),
    (VAULT, "https://vault:8200/transit/keys/k", "hcvault://https://vault:8200/transit/keys/*", None, None),
    (VAULT, "https://vault:8200/transit/keys/k", "vault:8200", None, None),
    (VAULT, "https://VAULT:8200/transit/keys/k", "vault:8200", None, None),
    (VAULT, "https://vault:8200/transit/keys/k", "vault", None, "not in the setting"),
    (VAULT, "https://vault/transit/keys/k", "vault", None, None),
    (VAULT, "https://vault:8200/transit/keys/k", "https://vault:8200/*/keys/k", None, None),
    (VAULT, "https://vault:8200/a/b/keys/k", "https://vault:8200/*/keys/k", None, "not in the setting"),
    (VAULT, "https://elsewhere/x.vault.example/keys/k", "https://*.vault.example/*", None, "not in the setting"),
    (VAULT, "https://elsewhere/transit/keys/k", "vault:8200", "https://elsewhere", "not in the setting"),
    (VAULT, "https://vault@elsewhere/transit/keys/k", "https://vault*", None, "is not a key id"),
    (VAULT, "https://vault:8200/../sys/keys/k", "vault:8200", None, "is not a key id"),
    (VAULT, "https://vault:8200/transit/keys/k?x=1", "vault:8200", None, "is not a key id"),
    (VAULT, "https://vault:8200/transit%2fkeys/k", "vault:8200", None, "is not a key id"),
    (VAULT, "https://vault\\@elsewhere/transit/keys/k", "https://vault*", None, "is not a key id"),
    (VAULT, "http://vault:8200/transit/keys/k", "http://vault:8200/*", "http://vault:8200", "in clear text"),
    (VAULT, "http://127.0.0.1:8200/transit/keys/k", None, "http://127.0.0.1:8200", None),
    (VAULT, "http://localhost:8200/transit/keys/k", "localhost:8200", None, None),
    (VAULT, "http://[::1]:8200/transit/keys/k", "http://[::1]:8200/*", None, None),
    (VAULT, "http://127.0.0.1.elsewhere:8200/transit/keys/k", "http://127.0.0.1*", None, "in clear text"),
    (AZURE, "https://v.vault.azure.net/keys/k", None, None, None),
    (AZURE, "https://v.managedhsm.azure.net/keys/k", None, None, None),
    (AZURE, "https://v.vault.azure.cn/keys/k", None, None, OTHER),
    (AZURE, "https://vault.azure.net.elsewhere/keys/k", None, None, OTHER),
    (AZURE, "https://v.vault.azure.net:444/keys/k", None, None, OTHER),
    (AZURE, "https://elsewhere/keys/k", None, None, OTHER),
    (AZURE, "https://elsewhere/keys/k", "elsewhere", None, None),
    (AZURE, "https://w.vault.azure.net/keys/k", "https://v.vault.azure.net/*", None, "not in the setting"),
    (AWS, ARN, None, None, None),
    (AWS, ARN, "arn:aws:kms:eu-west-1:123456789012:*", None, None),
    (AWS, ARN, f"other, aws-kms://{ARN}", None, None),
    (AWS, ARN, ["arn:aws:kms:*:123456789012:key/k"], None, None),
    (AWS, ARN, "arn:aws:kms:eu-west-1:999999999999:*", None, "not in the setting"),
    (GCP, NAME, None, None, None),
    (GCP, NAME, "projects/p/*", None, None),
    (GCP, NAME, "projects/q/*", None, "not in the setting"),
    ("my-kms", "k", None, None, None),
    ("my-kms", "k", "j", None, "not in the setting"),
]


@pytest.mark.parametrize(("kms_type", "key_id", "allowed", "address", "says"), ROWS)
def test_which_keys_may_be_used(monkeypatch, kms_type, key_id, allowed, address, says):
    """A key is used if the setting names it; without the setting, if the credentials were given for its host."""
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    monkeypatch.delenv("AZURE_AUTHORITY_HOST", raising=False)
    if address is not None:
        monkeypatch.setenv("VAULT_ADDR", address)
    settings = {} if allowed is None else {"kms.allowed": allowed}
    if says is None:
        check_key_id(kms_type, key_id, settings)
        return
    with pytest.raises(CipherError, match=says):
        check_key_id(kms_type, key_id, settings)


def test_the_cloud_of_azure_is_the_users(monkeypatch):
    """Vaults of another cloud are not those of the credentials."""
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "https://login.microsoftonline.us")
    check_key_id(AZURE, "https://v.vault.usgovcloudapi.net/keys/k", {})
    with pytest.raises(CipherError, match=OTHER):
        check_key_id(AZURE, "https://v.vault.azure.net/keys/k", {})


@pytest.mark.parametrize("url", ["http://kms.example", "ftp://kms", "https://u@kms", "kms.example", "https://kms?a=b"])
def test_an_endpoint_of_the_settings(url):
    """An endpoint is https, or http on loopback."""
    with pytest.raises(CipherError):
        check_endpoint(url, "gcp.kms.endpoint")
    assert "http://127.0.0.1:9" == check_endpoint("http://127.0.0.1:9/", "gcp.kms.endpoint")


@pytest.fixture
def two():
    """Yield two services: the user's, and one that only the registry names."""
    with fake_kms() as ours, fake_kms() as elsewhere:
        yield ours, elsewhere


def kek(key_id, **properties):
    """Return a KEK of the registry."""
    return Kek("k", VAULT, key_id, tuple(sorted((name.replace("_", "."), value) for name, value in properties.items())))


def test_nothing_reaches_a_host_that_only_the_registry_names(two, monkeypatch):
    """Neither token nor data key goes to a key id or an alternate one that the user did not allow."""
    ours, elsewhere = two
    monkeypatch.setenv("VAULT_ADDR", ours.url)
    settings = {"token.id": "root"}
    with pytest.raises(CipherError, match=r"kms\.allowed"):
        Service(kek(f"{elsewhere.url}/transit/keys/k"), settings, DRIVERS).wrap(b"key")
    others = f"{elsewhere.url}/transit/keys/k, {ours.url}/transit/keys/k"
    service = Service(kek(f"{elsewhere.url}/transit/keys/j", encrypt_alternate_kms_key_ids=others), settings, DRIVERS)
    assert b"key" == service.unwrap(service.wrap(b"key"))

    assert [] == elsewhere.requests
    assert 2 == len(ours.requests)


def test_the_properties_of_a_kek_never_win(two, monkeypatch):
    """The user's token, namespace and alternate ids are used, whatever the registry says."""
    ours, elsewhere = two
    monkeypatch.delenv("VAULT_NAMESPACE", raising=False)
    theirs = {
        "token_id": "theirs",
        "namespace": "theirs",
        "kms_allowed": elsewhere.url.removeprefix("http://"),
        "encrypt_alternate_kms_key_ids": f"{ours.url}/transit/keys/theirs",
    }
    settings = {
        "token.id": "root",
        "namespace": "ours",
        "kms.allowed": ours.url.removeprefix("http://"),
        "encrypt.alternate.kms.key.ids": f"{ours.url}/transit/keys/ours",
    }
    Service(kek(f"{elsewhere.url}/transit/keys/k", **theirs), settings, DRIVERS).wrap(b"key")

    assert [] == elsewhere.requests
    assert ["POST /v1/transit/encrypt/ours"] == ours.requests
    assert "ours" == {name.lower(): value for name, value in ours.headers.items()}["x-vault-namespace"]


def test_wrap_and_unwrap_go_through_the_alternate_ids(two):
    """A key that fails is passed over, when wrapping too; if all fail, the error has all reasons."""
    ours, _ = two
    settings = {"token.id": "root", "kms.allowed": ours.url.removeprefix("http://")}
    first, second = f"{ours.url}/gone/keys/k", f"{ours.url}/transit/keys/k"
    service = Service(kek(first, encrypt_alternate_kms_key_ids=second), settings, DRIVERS)
    assert b"key" == service.unwrap(service.wrap(b"key"))
    ours.vault.tokens.clear()
    with pytest.raises(CipherError, match=r"403: permission denied; .*403: permission denied"):
        service.wrap(b"key")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(two, scripted_servers, answer, status):
    """A service that was allowed cannot send tokens and keys on to another host."""
    _, elsewhere = two
    path = "/v1/transit/encrypt/k"
    server = scripted_servers(answer(status=status, headers={"Location": elsewhere.url + path}))
    settings = {"token.id": "root", "kms.allowed": server.url.removeprefix("http://")}
    with pytest.raises(CipherError, match=f"answered {status}"):
        Service(kek(f"{server.url}/transit/keys/k"), settings, DRIVERS).wrap(b"key")

    assert [path] == [request.path for request in server.requests]
    assert [] == elsewhere.requests
