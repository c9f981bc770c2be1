"""A batch of records as Kafka stores it (format version 2), of one transaction."""

import struct
from collections.abc import Iterator, Mapping, Sequence

from google_crc32c import value as crc32c

from strata.storage.log import Record

__all__ = ["batches"]

_MAGIC, _TRANSACTIONAL = 2, 0x10
_NO_EPOCH = -1
_HEAD = struct.Struct(">hiqqqhii")  # attributes, last delta, times, producer, its epoch, first sequence number, count


def batches(
    records: Sequence[Record],
    headers: Sequence[Mapping[str, bytes]],
    *,
    now: int,
    producer: tuple[int, int],
    sequence: int,
    most_bytes: int,
) -> Iterator[tuple[bytes, list[int]]]:
    """Yield batches that hold all records in their order, each with the times of its records.

    Args:
        records: the records, at least one.
        headers: the headers of each record.
        now: the time of records without a time of their own, in milliseconds.
        producer: the id and the epoch of the producer.
        sequence: the number of the first record among those of this producer and epoch.
        most_bytes: the most bytes of a batch; one record alone may be larger.
    """
    fields = [(record.time(now), *_fields(record, headers[i])) for i, record in enumerate(records)]
    start = 0
    while start < len(fields):
        first = fields[start][0]
        times: list[int] = []
        body = bytearray()
        for time, before, after in fields[start:]:
            delta = len(times)
            content = b"\0" + _varint(time - first) + _varint(delta) + before + after
            framed = _varint(len(content)) + content
            if times and len(body) + len(framed) > most_bytes:
                break
            body += framed
            times.append(time)
        yield _batch(bytes(body), times, producer, _wrapped(sequence + start)), times
        start += len(times)


def _batch(body: bytes, times: Sequence[int], producer: tuple[int, int], sequence: int) -> bytes:
    last = len(times) - 1
    content = _HEAD.pack(_TRANSACTIONAL, last, times[0], max(times), *producer, sequence, last + 1) + body
    tail = struct.pack(">ibI", _NO_EPOCH, _MAGIC, crc32c(content)) + content
    return struct.pack(">qi", 0, len(tail)) + tail


def _wrapped(sequence: int) -> int:
    return sequence & 0x7FFFFFFF


def _fields(record: Record, headers: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    """Return the key and the value of a record, and its headers."""
    named = [_sized(name.encode()) + _sized(value) for name, value in headers.items()]
    return _sized(record.key) + _sized(record.value), _varint(len(named)) + b"".join(named)


def _sized(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Return a signed number in as few bytes as it takes, as Protocol Buffers do (sint64)."""
    left = number << 1 if number >= 0 else (-number << 1) - 1
    if left < 0x80:
        return bytes((left,))
    written = bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
