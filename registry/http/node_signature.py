"""Who asked for a forwarded write, as one node tells another: signed with a secret of the nodes.

A node never passes on the credentials of its clients: the node that it forwards to is named in the log. It decides who
asks, and sends the principal in a header with an HMAC over everything that the write consists of. Without a good
signature the header counts for nothing, and the request is that of whatever client sent it.

A signature holds for half a minute. A copy of the same write that is sent again within it is carried out again, so
nodes should talk TLS.
"""

import base64
import hashlib
import hmac
from typing import NamedTuple

import orjson

from strata.registry.core.rights.request_access import AskedBy

__all__ = ["HEADER", "InvalidSignature", "NodeSecret", "Signed", "body_digest"]

HEADER = b"x-strata-asked-by"
_VALID_S = 30.0
_PURPOSE = b"strata forwarded write 1"


class InvalidSignature(Exception):
    """A signature that does not hold; the message is for the service's own log."""


class Signed(NamedTuple):
    """What a good signature says: who asked, and the digest that the body must have."""

    asked_by: AskedBy
    digest: str


class NodeSecret:
    """The secret that all nodes of a registry share.

    Args:
        secret: at least 32 bytes, drawn at random.
    """

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(_PURPOSE + secret).digest()

    def sign(self, method: str, target: bytes, body: bytes, asked_by: AskedBy, now: float) -> bytes:
        """Return the value of the header for a forwarded write.

        Args:
            method: the HTTP method.
            target: the raw path and query string.
            body: the body.
            asked_by: who asks for it.
            now: the time, in seconds since the epoch.
        """
        content = base64.urlsafe_b64encode(orjson.dumps([now, body_digest(body), asked_by]))
        return content + b"." + self._mac(method, target, content)

    def verify(self, value: bytes, method: str, target: bytes, now: float) -> Signed:
        """Return what the header of a forwarded write says.

        Raises:
            InvalidSignature: if another secret or another write was signed, or too long ago.
        """
        content, _, mac = value.partition(b".")
        if not hmac.compare_digest(mac, self._mac(method, target, content)):
            raise InvalidSignature("the signature is not made with --node-secret for this request")
        signed_at, digest, (user, groups, mechanism, address) = orjson.loads(base64.urlsafe_b64decode(content))
        if abs(now - signed_at) > _VALID_S:
            raise InvalidSignature(f"it was signed {now - signed_at:.0f} s ago; compare the clocks of the nodes")
        return Signed((user, tuple(groups), mechanism, address), digest)

    def _mac(self, method: str, target: bytes, content: bytes) -> bytes:
        return hmac.new(self._key, b"\n".join((method.encode(), target, content)), "sha256").hexdigest().encode()


def body_digest(body: bytes) -> str:
    """Return the digest by which a signature names a body."""
    return hashlib.sha256(body).hexdigest()
