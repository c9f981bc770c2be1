"""Password hashes: written and read, those of Karapace, and what is not accepted."""

import base64
import hashlib

import pytest

from strata.registry.features.access.passwords import InvalidHash, hash_password, karapace_hash, parse_hash

SALT, DIGEST = "c2FsdHNhbHQ", "A" * 43
# RFC 7914, section 12, third vector: password "pleaseletmein", salt "SodiumChloride", N=16384, r=8, p=1.
RFC_7914 = (
    "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
    "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
)
WRONG = [
    ("empty", ""),
    ("plain", "secret"),
    ("bcrypt", "$2b$12$abcdefghijklmnopqrstuv"),
    ("without salt", f"$scrypt$ln=15,r=8,p=1$${DIGEST}"),
    ("short hash", f"$scrypt$ln=15,r=8,p=1${SALT}$AAAA"),
    ("short salt", f"$scrypt$ln=15,r=8,p=1$AAAA${DIGEST}"),
    ("costs nothing", f"$scrypt$ln=0,r=8,p=1${SALT}${DIGEST}"),
    ("costs too much", f"$scrypt$ln=30,r=8,p=1${SALT}${DIGEST}"),
    ("takes too much memory", f"$scrypt$ln=17,r=9,p=1${SALT}${DIGEST}"),
    ("too parallel", f"$scrypt$ln=15,r=8,p=9${SALT}${DIGEST}"),
    ("five digits of base64", f"$scrypt$ln=15,r=8,p=1${SALT}${'A' * 45}"),
    ("too long", f"$scrypt$ln=15,r=8,p=1${SALT}${'A' * 4000}"),
    ("with a line end", f"$scrypt$ln=15,r=8,p=1${SALT}${DIGEST}\n"),
]


def test_a_new_hash_is_read_again():
    """A hash matches its password, also after it was written and read, and no other."""
    made = hash_password("pässword")
    again = parse_hash(str(made))

    assert made == again
    assert again.matches("pässword")
    assert not again.matches("password")
    assert not again.matches("")


def test_an_expensive_hash():
    """A hash may take 128 MiB."""
    assert 17 == parse_hash(f"$scrypt$ln=17,r=8,p=1${SALT}${DIGEST}").log2_n


def test_each_hash_has_its_own_salt():
    """Two hashes of one password differ."""
    assert str(hash_password("a")) != str(hash_password("a"))


def test_the_algorithm_is_scrypt():
    """A hash with the cost of a test vector of RFC 7914 gives that vector."""
    text = base64.b64encode(bytes.fromhex(RFC_7914)).decode().rstrip("=")
    salt = base64.b64encode(b"SodiumChloride").decode().rstrip("=")

    assert parse_hash(f"$scrypt$ln=14,r=8,p=1${salt}${text}").matches("pleaseletmein")


@pytest.mark.parametrize("text", [row[1] for row in WRONG], ids=[row[0] for row in WRONG])
def test_anything_else_is_no_hash(text):
    """A malformed hash, and one that is too cheap or too expensive, is rejected without being shown."""
    with pytest.raises(InvalidHash) as caught:
        parse_hash(text)

    assert DIGEST not in str(caught.value)


def pbkdf2(digest):
    """Return a hash of `karapace_mkpasswd` for the password `secret` and the salt `salt`."""
    return base64.b64encode(hashlib.pbkdf2_hmac(digest, b"secret", b"salt", 5000)).decode()


KARAPACE = [
    ("sha1", pbkdf2("sha1")),
    ("sha256", pbkdf2("sha256")),
    ("sha512", pbkdf2("sha512")),
    ("scrypt", base64.b64encode(hashlib.scrypt(b"secret", salt=b"salt", n=16384, r=8, p=1)).decode()),
]


@pytest.mark.parametrize(("algorithm", "text"), KARAPACE)
def test_hashes_of_karapace(algorithm, text):
    """The four forms of Karapace match their password."""
    found = karapace_hash(algorithm, "salt", text)

    assert found.matches("secret")
    assert not found.matches("Secret")
    assert not karapace_hash(algorithm, "SALT", text).matches("secret")


@pytest.mark.parametrize(
    ("algorithm", "text"),
    [("md5", "AAAA"), ("sha256", "AAAA"), ("sha256", ""), ("scrypt", "!" * 88), ("sha1", pbkdf2("sha256"))],
)
def test_other_hashes_of_karapace(algorithm, text):
    """An unknown algorithm, or a hash of another length, is rejected."""
    with pytest.raises(InvalidHash):
        karapace_hash(algorithm, "salt", text)
