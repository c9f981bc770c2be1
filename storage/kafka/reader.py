"""Reads of the topic by one node: the records after an offset, and what they show about its writers.

A read is valid only if the topic is still the same, and compaction cannot have dropped a tombstone in the meantime
(`watch.py`).
"""

import math
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Message

from strata.storage.kafka.call_lock import CallLock
from strata.storage.kafka.cursor import Cursor, offset_of
from strata.storage.kafka.end_offset import EndOffset, LogEnd
from strata.storage.kafka.watch import Clock, Seen, TopicWatch
from strata.storage.kafka.writers import ForeignRecords, Signatures
from strata.storage.log import START, Entry, LogCompacted, LogError, LogReplaced
from strata.storage.record_json import encode
from strata.storage.records import NoopKey

__all__ = ["TopicReader"]

_NOOP_KEY = encode(NoopKey()).key
_RETRY_S = 0.05


class TopicReader:
    """The reads of one node. Thread-safe.

    Args:
        client: The settings of librdkafka.
        topic: The topic's name.
        end: The end of the topic.
        watch: The check that the topic is the one that was opened.
        seen: When this node was at the end of the log.
        signatures: Receives the signatures that are read.
        foreign: Receives the records that are read while this node has the pen.
        timeout_s: Time limit for each step of a read, in seconds.
        now: The clock of `seen`.
    """

    def __init__(
        self,
        client: Mapping[str, object],
        topic: str,
        *,
        end: EndOffset,
        watch: TopicWatch,
        seen: Seen,
        signatures: Signatures,
        foreign: ForeignRecords,
        timeout_s: float,
        now: Clock,
    ) -> None:
        self._topic, self._timeout_s, self._now = topic, timeout_s, now
        self._end, self._watch, self._seen = end, watch, seen
        self._signatures, self._foreign = signatures, foreign
        self._cursor = Cursor(client, topic)
        self._reads = CallLock(topic)
        self.known_end: LogEnd | None = None
        """The end of the log at the last read; the log may have grown since."""

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset; see `Log.read`."""
        self._reads.check_open()
        try:
            yield from self._read(after)
        except LogReplaced:
            raise
        except LogCompacted:
            # If another topic has the name, `confirm` raises LogReplaced, and this topic must not be read again.
            self._watch.confirm(self._deadline(), at_once=True)
            raise

    def entries(self, after: int, end: int, deadline: float = math.inf) -> Iterator[Entry]:
        """Yield the records between two offsets, and note their signatures and the records of other products.

        Args:
            after: The offset after which to read.
            end: The offset below which to read.
            deadline: When to give up, on the clock of `time.monotonic`; each step has a time limit besides.

        Raises:
            LogCompacted: The topic no longer has the offset, or has lost records that were read.
            LogError: The topic is gone, may not be read, or was not read in time.
        """
        while messages := self._take(after, end, deadline):
            for message in messages:
                key = message.key()
                # A start reads hundreds of thousands of records; the comparison skips work that few of them need.
                if key == _NOOP_KEY:
                    self._signatures.note(message)
                offset = offset_of(message)
                if offset > self._foreign.since:
                    self._foreign.note(message)
                yield Entry(offset, message.timestamp()[1], key, message.value())
            after = offset_of(messages[-1])

    def last_before(self, end: int) -> int:
        """Return the offset of the last record before an end, or `START` if there is none.

        Raises:
            LogError: The topic was not read in time.
        """
        # A reader that has just read to the end, as writers do, knows the answer; otherwise search.
        position = self._cursor.position
        if position is not None and position.is_record and position.following == end:
            return position.last
        return self._end.last_record(end, self._timeout_s)

    def sees(self, first: int, last: int, timeout_s: float) -> bool:
        """Wait until the records from offset `first` to `last` can be read; see `Cursor.sees`.

        Args:
            first: The offset of the first record.
            last: The offset of the last record.
            timeout_s: Time limit in seconds, for other reads and again for the records.

        Returns:
            Whether it is certain that they can be read.
        """
        try:
            with self._reads.taken(timeout_s):
                return self._cursor.sees(first, last, timeout_s)
        except LogError:  # a read is under way
            return False

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._reads.close(self._cursor.close)

    def _read(self, after: int) -> Iterator[Entry]:
        began, deadline = self._now(), self._deadline()
        complete = self._seen.since(after)
        last, end = after, self._end_beyond(after, deadline)
        self._signatures.begin(end)
        if after == START:
            self._signatures.forget()
            with self._reads.taken(self._timeout_s):
                self._cursor.forget()
        for entry in self.entries(self._end.first(deadline) - 1 if after == START else after, end):
            last = entry.offset
            yield entry
        self._watch.confirm(self._deadline())
        self._seen.check(complete, after)
        self._seen.note(last, began)
        self.known_end = LogEnd(last, end)

    def _end_beyond(self, after: int, deadline: float) -> int:
        """Return the end, which must lie beyond `after`.

        Raises:
            LogCompacted: The log ends earlier: it has lost records.
            LogReplaced: Another topic has the name.
        """
        while True:
            end = self._end.now(deadline)
            if end > after:
                return end
            self._watch.confirm(deadline, at_once=True)
            # For a moment, a new leader may report an earlier end than its predecessor had acknowledged.
            if time.monotonic() > deadline:
                raise LogCompacted(
                    f"topic {self._topic} lost records: it ends at offset {end}, and this node has read up to {after}; "
                    "the node reads it from the start"
                )
            time.sleep(_RETRY_S)

    def _take(self, after: int, end: int, deadline: float) -> list[Message]:
        timeout_s = min(self._timeout_s, max(0.0, deadline - time.monotonic()))
        with self._reads.taken(timeout_s):
            return self._cursor.take(after, end, timeout_s)

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout_s
