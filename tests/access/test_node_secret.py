"""Signatures of forwarded writes hold for one write, one secret and half a minute."""

import base64

import orjson
import pytest

from strata.registry.http.node_signature import InvalidSignature, NodeSecret, body_digest

SECRET, WHO = NodeSecret(b"s" * 32), ("alice", ("dev", "ops"), "basic", "10.0.0.1")
WRITE = ("PUT", b"/config/s?x=1", b'{"compatibility":"NONE"}')


def test_a_signature_names_who_asked():
    """The holder learns principal, address and the digest of the body."""
    signed = SECRET.verify(SECRET.sign(*WRITE, WHO, 100.0), *WRITE[:2], 110.0)

    assert signed.asked_by == WHO
    assert signed.digest == body_digest(WRITE[2])
    anonymous = (None, (), "none", None)
    assert SECRET.verify(SECRET.sign(*WRITE, anonymous, 100.0), *WRITE[:2], 100.0).asked_by == anonymous


@pytest.mark.parametrize(
    ("secret", "method", "target", "now"),
    [
        pytest.param(NodeSecret(b"t" * 32), *WRITE[:2], 100.0, id="another secret"),
        pytest.param(SECRET, "DELETE", WRITE[1], 100.0, id="another method"),
        pytest.param(SECRET, "PUT", b"/config/t?x=1", 100.0, id="another path"),
        pytest.param(SECRET, "PUT", b"/config/s?x=2", 100.0, id="another query"),
        pytest.param(SECRET, *WRITE[:2], 131.0, id="too late"),
        pytest.param(SECRET, *WRITE[:2], 69.0, id="too early"),
    ],
)
def test_a_signature_holds_for_nothing_else(secret, method, target, now):
    """Whatever differs from what was signed makes the header worthless."""
    with pytest.raises(InvalidSignature):
        secret.verify(SECRET.sign(*WRITE, WHO, 100.0), method, target, now)


def test_a_header_that_a_client_makes_up_is_worthless():
    """No content without its signature counts, whatever it looks like."""
    content = base64.urlsafe_b64encode(orjson.dumps([100.0, body_digest(b""), WHO]))
    good = SECRET.sign(*WRITE, WHO, 100.0)
    for forged in (b"", b".", b"x", content, content + b".", content + b"." + good.partition(b".")[2], b"\xff." + good):
        with pytest.raises(InvalidSignature):
            SECRET.verify(forged, *WRITE[:2], 100.0)
