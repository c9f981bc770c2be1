"""The parameters on which the strength of secrets rests, as they show in what is written and sent."""

import base64

import jwt
import pytest

from strata.registry.core.rights.authentication import no_user
from strata.registry.features.access.passwords import hash_password
from strata.registry.features.exporters.sealing import Sealing
from strata.registry.features.pages.sessions import Sessions
from strata.registry.http.node_signature import NodeSecret

SECRET = b"s" * 32
ASKED_BY = ("ann", (), "basic", "127.0.0.1")


def base64_bytes(text: str) -> int:
    """Return how many bytes a text of base64 stands for."""
    return len(base64.urlsafe_b64decode(text.replace("/", "_").replace("+", "-") + "=" * (-len(text) % 4)))


def of_password():
    """Return the logarithm of the cost, block size, parallelism and the bytes of salt and digest of a new hash."""
    _, algorithm, costs, salt, digest = str(hash_password("secret")).split("$")
    log2_n, r, p = (int(cost.partition("=")[2]) for cost in costs.split(","))
    return algorithm, log2_n, r, p, base64_bytes(salt), base64_bytes(digest)


def of_session():
    """Return the algorithm of a session's cookie, and the bytes of its number and of the token of its forms."""
    sessions = Sessions(SECRET, no_user, 60)
    session, cookie = sessions.begin()
    return (
        jwt.get_unverified_header(cookie)["alg"],
        base64_bytes(session.number),
        len(sessions.form_token(session)) // 2,
    )


def of_node_secret():
    """Return the bytes of the signature of a forwarded write."""
    value = NodeSecret(SECRET).sign("POST", b"/subjects/s/versions", b"{}", ASKED_BY, 0.0)
    return (len(bytes.fromhex(value.partition(b".")[2].decode())),)


def of_sealing():
    """Return the algorithm of sealed credentials, and the bytes of nonce and tag around them."""
    mark, _, data = Sealing(SECRET).seal("secret", b"place").partition(":")
    return mark, base64_bytes(data) - len("secret")


# what is written, its parameters
PARAMETERS = [
    (of_password, ("scrypt", 15, 8, 1, 16, 32)),
    (of_session, ("HS256", 16, 32)),
    (of_node_secret, (32,)),
    (of_sealing, ("AES256_GCM", 12 + 16)),
]


@pytest.mark.parametrize(("written", "parameters"), PARAMETERS, ids=[row[0].__name__ for row in PARAMETERS])
def test_what_is_written_has_the_full_strength(written, parameters):
    """A new password hash, session, signature or sealed text has the cost and the sizes that the documents promise."""
    assert parameters == written()
