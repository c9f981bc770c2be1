"""The log in a Kafka topic: one partition, compacted, record for record the reference's `_schemas`.

A topic has no compare-and-append. Two things together provide it:
- *the pen* (`pen.py`): only one Strata node can write. Fencing tells a node that it has lost the pen before
  anything of its append is visible.
- *the offsets*: records are staged in a transaction and committed only if they land exactly where the log ended.
  A gap means that a writer without the pen, such as another product's registry, wrote in between. The node then
  aborts the transaction, and the caller reads the new records and decides again.

An append has succeeded when the last stable offset has passed it (the broker answers a commit before its marker is in
the topic). Every read that begins later, on any node, requests that offset and so finds the append. A writer learns
this from the consumer of its reads, which waits at the end of the topic and gets the record at once. If it does not,
the writer requests the offset until it has moved.

Reads and appends do not wait for each other, except while a committed record is on its way to the consumer: reads have
their own consumer and lock (`reader.py`), and another client requests the end.
"""

import asyncio
import hashlib
import logging
import math
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from strata.storage.addresses import broker_addresses, why_unreachable
from strata.storage.kafka.call_lock import CallLock
from strata.storage.kafka.credentials import credentials_of
from strata.storage.kafka.cursor import APPEND_HEADER, header, offset_of
from strata.storage.kafka.end_offset import EndOffset, LogEnd
from strata.storage.kafka.fencing import Fencing
from strata.storage.kafka.leader import Leader
from strata.storage.kafka.pen import Fenced, Pen, PerhapsFenced, Staged
from strata.storage.kafka.reader import TopicReader
from strata.storage.kafka.topic import prepare_topic
from strata.storage.kafka.watch import Clock, Moment, Seen, TopicWatch, clock
from strata.storage.kafka.writers import ForeignRecords, Signatures, suspend_lease
from strata.storage.lease import DRIFT, ReadLease
from strata.storage.log import (
    START,
    Conflict,
    Entry,
    LogCompacted,
    LogError,
    LogStatus,
    LogTimeout,
    Record,
    RecordTooLarge,
)
from strata.storage.record_json import encode
from strata.storage.records import NoopKey

__all__ = ["Fencing", "KafkaLog", "Timeouts"]

_logger = logging.getLogger(__name__)

_NOOP = encode(NoopKey())
# Offsets that a transaction's last record takes up: the record and the transaction's marker.
_MARKED = 2
_DELIVERY_S, _COMMITS = 0.005, 3
_SUSPENDED_S, _PROLONGED_AT, _RELEASE_S = 300, 0.3, 2.0
_REACHED_S = 3.0
_SIGNING_S, _SIGNING_POLL_S = (0.5, 2.0), 0.02
_SILENT_S = 2.0
# Losing the pen is expected, and logged in one line (`writers.py`); the client reports it as several fatal errors.
_OF_THE_LOSS = re.compile("fenced by a newer instance|with an old epoch")
_client_logger = logging.getLogger(f"{__name__}.librdkafka")
_client_logger.addFilter(lambda record: not _OF_THE_LOSS.search(record.getMessage()))
_CLIENT: Mapping[str, Any] = {
    "client.id": "strata",
    "socket.keepalive.enable": True,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
    "logger": _client_logger,
}


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The time limits for the steps of a call, in seconds."""

    start: float = 15.0
    take_pen: float = 60.0
    read: float = 10.0
    write: float = 10.0


class KafkaLog:
    """The log in one Kafka topic, as one node uses it.

    Args:
        bootstrap: The first brokers to contact, `HOST:PORT[,…]`.
        topic: The topic's name. The topic is created if it is missing, otherwise checked.
        advertised_url: The URL at which other nodes reach this one; the signature with which this node takes the pen
            holds it.
        fencing: How to keep a second writer out.
        config: Further settings of librdkafka, for example for TLS and SASL.
        timeouts: Time limits for the steps of a call.
        must_exist: Raise `LogError` if the topic is missing instead of creating it.
        signature: The newest signature that was read with the State from which this node reads on.
        now: The clock that measures how long ago this node was at the end of the log.
        lease: The read lease of the node, which its processes share; by default it has none.

    Raises:
        LogError: Kafka cannot be reached, the settings are bad, or the topic is missing or unfit.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        advertised_url: str | None,
        fencing: Fencing = Fencing.PEN,
        config: Mapping[str, str] | None = None,
        timeouts: Timeouts | None = None,
        must_exist: bool = False,
        signature: tuple[int, bytes, bytes, int] | None = None,
        now: Clock = clock,
        lease: ReadLease | None = None,
    ) -> None:
        self._topic = topic
        self._lease = lease or ReadLease()
        self._signatures = Signatures(topic, advertised_url, signature, self._lease)
        self._fencing = fencing
        self._timeouts = timeouts or Timeouts()
        self._client: dict[str, Any] = {**_CLIENT, **(config or {}), "bootstrap.servers": bootstrap}
        try:
            admin = AdminClient(self._client)  # refuses bad settings
        except KafkaException as error:
            raise LogError(f"invalid settings of the Kafka client: {error.args[0].str()}") from None
        if reason := why_unreachable(broker_addresses(bootstrap), min(_REACHED_S, self._timeouts.start)):
            raise LogError(f"no broker can be reached: {reason}")
        facts = prepare_topic(admin, topic, self._timeouts.start, must_exist=must_exist)
        self._max_bytes = facts.max_bytes
        self._now, self._seen = now, Seen(topic, facts.retention_s, now)
        self._watch = TopicWatch(admin, facts, self._seen, now)
        self._end = EndOffset(self._client, topic)
        credentials = self._credentials = credentials_of(self._client)
        self._leader = None if credentials is None else Leader(broker_addresses(bootstrap), topic, credentials)
        self._foreign = ForeignRecords(topic)
        self._identity = _identity(facts.topic_id)
        self._foreign_seen = 0
        self._unsettled = False  # whether an append of this node may still become visible
        self._keeper: asyncio.Task[None] | None = None
        self._reader = TopicReader(
            self._client,
            topic,
            end=self._end,
            watch=self._watch,
            seen=self._seen,
            signatures=self._signatures,
            foreign=self._foreign,
            timeout_s=self._timeouts.read,
            now=now,
        )
        self._renewals = ThreadPoolExecutor(1, thread_name_prefix="strata-topic")
        self._renewal: Future[None] | None = None
        self._writes = CallLock(topic)
        self._pen: Pen | None = None
        self._failed = False  # the last append, for another reason than a lost race or its size
        self._pen_offset = START
        self._pen_taken, self._pen_taking_s = 0, 0.0
        self._known_end: LogEnd | None = None
        if fencing is Fencing.NONE:
            _logger.warning(
                "writes to topic %(topic)s are not fenced: a second writing node would damage the log; run only one",
                {"event": "fencing_off", "topic": topic},
            )

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset; see `Log.read`."""
        return self._reader.read(after)

    def unchanged(self, after: int) -> bool:
        """Return whether the node's read lease covers a State at this offset; see `Log.unchanged`."""
        return self._lease.covers(self._identity, after)

    async def ends_at(self, read_to: Callable[[], int]) -> bool:
        """Ask the leader whether the log holds nothing that a State lacks; see `Log.ends_at`."""
        if self._leader is None:
            return False
        asked, revocations, began = self._lease.now(), self._lease.revocations, self._now()
        self._renew(began)
        if self._lease.seconds and self._has_pen():
            self._keep(read_to)
        if not self._watch.is_confirmed_lately(began):
            return False
        end = await self._leader.end()
        after, written, read = read_to(), self._known_end, self._reader.known_end
        if not (_shows(read, end, after) or _shows(written, end, after)):
            return False
        if not self._watch.is_confirmed_lately(self._now()):
            return False
        self._seen.note(after, began)
        if self._may_lease():
            self._lease.grant(self._identity, after, asked=asked, revocations=revocations)
        return True

    def note_append(self, last: int) -> None:
        """Note where an append of another process of this node ended; see `Log.note_append`."""
        if self._fencing is Fencing.PEN:
            self._reader.known_end = LogEnd(last, last + _MARKED)

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append all records or none; see `Log.append`."""
        if not records:
            raise ValueError("an append needs at least one record")
        with self._writes.taken(self._timeouts.write):
            self._failed = True
            try:
                if self._pen is not None and self._has_pen():
                    patience_s = _SILENT_S if self._pen.transactional else math.inf
                    written = self._append(self._pen, after, records, patience_s)
                else:
                    written = self._append(self._take_pen(), after, records, math.inf)
            except (Conflict, RecordTooLarge):
                self._failed = False
                raise
            self._failed = False
            return written

    def end(self) -> int:
        """Return the offset of the last record, or `START` if the log is empty."""
        self._writes.check_open()
        return self._reader.last_before(self._end.now(self._by(self._timeouts.read)))

    def check_writable(self) -> None:
        """After a failed append, take the pen: the signature shows whether the brokers take writes."""
        if not self._failed or self.holder() is not None:
            return
        with self._writes.taken(self._timeouts.write), suppress(Conflict):
            if not self._has_pen():
                self._take_pen()
            self._failed = False

    def holder(self) -> str | None:
        """Return the URL of the other node that took the pen last, as far as this node has read."""
        if self._fencing is Fencing.NONE:
            return None
        return None if self._has_pen() else self._signatures.holder()

    def status(self) -> LogStatus:
        """Return whether this node has the pen, and how many records others wrote meanwhile."""
        foreign = self._foreign
        return LogStatus(
            "kafka",
            self._has_pen(),
            foreign.count,
            self._pen_taken,
            foreign.newest,
            self._pen_taking_s,
            self._signatures.known,
        )

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._writes.close(self._disconnect)

    def _disconnect(self) -> None:
        if self._lease.seconds and self._fencing is Fencing.PEN:
            self._release()
        if self._leader is not None:
            self._leader.close()
        if self._keeper is not None:
            with suppress(RuntimeError):  # its loop is closed
                self._keeper.get_loop().call_soon_threadsafe(self._keeper.cancel)
        self._renewals.shutdown()
        self._reader.close()
        if self._pen is not None:
            self._pen.close()
        self._pen = None

    def _may_lease(self) -> bool:
        """Return whether this node may answer from memory for a while after the leader has shown that it is at the end.

        It must hold the pen and have no append under way. Another product's record, or the signature of a node that
        does not wait for leases (`writers.py`), forbids leases for some time.
        """
        if not self._lease.seconds or self._fencing is Fencing.NONE or self._unsettled or not self._has_pen():
            return False
        if self._foreign.count != self._foreign_seen:
            self._foreign_seen = self._foreign.count
            suspend_lease(self._lease, self._topic, _SUSPENDED_S)
        return not self._lease.is_suspended

    def _keep(self, read_to: Callable[[], int]) -> None:
        """Prolong the lease in the background while this node may have it, so that no read waits for a question."""
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.get_running_loop().create_task(self._prolong(read_to))

    async def _prolong(self, read_to: Callable[[], int]) -> None:
        while self._lease.seconds and self._has_pen():
            await asyncio.sleep(self._lease.seconds * _PROLONGED_AT)
            await self.ends_at(read_to)

    def _release(self) -> None:
        """State in the topic that this node has no read lease, so that the next holder of the pen need not wait."""
        self._lease.revoke()
        if self._pen is None or self._unsettled or not self._has_pen():
            return
        deadline = self._by(_RELEASE_S)
        with suppress(LogError, Fenced):
            self._pen.stage([_NOOP], _token(), deadline, self._signatures.release_headers)
            self._pen.commit(deadline)

    def _renew(self, now: Moment) -> None:
        """Look the topic up in a thread, so that no read has to wait until it is confirmed."""
        if self._watch.is_due(now) and (self._renewal is None or self._renewal.done()):
            with suppress(RuntimeError):  # the log is closed
                self._renewal = self._renewals.submit(self._watch.renew)

    def _has_pen(self) -> bool:
        """Return whether this node may write, as far as it knows: the newest signature that it knows is its own."""
        if self._pen is None or not self._pen.usable:
            return False
        return not self._pen.transactional or self._signatures.newest == self._pen_offset

    def _take_pen(self) -> Pen:
        """Take the pen and sign in the topic.

        Taking the pen settles every earlier transaction. So an append must be decided on exactly the records before
        this node's signature.
        """
        began = time.monotonic()
        if self._pen is not None:
            self._pen.close()
        self._pen, self._known_end, self._foreign.since = None, None, math.inf
        self._watch.confirm(self._by(self._timeouts.write), at_once=True)
        pen = Pen(
            self._client,
            self._topic,
            self._fencing,
            max_bytes=self._max_bytes,
            timeout_s=self._timeouts.take_pen,
            credentials=self._credentials,
        )
        try:
            if pen.transactional:
                self._wait_for_leases(self._sign(pen))
        except BaseException:
            pen.close()
            raise
        self._pen, self._foreign.since = pen, self._pen_offset
        _logger.info("took the pen of topic %(topic)s", {"event": "pen_taken", "topic": self._topic})
        if pen.transactional:
            self._pen_taken += 1
            self._pen_taking_s = time.monotonic() - began
        return pen

    def _sign(self, pen: Pen) -> float:
        """Sign in the topic, and return when leases end that other nodes may have, on the monotonic clock.

        The signature states the longest of them. So a signature that this node had not read yet, and that states a
        longer one, makes it sign again.
        """
        lease_ms = max(math.ceil(self._lease.seconds * 1000), self._signatures.lease_ms)
        while True:
            known = self._signatures.newest
            offset, end = self._sign_with(pen, lease_ms, known)
            readable = time.monotonic()
            reads = self._reader.known_end
            after = max(known, reads.last if reads is not None else START)
            if after == START:
                after = self._end.first(self._by(self._timeouts.read)) - 1
            for entry in self._reader.entries(after, offset):
                after = entry.offset  # this notes the signatures among them
            before_ms = self._signatures.lease_ms
            self._pen_offset = offset
            self._signatures.sign(offset, lease_ms)
            if end == offset + _MARKED:
                self._known_end = LogEnd(self._reader.last_before(offset), end)
            if before_ms <= lease_ms:
                # After a release, or where no node has leases, there is nothing to wait for.
                is_released = known != START and before_ms == 0 and not self._lease.is_suspended
                return readable + (0 if is_released else lease_ms / 1000 * (1 + DRIFT))
            lease_ms = before_ms

    def _wait_for_leases(self, ends: float) -> None:
        """Wait until no node can have a read lease from before this node's signature; nothing is committed before."""
        if (left := ends - time.monotonic()) > 0:
            time.sleep(left)

    def _sign_with(self, pen: Pen, lease_ms: int, known: int) -> tuple[int, int]:
        """Write a signature, and return its offset and the end once it was readable."""
        deadline = self._by(self._timeouts.write)
        try:
            (signed,) = pen.stage([_NOOP], _token(), deadline, self._signatures.headers(lease_ms))
            pen.commit(deadline)
            end = self._end.once_beyond(signed.offset, deadline)
        except Fenced as error:
            self._await_signature(known)
            raise Conflict from error
        except LogTimeout as error:
            if time.monotonic() > deadline:
                raise LogError(f"{error}; the append itself wrote nothing") from error
            # The broker did answer: it reports an unknown error if another node takes the pen during the commit.
            self._await_signature(known)
            raise Conflict from error
        return signed.offset, end

    def _await_signature(self, known: int) -> None:
        """Wait for the signature of the node that took the pen: taking it back at once would keep both from writing.

        Args:
            known: the newest signature when this node began what failed; a newer one may have been read since.
        """
        deadline = self._by(random.uniform(*_SIGNING_S))  # noqa: S311 - keeps two nodes out of step
        after = known
        with suppress(LogError):
            while self._signatures.newest == known and not self._has_pen() and time.monotonic() < deadline:
                for entry in self._reader.entries(after, self._end.now(deadline), deadline):
                    after = entry.offset
                time.sleep(_SIGNING_POLL_S)

    def _append(self, pen: Pen, after: int, records: Sequence[Record], patience_s: float) -> Sequence[Entry]:
        began, deadline, signed = self._now(), self._by(self._timeouts.write), self._pen_offset
        known_end = self._log_end(pen, after, deadline)
        if not known_end.allows(after):
            self._known_end = None  # if the log has lost records, it ends before what is known
            raise Conflict
        self._check_knowledge(after, deadline)
        # The end of the log is unknown until the append has succeeded.
        self._known_end = None
        token = _token()
        try:
            staged = pen.stage(records, token, deadline, patience_s=patience_s)
        except Fenced as error:
            self._await_signature(signed)
            raise Conflict from error
        except LogError as error:
            if patience_s == math.inf or isinstance(error, RecordTooLarge):
                raise
            # These clients may have lost the leader for good (`cursor.py`), or count records that the log has lost.
            # The next try takes the pen with new ones, and tells the problem if it is another one.
            raise Conflict from error
        self._check_offsets(pen, known_end, staged)
        # From here on other nodes may read the records, so this one must not answer from memory before it has them.
        self._unsettled = True
        self._lease.revoke()
        committing = time.monotonic()
        try:
            pen.commit(deadline)
        except (Fenced, LogTimeout) as error:
            self._settle(error, staged, token, signed)
        else:
            self._await_visible(staged[0].offset, staged[-1].offset, time.monotonic() - committing)
            # If another writer's record took the marker's place, the next append lands elsewhere: `_check_offsets`.
            self._known_end = LogEnd(staged[-1].offset, staged[-1].offset + (_MARKED if pen.transactional else 1))
        # Again: a question that was asked during the commit may have shown the end before it.
        self._lease.revoke()
        self._unsettled = False
        self._seen.note(staged[-1].offset, began)
        return [
            Entry(message.offset, message.timestamp, record.key, record.value)
            for message, record in zip(staged, records, strict=True)
        ]

    def _check_knowledge(self, after: int, deadline: float) -> None:
        """Refuse a writer that was at the end too long ago: compaction may have dropped records it has not read."""
        self._renew(self._now())
        self._watch.confirm(deadline)
        try:
            self._seen.since(after)
        except LogCompacted:
            raise Conflict from None

    def _log_end(self, pen: Pen, after: int, deadline: float) -> LogEnd:
        """Return the end of the log: from memory while this node has the pen, unless the writer has read further."""
        if self._known_end is not None and pen.transactional and after < self._known_end.following:
            return self._known_end
        end = self._end.now(deadline)
        if self._known_end is not None and self._known_end.following == end:
            return self._known_end
        return LogEnd(self._reader.last_before(end), end)

    def _check_offsets(self, pen: Pen, known_end: LogEnd, staged: Sequence[Staged]) -> None:
        """Check that the records landed next to each other where the log ended; otherwise another writer intervened."""
        if [message.offset for message in staged] == list(
            range(known_end.following, known_end.following + len(staged))
        ):
            return
        if not pen.transactional:
            raise LogTimeout(
                f"topic {self._topic}: another writer wrote at the same time, without fencing; the records are at "
                f"offset {staged[0].offset}, but the decision did not take the records before them into account"
            )
        pen.abort()
        raise Conflict

    def _await_visible(self, first: int, last: int, commit_s: float) -> None:
        """Wait until every node can read the committed records from offset `first` to `last`.

        Args:
            first: The offset of the first record.
            last: The offset of the last record.
            commit_s: How long the commit took, in seconds: a delivery takes longer from a broker that is far away.

        Raises:
            LogTimeout: The records did not become readable in time.
        """
        if not self._reader.sees(first, last, max(_DELIVERY_S, _COMMITS * commit_s)):
            self._end.once_beyond(last, self._by(self._timeouts.write))

    def _settle(self, error: Exception, staged: Sequence[Staged], token: bytes, signed: int) -> None:
        """Find out whether a commit took place; return if it did.

        Args:
            error: why the commit has no answer, or was refused.
            staged: the records.
            token: what marks them.
            signed: the offset of this node's signature when the append began.

        Raises:
            Conflict: It did not, and never will.
            LogTimeout: The node cannot find out now.
        """
        deadline = self._by(self._timeouts.write)
        first, last = staged[0].offset, staged[-1].offset
        try:
            if isinstance(error, PerhapsFenced):
                self._await_signature(signed)
            # Taking the pen makes the broker finish or abort what the previous holder left; if another node has taken
            # it meanwhile, that has happened already.
            if not isinstance(error, Fenced) and self._signatures.newest == signed:
                with suppress(Conflict):
                    self._take_pen()
            self._end.once_beyond(last, deadline)
            message = self._end.last_between(first, last + 1, self._timeouts.read)
        except LogError as failure:
            raise LogTimeout(
                f"topic {self._topic}: cannot find out whether an append was written: {failure}"
            ) from failure
        mark = header(message, APPEND_HEADER) if message is not None and offset_of(message) == last else None
        if mark is None or not mark.startswith(token):
            self._unsettled = False
            self._await_signature(signed)
            raise Conflict from error

    @staticmethod
    def _by(timeout_s: float) -> float:
        return time.monotonic() + timeout_s


def _shows(known: LogEnd | None, end: int | None, after: int) -> bool:
    """Return whether an end that is known is this one, and a State at an offset has every record before it."""
    return known is not None and known.following == end and known.allows(after)


def _token() -> bytes:
    return uuid.uuid4().hex.encode()


def _identity(topic_id: str) -> int:
    """Return a number for a topic that a cell of the lease can hold."""
    return int.from_bytes(hashlib.sha256(topic_id.encode()).digest()[:6], "big")
