"""A position in the topic, and reading from it up to a known end.

The end is the *last stable offset*: everything below it is decided, committed or aborted. A separate client requests it
from the partition's leader (`end.py`), because a consumer's connection is busy with a fetch that waits for
records.

The hard part is to know that everything below the end has been delivered, because a transaction's marker takes an
offset and is never delivered. The cursor knows it in one of these ways, tried in this order:
- it has received the record just below the end;
- it has received the record before that, and that record was the last one of a transaction (our records say so in a
  header): the single offset between a committed transaction's last record and the end holds its marker. In a copy of
  the topic, such as MirrorMaker's, there are no markers, and the offset holds a record: so this is only assumed, and
  the next read looks again;
- the consumer reports the end of the partition. It does so when a fetch returns empty, up to `fetch.wait.max.ms` later.
  This is needed only after aborted and foreign transactions.

Callers read only up to an end that the leader has named, so a consumer that delivers nothing for long is stuck. It is,
for example, if a broker answered a request for metadata without naming any broker, as brokers do for a moment when a
whole cluster comes back: the client then forgets the leader, and fetches again only after the next change of
leadership. The cursor replaces such a consumer. Each time it waits longer, for the sake of slow networks.
"""

import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from strata.storage.log import START, LogCompacted, LogError

__all__ = ["APPEND_HEADER", "LAST_MARK", "Cursor", "Position", "header", "offset_of"]

_logger = logging.getLogger(__name__)

APPEND_HEADER = "strata-append"
"""The header that identifies a record's append by a token; on a transaction's last record, `LAST_MARK` follows it."""

LAST_MARK = b";last"

_BATCH = 5_000
_RECENT = 256
_POLL_S = 0.5
_PATIENCE_S, _MOST_PATIENCE_S = 2.0, 8.0
_LOST = {
    KafkaError._AUTO_OFFSET_RESET: "the topic no longer has the next offset",
    KafkaError._LOG_TRUNCATION: "the topic lost records that this node has read",
}
_FATAL = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: "the topic does not exist",
    KafkaError._UNKNOWN_TOPIC: "the topic does not exist",
    KafkaError._UNKNOWN_PARTITION: "the topic does not exist",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the ACL Read on the topic is missing",
}


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a cursor: every record below `following` has been delivered, and `last` is the last of them.

    Attributes:
        last: the offset of the last record.
        following: the offset after it, and after what is not a record.
        is_record: False while `last` is only the offset after which reading began.
        is_assumed: whether the last offset before `following` is taken for a marker.
        ends_append: whether the last record is the last one of its transaction.
    """

    last: int
    following: int
    is_record: bool
    is_assumed: bool = False
    ends_append: bool = False


class Cursor:
    """A reader of the committed records in the topic's only partition. Not thread-safe."""

    def __init__(self, config: Mapping[str, object], topic: str) -> None:
        self._topic = topic
        self._config = {
            "group.id": "strata",  # the client requires one; it joins no group and stores nothing under it
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "check.crcs": True,
            **config,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # By default the client silently moves to the end of the topic when its offset is gone.
            "auto.offset.reset": "error",
        }
        self._consumer: Consumer | None = None
        self._silent_since, self._patience_s = time.monotonic(), _PATIENCE_S
        self._pending: deque[Message] = deque()
        self._recent: deque[Message] = deque(maxlen=_RECENT)
        self._position: Position | None = None

    @property
    def position(self) -> Position | None:
        """The position of the cursor; any thread may read it."""
        return self._position

    def take(self, after: int, end: int, timeout_s: float) -> list[Message]:
        """Return the next records between two offsets, or an empty list when there are no more.

        The cursor continues from its position if it can: it skips records up to `after`, and serves a second reader
        that is a little behind from the records delivered recently.

        Args:
            after: The offset of the last record that the caller has.
            end: The offset below which to read.
            timeout_s: Time limit in seconds.

        Raises:
            LogCompacted: The topic no longer has the offset, or has lost records that were read.
            LogError: The topic is gone, may not be read, or was not read in time.
        """
        if self._position is None or self._position.last > after:
            if self._recent and offset_of(self._recent[0]) <= after + 1:
                return [message for message in self._recent if after < offset_of(message) < end]
            self._seek(after)
        self._skip_marker(end)
        self._silent_since = time.monotonic()
        deadline = self._silent_since + timeout_s
        taken: list[Message] = []
        if self._consumer is not None and self._position is not None and self._position.is_assumed:
            self._pending.extend(self._consumer.consume(_BATCH, 0))
            taken = self._drain_after(after, end)
        while not taken and self._following() < end:
            self._fetch(deadline)
            taken = self._drain_after(after, end)
        return taken

    def sees(self, first: int, last: int, timeout_s: float) -> bool:
        """Wait until an append can be read, and return whether that is certain. Its records stay available to `take`.

        The broker sends a record to a waiting consumer as soon as the record is committed, so this needs no further
        request. A cursor that is far behind does not wait, since a reader is about to continue from its position.

        Args:
            first: The offset of the first record.
            last: The offset of the last record.
            timeout_s: Time limit in seconds.
        """
        self._silent_since = time.monotonic()
        deadline = self._silent_since + timeout_s
        if first - self._following() >= _RECENT:
            return False
        while self._position is not None and self._position.following <= last:
            try:
                self._fetch(deadline)
            except LogError:
                return False
            if any(map(_is_failure, self._pending)):
                return False  # a read must report it
            self._drain(last + 1)
        return self._position is not None

    def forget(self) -> None:
        """Forget the delivered records, so that the next ones come from the broker."""
        self._position = None
        self._recent.clear()
        self._disconnect()  # the client may still report the loss of records that made the reader begin again

    def close(self) -> None:
        """Close the connection."""
        self._disconnect()

    def _following(self) -> int:
        return self._position.following if self._position else 0

    def _skip_marker(self, end: int) -> None:
        """Advance over the marker of the transaction whose last record was the last one delivered.

        After an append of its own, a node reads that record before it knows the new end.
        """
        position = self._position
        if position is not None and position.ends_append and position.following == position.last + 1 == end - 1:
            self._position = replace(position, following=end, is_assumed=True)

    def _seek(self, after: int) -> None:
        self._pending.clear()
        self._recent.clear()
        self._assign(after + 1)
        self._position = Position(after, after + 1, is_record=after == START)

    def _disconnect(self) -> None:
        self._pending.clear()
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None

    def _assign(self, following: int) -> None:
        # Start the client only now: one that starts with nothing to read may take a second to begin later.
        if self._consumer is None:
            self._consumer = Consumer(self._config)
        # Use a number even for the beginning: a symbolic offset costs half a second.
        self._consumer.assign([TopicPartition(self._topic, 0, following)])

    def _fetch(self, deadline: float) -> None:
        while self._consumer is not None and not self._pending:
            # `consume` with a timeout waits for a full batch, so take what is there first and then poll.
            self._pending.extend(self._consumer.consume(_BATCH, 0))
            if not self._pending:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise LogError(f"topic {self._topic}: timed out reading from offset {self._following()}")
                self._replace_if_stuck()
                message = self._consumer.poll(min(_POLL_S, left))
                if message is not None:
                    self._pending.append(message)

    def _replace_if_stuck(self) -> None:
        now = time.monotonic()
        if self._consumer is None or now - self._silent_since < self._patience_s:
            return
        _logger.warning(
            "topic %(topic)s: no answer to a read from offset %(offset)d for %(seconds)d s; connecting again",
            {
                "event": "reader_stuck",
                "topic": self._topic,
                "offset": self._following(),
                "seconds": round(now - self._silent_since),
            },
        )
        self._disconnect()
        self._assign(self._following())
        self._silent_since, self._patience_s = now, min(_MOST_PATIENCE_S, 2 * self._patience_s)

    def _drain_after(self, after: int, end: int) -> list[Message]:
        drained = self._drain(end)
        if drained and offset_of(drained[0]) <= after:
            return [message for message in drained if offset_of(message) > after]
        return drained

    def _drain(self, end: int) -> list[Message]:
        """Take the messages below the end out of the pending ones and advance the cursor."""
        position = self._position or Position(START, 0, is_record=True)
        drained: list[Message] = []
        following, is_assumed = position.following, position.is_assumed
        while self._pending:
            message = self._pending[0]
            error, offset = message.error(), offset_of(message)
            if error is not None:
                reported = self._event(error, offset)
                is_assumed = is_assumed and reported < following
                following = max(following, reported)
            elif offset >= end:
                following, is_assumed = end, False
                break
            else:
                drained.append(message)
                following = offset + 1
            self._pending.popleft()
        if drained:
            # The marker follows the record itself; `following` may have been moved past it by an event.
            last = drained[-1]
            is_last = (header(last, APPEND_HEADER) or b"").endswith(LAST_MARK)
            is_assumed = following == end - 1 == offset_of(last) + 1 and is_last
            if offset_of(last) == end - 2 and is_last:
                following = max(following, end)
            self._recent.extend(drained)
            position = Position(offset_of(last), following, is_record=True, ends_append=is_last)
        if following > position.following or drained:
            self._silent_since, self._patience_s = time.monotonic(), _PATIENCE_S
        self._position = replace(position, following=following, is_assumed=is_assumed)
        return drained

    def _event(self, error: KafkaError, offset: int) -> int:
        """Return the offset below which an event reports that no further records exist."""
        if error.code() == KafkaError._PARTITION_EOF:
            return offset
        if reason := _LOST.get(error.code()):
            self._position = None
            raise LogCompacted(f"topic {self._topic}: {reason} ({error.str()})")
        if reason := _FATAL.get(error.code()):
            self._position = None
            raise LogError(f"topic {self._topic}: {reason} ({error.str()})")
        _logger.debug("Reading topic %s: %s", self._topic, error.str())
        return 0


def _is_failure(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() != KafkaError._PARTITION_EOF


def offset_of(message: Message) -> int:
    """Return the offset of a record; every delivered record has one."""
    return message.offset()  # type: ignore[return-value]


def header(message: Message, name: str) -> bytes | None:
    """Return the value of a record's header, or None if the record has no such header."""
    headers = cast("list[tuple[str, bytes | None]] | None", message.headers())
    return next((value or b"" for key, value in headers or () if key == name), None)
