"""The end of the topic, requested from its leader, and the last record before it.

The end is the last stable offset: everything below it is decided. A separate client requests it, because a consumer's
connection is mostly busy with a fetch that waits for records, and a request would wait behind it.
"""

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain, repeat

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from strata.storage.kafka.cursor import Cursor, offset_of
from strata.storage.log import LogError, LogTimeout

__all__ = ["EndOffset", "LogEnd"]

_LATEST, _EARLIEST = -1, -2  # in place of a timestamp, the protocol takes these
_RETRY_S = 0.05
_ATTEMPT_S = 3.0
_PAUSES_S = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02)
_SCAN = 16


@dataclass(frozen=True, slots=True)
class LogEnd:
    """A fact about the log: no record that a State must apply lies between `last` and `following`."""

    last: int
    following: int

    def allows(self, after: int) -> bool:
        """Return whether a State at an offset has every record before `following`."""
        return self.last <= after < self.following


class EndOffset:
    """The end of the topic's only partition. Thread-safe."""

    def __init__(self, config: Mapping[str, object], topic: str) -> None:
        self._config, self._topic = config, topic
        # A consumer that reads nothing: it asks at half the cost of an admin client (docs/decisions/0030).
        self._client = Consumer(
            {"group.id": "strata", **config, "isolation.level": "read_committed", "enable.auto.commit": False}
        )

    def now(self, deadline: float) -> int:
        """Return the last stable offset, below which everything is decided.

        Args:
            deadline: A time on the clock of `time.monotonic`, in seconds.

        Raises:
            LogError: The leader did not answer in time.
        """
        return self._ask(_LATEST, deadline)

    def first(self, deadline: float) -> int:
        """Return the offset at which the topic begins; `deadline` and errors are those of `now`."""
        return self._ask(_EARLIEST, deadline)

    def once_beyond(self, offset: int, deadline: float) -> int:
        """Wait until the end has passed a record, so that everyone can read it, and return the end.

        Args:
            offset: The offset of the record.
            deadline: A time on the clock of `time.monotonic`, in seconds.

        Raises:
            LogTimeout: The end did not pass the record in time, or the leader did not answer.
        """
        for pause in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            try:
                end = self.now(deadline)
            except LogError as error:
                raise LogTimeout(f"offset {offset} was written, but may not be readable yet: {error}") from error
            if end > offset:
                return end
            if time.monotonic() > deadline:
                break
            time.sleep(pause)
        raise LogTimeout(f"topic {self._topic}: offset {offset} was written, but is not readable yet")

    def last_record(self, end: int, timeout_s: float) -> int:
        """Search backwards from an end for the last record before it, and return its offset.

        If the topic holds no record, return the offset before the topic's first: earlier records have been deleted.

        Args:
            end: The end.
            timeout_s: Time limit for each step, in seconds.

        Raises:
            LogError: The topic was not read in time.
        """
        first, span = self.first(time.monotonic() + timeout_s), _SCAN
        while end > first:
            message = self.last_between(max(first, end - span), end, timeout_s)
            if message is not None:
                return offset_of(message)
            if end - span <= first:
                break
            span *= _SCAN
        return first - 1

    def last_between(self, start: int, end: int, timeout_s: float) -> Message | None:
        """Return the last record from `start` to below `end`, or None if there is no record.

        Raises:
            LogError: The topic was not read in time.
        """
        message: Message | None = None
        with closing(Cursor(self._config, self._topic)) as cursor:
            while more := cursor.take(start - 1, end, timeout_s):
                message, start = more[-1], offset_of(more[-1]) + 1
        return message

    def _ask(self, which: int, deadline: float) -> int:
        reason = "the leader did not answer in time"
        while True:
            left = min(_ATTEMPT_S, max(0.1, deadline - time.monotonic()))
            try:
                offset = self._ask_once(which, left)
            except KafkaException as error:
                reason = error.args[0].str()
            else:
                # An unanswered request is reported as a success with a negative offset.
                if offset >= 0:
                    return offset
            if time.monotonic() > deadline:
                raise LogError(f"topic {self._topic}: cannot get its end: {reason}")
            # Refresh the metadata: otherwise the client asks an old leader, with an old epoch, for minutes.
            with suppress(KafkaException):
                self._client.list_topics(timeout=left)
            time.sleep(_RETRY_S)

    def _ask_once(self, which: int, timeout_s: float) -> int:
        (answer,) = self._client.offsets_for_times([TopicPartition(self._topic, 0, which)], timeout=timeout_s)
        if answer.error is not None:
            raise KafkaException(answer.error)
        return answer.offset
