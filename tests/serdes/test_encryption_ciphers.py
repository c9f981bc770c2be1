"""Ciphers and the local KMS write and read byte for byte what Tink and Confluent's driver do (CSFLE)."""

import pytest
from confluent_kafka.schema_registry.rules.encryption.encrypt_executor import Cryptor, DekAlgorithm
from confluent_kafka.schema_registry.rules.encryption.localkms.local_client import LocalKmsClient
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.examples import examples
from strata.serdes.encryption.ciphers import ALGORITHMS, CipherError, cipher_of, new_material
from strata.serdes.encryption.kms import DRIVERS, LocalKms

NAMES = sorted(ALGORITHMS)
TEXTS = [b"", b"a", b"exactly sixteen!", bytes(range(256)) * 9]
TINK = {name: Cryptor(DekAlgorithm(name)) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("plain", TEXTS, ids=len)
def test_tink_reads_what_we_write(name, plain):
    """Tink decrypts our ciphertext, with a key that we made."""
    material = new_material(name)

    assert plain == TINK[name].decrypt(material, cipher_of(name, material).encrypt(plain), b"")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("plain", TEXTS, ids=len)
def test_we_read_what_tink_writes(name, plain):
    """Our cipher decrypts Tink's ciphertext, with a key that Tink made."""
    material = TINK[name].generate_key()

    assert plain == cipher_of(name, material).decrypt(TINK[name].encrypt(material, plain, b""))


@settings(max_examples=examples(100), deadline=None)
@given(plain=st.binary(max_size=100))
def test_siv_is_deterministic_and_tinks(plain):
    """SIV gives the same ciphertext for the same text, in Tink and here."""
    material = new_material("AES256_SIV")

    ours = cipher_of("AES256_SIV", material).encrypt(plain)

    assert ours == cipher_of("AES256_SIV", material).encrypt(plain)
    assert ours == TINK["AES256_SIV"].encrypt(material, plain, b"")


@pytest.mark.parametrize("name", ["AES128_GCM", "AES256_GCM"])
def test_gcm_never_writes_the_same(name):
    """Each GCM ciphertext has its own nonce."""
    cipher = cipher_of(name, new_material(name))

    assert 100 == len({cipher.encrypt(b"same") for _ in range(100)})


@pytest.mark.parametrize("name", NAMES)
def test_any_change_is_found(name):
    """Every flipped bit, every cut and every added byte is refused, and no error shows the text."""
    cipher = cipher_of(name, new_material(name))
    whole = cipher.encrypt(b"secret")
    flipped = [
        whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :] for at in range(len(whole)) for bit in (0, 7)
    ]
    damaged = [*flipped, *(whole[:length] for length in range(len(whole))), whole + b"\x00", b"\x00" + whole]

    for one in damaged:
        with pytest.raises(CipherError) as refused:
            cipher.decrypt(one)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_another_key_does_not_read(name):
    """No other key decrypts a ciphertext, not even one of the same algorithm."""
    with pytest.raises(CipherError, match="another key"):
        cipher_of(name, new_material(name)).decrypt(cipher_of(name, new_material(name)).encrypt(b"text"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda good: b"", id="nothing"),
        pytest.param(lambda good: good[:-1], id="cut"),
        pytest.param(lambda good: good + b"\x00", id="longer"),
        pytest.param(lambda good: good[2:], id="bare key"),
        pytest.param(lambda good: b"\x22" + good[1:], id="another field"),
        pytest.param(lambda good: b"\x1a\x18" + bytes(24), id="AES-192"),
    ],
)
def test_material_that_is_no_key(name, damage):
    """Material that is not a key of this algorithm is refused without showing it."""
    with pytest.raises(CipherError, match=f"not a key of {name}"):
        cipher_of(name, damage(new_material(name)))


def test_material_of_another_algorithm():
    """A 256-bit key is not accepted as a 128-bit one, nor an SIV key as a GCM one."""
    for made in NAMES:
        for asked in NAMES:
            if made != asked:
                with pytest.raises(CipherError):
                    cipher_of(asked, new_material(made))


@pytest.mark.parametrize("secret", ["s", "mysecret", "Gemüse €", "x" * 200])
def test_the_local_kms_is_confluents(secret):
    """Our local KMS and Confluent's unwrap each other's keys, whatever the key id."""
    theirs = LocalKmsClient(secret).get_aead("local-kms://any")
    ours = LocalKms({"secret": secret}, {})

    assert b"key" == theirs.decrypt(ours.wrap("any", b"key"), b"")
    assert b"key" == ours.unwrap("other", theirs.encrypt(b"key", b""))


def test_old_secrets_unwrap(monkeypatch):
    """After a change of the secret the old secrets still unwrap; new keys are wrapped with the new one."""
    wrapped = {name: LocalKms({"secret": name}, {}).wrap("", b"key") for name in ("one", "two", "three")}
    changed = LocalKms({"secret": "three", "old.secrets": "one,two"}, {})

    assert {"one": b"key", "two": b"key", "three": b"key"} == {
        name: changed.unwrap("", one) for name, one in wrapped.items()
    }
    assert b"key" == LocalKms({"secret": "three"}, {}).unwrap("", changed.wrap("", b"key"))
    with pytest.raises(CipherError, match="another secret"):
        LocalKms({"secret": "four", "old.secrets": "two"}, {}).unwrap("", wrapped["one"])


def test_secrets_of_the_environment(monkeypatch):
    """Environment variables replace missing settings, and only those."""
    wrapped = LocalKms({"secret": "env"}, {}).wrap("", b"key")
    monkeypatch.setenv("LOCAL_SECRET", "env")

    assert b"key" == LocalKms({}, {}).unwrap("", wrapped)
    with pytest.raises(CipherError):
        LocalKms({"secret": "own"}, {}).unwrap("", wrapped)
    monkeypatch.setenv("LOCAL_OLD_SECRETS", "older,env")
    assert b"key" == LocalKms({"secret": "own"}, {}).unwrap("", wrapped)


@pytest.mark.parametrize("settings", [{}, {"secret": ""}, {"secret": 7}], ids=["none", "empty", "a number"])
def test_no_secret(monkeypatch, settings):
    """Without a local secret the KMS is refused: a secret from the registry does not count."""
    monkeypatch.delenv("LOCAL_SECRET", raising=False)

    with pytest.raises(CipherError, match="LOCAL_SECRET"):
        DRIVERS["local-kms"](settings, {"secret": "the registry's"})


def test_secrets_do_not_show():
    """A repr of the KMS or of a key shows no secret."""
    kms = LocalKms({"secret": "hidden", "old.secrets": "hidden2"}, {})

    assert "hidden" not in repr(kms) + repr(vars(kms)) + repr(kms._keys)
