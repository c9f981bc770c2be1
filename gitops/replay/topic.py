"""The records of a topic, from a place to the end that it had at the start.

Partitions are assigned, no group is joined, and nothing is committed. Records of aborted transactions are left out.

Rules of this file: Kafka in, batches of bytes out; no schemas.
"""

import time
from array import array
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from strata.gitops.errors import GitopsError
from strata.gitops.replay.outcome import Place
from strata.gitops.replay.start import Start

__all__ = ["Batch", "TopicReader"]

_CONSUMED: Final = 500
"""Messages of one call. Python's collector of cycles looks at messages; of more at once it looks at each repeatedly."""
_BATCH: Final = 10_000
_BATCH_BYTES: Final = 32 << 20
_BATCH_S: Final = 0.5
"""How long a batch may take to fill."""
_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 1.0
_BLOCK: Final = 1_000
"""Records that a sample takes one after the other."""
_IDS: Final = ("__value_schema_id", "__key_schema_id")


@dataclass(slots=True)
class Batch:
    """Records of one partition, in order; their messages are not kept.

    Attributes:
        partition: the partition.
        data: the values of the records, or their keys, one behind the other.
        sizes: the length of each value; negative if a record has none.
        headers: the record headers that name schemas; None if no record has one.
        passed: how many offsets the batch has advanced.
    """

    partition: int
    data: bytes = b""
    sizes: "array[int]" = field(default_factory=lambda: array("q"))
    headers: list[bytes | None] | None = None
    passed: int = 0
    _runs: list[tuple[int, int]] = field(default_factory=list)
    """The rows at which consecutive offsets begin, with the first of these offsets."""
    _parts: list[bytes] = field(default_factory=list)
    _filled: int = 0

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self.sizes)

    def place(self, row: int) -> Place:
        """Return where a record is."""
        first, offset = self._runs[bisect(self._runs, row, key=lambda run: run[0]) - 1]
        return Place(self.partition, offset + row - first)

    def frames(self) -> Iterator[bytes | None]:
        """Yield the values."""
        start = 0
        for size in self.sizes:
            yield None if size < 0 else self.data[start : start + size]
            start += max(size, 0)

    @property
    def is_full(self) -> bool:
        """Whether the batch should be judged before more is added."""
        return len(self) >= _BATCH or self._filled >= _BATCH_BYTES

    def add(self, messages: Sequence[Message], passed: int, *, is_key: bool) -> None:
        """Add records without an error."""
        values: list[Any] = list(map(Message.key if is_key else Message.value, messages))
        headers = list(map(Message.headers, messages))
        if any(headers):
            self.headers = [*(self.headers or [None] * len(self)), *(_named(each, _IDS[is_key]) for each in headers)]
        elif self.headers is not None:
            self.headers += [None] * len(messages)
        self._add_places(messages)
        try:
            self.sizes.extend(list(map(len, values)))
        except TypeError:  # a record without a value
            self.sizes.extend(-1 if value is None else len(value) for value in values)
            values = [value for value in values if value is not None]
        part = b"".join(values)
        self._parts.append(part)
        self._filled += len(part)
        self.passed += passed

    def _add_places(self, messages: Sequence[Message]) -> None:
        first, last = messages[0].offset() or 0, messages[-1].offset() or 0
        if last - first + 1 == len(messages):
            self._runs.append((len(self), first))
        else:
            self._runs.extend((row, message.offset() or 0) for row, message in enumerate(messages, len(self)))

    def closed(self) -> "Batch":
        """Return the batch with its values in one piece; nothing can be added any more."""
        self.data = b"".join(self._parts)
        self._parts.clear()
        return self


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
        self._topic, self._is_key = topic, is_key
        own: dict[str, Any] = {
            "group.id": f"strata-replay-{uuid4()}",  # librdkafka wants one; it is never joined
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "queued.max.messages.kbytes": 65536,
            "fetch.max.bytes": 33554432,
            # At the end of a partition a request waits for more records, and those of the next partition wait for it.
            "fetch.wait.max.ms": 10,
            "fetch.queue.backoff.ms": 10,  # before more is fetched after the queue was full; a second by default
            "log_level": 2,  # errors are in our own words
        }
        self._error: KafkaError | None = None
        try:
            self._consumer = Consumer({"error_cb": self._note, **own, **settings})
        except KafkaException as error:
            raise GitopsError(f"the settings of Kafka are not usable: {error.args[0].str()}") from None
        except (TypeError, ValueError) as error:  # settings that are functions, which no file can hold
            raise GitopsError(f"the settings of Kafka are not usable: {error}") from None
        try:
            self._ends = self._find_ends()
        except BaseException:
            self._consumer.close()
            raise

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _note(self, error: KafkaError) -> None:
        self._error = error

    def _find_ends(self) -> dict[int, tuple[int, int]]:
        """Return the first offset and the end of each partition that holds records."""
        try:
            known = self._consumer.list_topics(self._topic, timeout=_TIMEOUT_S).topics[self._topic]
            if known.error is not None:
                raise GitopsError(f"the topic {self._topic}: {known.error.str()}")
            ends = {}
            for partition in known.partitions:
                at = TopicPartition(self._topic, partition)
                low, high = self._consumer.get_watermark_offsets(at, timeout=_TIMEOUT_S)
                if low < high:
                    ends[partition] = (low, high)
        except KafkaException as error:
            self._consumer.poll(0)  # calls `_note`, whose error says more
            reason = self._error.str() if self._error is not None else error.args[0].str()
            raise GitopsError(f"the topic {self._topic} cannot be read: {reason}") from None
        return ends

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
        for partition, first, end in ranges:
            self._consumer.assign([TopicPartition(self._topic, partition, first)])
            yield from self._range(partition, first, end)

    def _range(self, partition: int, first: int, end: int) -> Iterator[Batch]:
        batch, began = Batch(partition), time.monotonic()
        for messages, passed in self._messages(partition, first, end):
            if messages:
                batch.add(messages, passed, is_key=self._is_key)
            if len(batch) and (batch.is_full or time.monotonic() - began > _BATCH_S):
                yield batch.closed()
                batch, began = Batch(partition), time.monotonic()
        if len(batch):
            yield batch.closed()

    def _messages(self, partition: int, first: int, end: int) -> Iterator[tuple[Sequence[Message], int]]:
        """Yield messages without errors, and how many offsets they have advanced; none if there are none yet."""
        position, heard = first, time.monotonic()
        while position < end:
            messages = self._consumer.consume(min(_CONSUMED, end - position), timeout=_POLL_S)
            if not messages:
                # The rest may be markers of transactions, or records that compaction has dropped.
                [at] = self._consumer.position([TopicPartition(self._topic, partition)])
                if at.offset >= end:
                    return
                if time.monotonic() - heard > _TIMEOUT_S:
                    reason = self._error.str() if self._error is not None else "no answer"
                    raise GitopsError(f"partition {partition} of {self._topic} at offset {position}: {reason}")
                yield (), 0
                continue
            heard = time.monotonic()
            if any(map(Message.error, messages)):
                error = next(error for error in map(Message.error, messages) if error is not None)
                raise GitopsError(f"partition {partition} of {self._topic} at offset {position}: {error.str()}")
            last = int(messages[-1].offset() or 0)
            while messages and (messages[-1].offset() or 0) >= end:
                messages.pop()
            passed, position = min(last + 1, end) - position, last + 1
            yield messages, passed


def _named(headers: Any, name: str) -> bytes | None:
    value = dict(headers or ()).get(name)
    return value.encode() if isinstance(value, str) else value
