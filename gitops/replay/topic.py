"""The records of a topic, from a place to the end that it had at the start.

Partitions are assigned, no group is joined, and nothing is committed. Records of aborted transactions are left out.

Rules of this file: Kafka in, batches of bytes out; no schemas.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final
from uuid import uuid4

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from numpy.typing import NDArray

from strata.gitops.errors import GitopsError
from strata.gitops.replay.messages import Messages
from strata.gitops.replay.outcome import Place
from strata.gitops.replay.start import Start

__all__ = ["Batch", "TopicReader"]

_BATCH: Final = 10_000
_WAIT_MS: Final = 100
"""How long a batch may take to fill."""
_TIMEOUT_S: Final = 30.0
_STEP_S: Final = 2.0
_REFUSED: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_BLOCK: Final = 1_000
"""Records that a sample takes one after the other."""
_IDS: Final = ("__value_schema_id", "__key_schema_id")
_SETTINGS: Final = {
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "queued.min.messages": "20000",  # two batches; more would only leave the caches of the processor
    "queued.max.messages.kbytes": "65536",
    "fetch.max.bytes": "33554432",
    # At the end of a partition a request waits for more records, and those of the next partition wait for it.
    "fetch.wait.max.ms": "10",
    "fetch.queue.backoff.ms": "10",  # before more is fetched after the queue was full; a second by default
    "log_level": "2",  # errors are in our own words
}
_FIXED: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
}
"""Settings that no file can change, which may be that of a program with a group of its own."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one partition, in order.

    Attributes:
        partition: the partition.
        data: the values of the records, or their keys, one behind the other.
        sizes: the length of each value; negative if a record has none.
        offsets: the offset of each record.
        headers: the record headers that name schemas; None if no record has one.
        passed: how many offsets the batch has advanced.
    """

    partition: int
    data: NDArray[np.uint8]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]
    headers: list[bytes | None] | None = None
    passed: int = 0

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self.sizes)

    def place(self, row: int) -> Place:
        """Return where a record is."""
        return Place(self.partition, int(self.offsets[row]))

    def frames(self) -> Iterator[bytes | None]:
        """Yield the values."""
        start = 0
        for size in self.sizes.tolist():
            yield None if size < 0 else self.data[start : start + size].tobytes()
            start += max(size, 0)


class TopicReader:
    """A consumer of a topic; close it.

    Args:
        topic: the name of the topic.
        settings: the settings of librdkafka.
        is_key: whether the keys of records are read instead of their values.

    Raises:
        GitopsError: If the brokers do not answer, or the topic does not exist.
    """

    def __init__(self, topic: str, settings: Mapping[str, str], *, is_key: bool = False) -> None:
        self._topic = topic
        # librdkafka wants the name of a group, which is never joined.
        all_settings = {**_SETTINGS, **settings, **_FIXED, "group.id": f"strata-replay-{uuid4()}"}
        self._error: KafkaError | None = None
        try:
            self._consumer = Consumer({"error_cb": self._note, **all_settings})
        except KafkaException as error:
            raise GitopsError(f"the settings of Kafka are not usable: {error.args[0].str()}") from None
        except (TypeError, ValueError) as error:  # settings that are functions, which no file can hold
            raise GitopsError(f"the settings of Kafka are not usable: {error}") from None
        try:
            self._messages = Messages(topic, all_settings, _IDS[is_key], is_key=is_key, most=_BATCH)
        except BaseException:
            self._consumer.close()
            raise
        try:
            self._ends = self._find_ends()  # while `_messages` connects
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections."""
        self._messages.close()
        self._consumer.close()

    def _note(self, error: KafkaError) -> None:
        self._error = error

    def _find_ends(self) -> dict[int, tuple[int, int]]:
        """Return the first offset and the end of each partition that holds records."""
        try:
            ends = {}
            for partition in self._partitions():
                at = TopicPartition(self._topic, partition)
                low, high = self._consumer.get_watermark_offsets(at, timeout=_TIMEOUT_S)
                if low < high:
                    ends[partition] = (low, high)
        except KafkaException as error:
            reason = self._error.str() if self._error is not None else error.args[0].str()
            raise GitopsError(f"the topic {self._topic} cannot be read: {reason}") from None
        return ends

    def _partitions(self) -> list[int]:
        """Return the partitions of the topic; give up early if the brokers refuse the credentials."""
        until = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                known = self._consumer.list_topics(self._topic, timeout=_STEP_S).topics[self._topic]
            except KafkaException:
                self._consumer.poll(0)  # calls `_note`, whose error says more
                if time.monotonic() > until or (self._error is not None and self._error.code() in _REFUSED):
                    raise
            else:
                if known.error is not None:
                    raise GitopsError(f"the topic {self._topic}: {known.error.str()}")
                return [*known.partitions]

    def plan(self, start: Start, sample: int | None) -> list[tuple[int, int, int]]:
        """Return the ranges to read: partition, first offset and end.

        Args:
            start: where reading begins.
            sample: about how many records to read, in blocks spread evenly; None means all.
        """
        firsts = self._firsts(start)
        ranges = [(partition, firsts[partition], end) for partition, (_, end) in sorted(self._ends.items())]
        ranges = [(partition, first, end) for partition, first, end in ranges if first < end]
        total = sum(end - first for _, first, end in ranges)
        if sample is None or sample >= total:
            return ranges
        blocks = max(1, -(-sample // _BLOCK))
        size = -(-sample // blocks)
        chosen = []
        for number in range(blocks):
            at = number * total // blocks
            for partition, first, end in ranges:
                if at < end - first:
                    chosen.append((partition, first + at, min(first + at + size, end)))
                    break
                at -= end - first
        return chosen

    def _firsts(self, start: Start) -> dict[int, int]:
        if start.last is not None:
            return {partition: max(low, end - start.last) for partition, (low, end) in self._ends.items()}
        if start.time_ms is None:
            return {partition: low for partition, (low, _) in self._ends.items()}
        asked = [TopicPartition(self._topic, partition, start.time_ms) for partition in self._ends]
        try:
            offsets = self._consumer.offsets_for_times(asked, timeout=_TIMEOUT_S) if asked else []
        except KafkaException as error:
            raise GitopsError(f"the topic {self._topic} cannot be read: {error.args[0].str()}") from None
        return {at.partition: at.offset if at.offset >= 0 else self._ends[at.partition][1] for at in offsets}

    def read(self, ranges: Sequence[tuple[int, int, int]]) -> Iterator[Batch]:
        """Yield the records of some ranges, one range after the other.

        Raises:
            GitopsError: If a partition cannot be read, or the brokers do not answer any more.
        """
        for (partition, first, end), following in zip_longest(ranges, ranges[1:]):
            self._messages.start(partition, first)
            if following is not None and following[0] != partition:
                self._messages.start(*following[:2])  # so that nothing waits for its first records
            yield from self._range(partition, first, end)
            self._messages.stop(partition)

    def _range(self, partition: int, first: int, end: int) -> Iterator[Batch]:
        position, heard = first, time.monotonic()
        while position < end:
            try:
                taken = self._messages.take(partition, end - position, end, _WAIT_MS)
            except GitopsError as error:
                raise self._unreadable(partition, position, str(error)) from None
            if len(taken.sizes):
                before, position = position, end if taken.is_end else int(taken.offsets[-1]) + 1
                passed, heard = position - before, time.monotonic()
                yield Batch(partition, taken.data, taken.sizes, taken.offsets, taken.headers, passed)
            elif taken.is_end:  # the rest is markers of transactions, or records that compaction has dropped
                return
            elif time.monotonic() - heard > _TIMEOUT_S:
                self._consumer.poll(0)  # calls `_note`
                raise self._unreadable(partition, position, self._error.str() if self._error else "no answer")

    def _unreadable(self, partition: int, position: int, reason: str) -> GitopsError:
        return GitopsError(f"partition {partition} of {self._topic} at offset {position}: {reason}")
