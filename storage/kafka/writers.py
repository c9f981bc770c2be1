"""The writers of the topic, as its records show them: who holds the pen, and who writes without it.

Each node that takes the pen signs with its URL and its id. The other nodes forward their writes to the URL. The id is
new in each process: a node that reads its own URL with another id shares that URL with another node. The signature
also states the longest read lease that may be in force since, in milliseconds; a release states that none is
(docs/decisions/0030).
"""

import logging
import math
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Message

from strata.storage.kafka.cursor import APPEND_HEADER, header, offset_of
from strata.storage.lease import ReadLease
from strata.storage.log import START

__all__ = ["ForeignRecords", "Signatures", "suspend_lease"]

_logger = logging.getLogger(__name__)

_URL_HEADER, _NODE_HEADER = "strata-url", "strata-node"
_LEASE_HEADER, _RELEASE_HEADER = "strata-lease", "strata-released"
_LEASE = re.compile(rb"[0-9]{1,4}")
_NOT_STATED = -1
_OLDER_S = 3600  # longer than a rolling upgrade should take
_URL = re.compile(rb"https?://[\x21-\x7e]{1,2000}")
_WARN_EVERY_S = 60.0
_LONGEST_KEY = 300
_MOST_KEPT = 100


class _Signature(NamedTuple):
    offset: int
    url: bytes
    node: bytes
    lease_ms: int = 0


_NONE = _Signature(START, b"", b"")


def suspend_lease(lease: ReadLease, topic: str, seconds: int) -> None:
    """Keep this node from read leases for some time, because something writes that does not wait for them."""
    if lease.suspend(seconds):
        _logger.warning(
            "no read leases on topic %(topic)s for %(seconds)d s: another product or an older version writes",
            {"event": "lease_suspended", "topic": topic, "seconds": seconds},
        )


class Signatures:
    """The newest signature in the topic, as far as this node has read or signed. Thread-safe.

    Args:
        topic: the topic's name.
        url: the URL in this node's own signature.
        known: the newest signature that another process of this node has read.
        lease: the read lease of this node; the signature of an older version suspends it.
    """

    def __init__(
        self,
        topic: str,
        url: str | None,
        known: tuple[int, bytes, bytes, int] | None = None,
        lease: ReadLease | None = None,
    ) -> None:
        self._topic, self._url, self._node = topic, (url or "").encode(), uuid.uuid4().hex.encode()
        self._newest = _Signature(*known) if known else _NONE
        self._told = START  # the offset up to which the log lines say who has the pen
        self._began: int | None = None
        self._warning = _RateLimitedError()
        self._lease = lease or ReadLease()
        self._lock = threading.Lock()

    def headers(self, lease_ms: int) -> dict[str, bytes]:
        """Return the record headers of this node's own signature.

        Args:
            lease_ms: the longest read lease that may be in force after it, in milliseconds.
        """
        return {_URL_HEADER: self._url, _NODE_HEADER: self._node, _LEASE_HEADER: b"%d" % lease_ms}

    @property
    def release_headers(self) -> dict[str, bytes]:
        """The record headers of the statement that no read lease is in force."""
        return {_RELEASE_HEADER: self._node}

    @property
    def lease_ms(self) -> int:
        """The longest read lease that may be in force according to the newest signature, in milliseconds."""
        return max(self._newest.lease_ms, 0)

    @property
    def newest(self) -> int:
        """The offset of the newest signature."""
        return self._newest.offset

    @property
    def known(self) -> tuple[int, bytes, bytes, int]:
        """The newest signature, for another process of this node."""
        return self._newest

    def begin(self, end: int) -> None:
        """Remember where the topic ended at this node's first read: earlier signatures may be from its past runs."""
        if self._began is None:
            self._began = end

    def sign(self, offset: int, lease_ms: int = 0) -> None:
        """Remember this node's own signature, which it may never read: its next read begins after its own append."""
        self._advance(_Signature(offset, self._url, self._node, lease_ms))

    def forget(self) -> None:
        """Forget the newest signature before the topic is read from its start, which notes what is really there.

        A topic that has lost records may have grown again past a lost signature, which would hide newer ones.
        """
        with self._lock:
            self._newest = _NONE

    def note(self, message: Message) -> None:
        """Remember the signature in a record, if it has one and no newer one is known."""
        offset, url, node = offset_of(message), header(message, _URL_HEADER), header(message, _NODE_HEADER) or b""
        if url is None:
            self._note_release(message)
            return
        stated = header(message, _LEASE_HEADER)
        lease_ms = int(stated) if stated is not None and _LEASE.fullmatch(stated) else _NOT_STATED
        if lease_ms == _NOT_STATED:
            suspend_lease(self._lease, self._topic, _OLDER_S)
        if not self._advance(_Signature(offset, url if _URL.fullmatch(url) else b"", node, lease_ms)):
            return
        if url and url == self._url and node != self._node and self._began is not None and offset >= self._began:
            self._warn_of_duplicate_url()

    def _note_release(self, message: Message) -> None:
        released = header(message, _RELEASE_HEADER)
        with self._lock:
            if released is not None and released == self._newest.node and offset_of(message) > self._newest.offset:
                self._newest = self._newest._replace(lease_ms=0)

    def holder(self) -> str | None:
        """Return the URL in the newest signature, or None if it is this node's own or not a URL."""
        url = self._newest.url
        return None if url in {b"", self._url} else url.decode()

    def _advance(self, signature: _Signature) -> bool:
        """Remember a signature if it is newer; return whether it is."""
        with self._lock:
            before = self._newest
            is_newer = signature.offset > before.offset
            if is_newer:
                self._newest = signature
            is_news, self._told = signature.offset > self._told, max(signature.offset, self._told)
        if is_newer and is_news and before.node == self._node != signature.node:
            _logger.info(
                "lost the pen of topic %(topic)s to %(holder)s",
                {"event": "pen_lost", "topic": self._topic, "holder": signature.url.decode() or "a node without a URL"},
            )
        return is_newer

    def _warn_of_duplicate_url(self) -> None:
        self._warning.log(
            "another node writes to topic %(topic)s under this node's URL, %(url)s. Writes cannot be forwarded to it, "
            "so the two nodes take the right to write from each other at every write, which is slow. Give each node "
            "its own URL with --advertised-url",
            {"event": "node_url_shared", "topic": self._topic, "url": self._url.decode()},
        )


class ForeignRecords:
    """A counter of records that another product wrote while this node had the pen. Thread-safe."""

    def __init__(self, topic: str) -> None:
        self._topic, self.count = topic, 0
        self.since = math.inf
        """The offset after which records count; infinity while this node does not have the pen."""
        self._kept: deque[int] = deque(maxlen=_MOST_KEPT)
        self._newest = START
        self._warning = _RateLimitedError()
        self._lock = threading.Lock()

    @property
    def newest(self) -> tuple[int, ...]:
        """The offsets of the newest of these records, in order."""
        return tuple(self._kept)

    def note(self, message: Message) -> None:
        """Count a record if another product wrote it and it is not counted yet."""
        offset = offset_of(message)
        if offset <= self._newest or header(message, APPEND_HEADER) is not None:
            return
        with self._lock:
            if offset <= self._newest:
                return
            self.count, self._newest = self.count + 1, offset
            self._kept.append(offset)
        self._warning.log(
            "ANOTHER PRODUCT WRITES TO TOPIC %(topic)s (offset %(offset)d, key %(key)s, %(records)d records so far) "
            "while this node has the right to write. Strata cannot prevent this; a schema id or version may be "
            "assigned twice. Stop the other product, or make it read-only",
            {
                "event": "foreign_writer",
                "topic": self._topic,
                "offset": offset,
                "key": repr(message.key())[:_LONGEST_KEY],
                "records": self.count,
            },
        )


class _RateLimitedError:
    """A rate limit for one error in the log."""

    def __init__(self) -> None:
        self._logged = -_WARN_EVERY_S

    def log(self, text: str, fields: Mapping[str, object]) -> None:
        now = time.monotonic()
        if now - self._logged >= _WARN_EVERY_S:
            self._logged = now
            _logger.error(text, fields)
