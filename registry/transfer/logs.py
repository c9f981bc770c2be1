"""Logs as source and target of a transfer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from strata.registry.transfer.copies import Copy, TransferError, copy_of_entries
from strata.registry.transfer.progress import print_line, step, track
from strata.storage.addresses import without_password
from strata.storage.log import START, Conflict, Entry, Log, LogError, Record
from strata.storage.open_log import not_opened, open_log
from strata.storage.record_json import encode
from strata.storage.records import NoopKey

__all__ = ["is_log", "opened", "read_log", "restore"]

_SCHEMES = ("sqlite:", "sqlite+pysqlite:", "postgresql:", "postgres:", "postgresql+psycopg:", "kafka:")
_NOOP = encode(NoopKey()).key
# A larger transaction would strain a Kafka topic; a database takes everything at once.
_KAFKA_BATCH, _KAFKA_BYTES = 5_000, 16 << 20
Batch = list[Record]


def is_log(where: str) -> bool:
    """Return whether a text is the URL of a log, not that of a service or the name of a file."""
    return where.lower().startswith(_SCHEMES)


def read_log(url: str, kafka_config: Mapping[str, str]) -> Copy:
    """Read a log to its end.

    Args:
        url: the URL of the log.
        kafka_config: librdkafka settings for a Kafka log.

    Raises:
        TransferError: if the log does not exist, is empty or cannot be read.
    """
    name = without_password(url)
    with opened(url, kafka_config, must_exist=True) as log:
        copy = copy_of_entries(name, track(f"reading {name}", log.read(START)))
    if copy.end == START:
        raise TransferError(f"{name} is empty; expected a log with records")
    return copy


def restore(copy: Copy, url: str, kafka_config: Mapping[str, str], batch: int | None) -> int:
    """Write a copy's records into a log, which must be empty or hold the start of the same restore.

    A SQL log takes all records in one append. A Kafka topic takes them in batches, so readers see the first records
    before the last is written, and a restore continues after an interruption.

    Args:
        copy: the copy.
        url: the URL of the log.
        kafka_config: librdkafka settings for a Kafka log.
        batch: the records per append; None means the default of the backend.

    Returns:
        The number of records written.

    Raises:
        TransferError: if the log holds something else or cannot be written.
    """
    name = without_password(url)
    with opened(url, kafka_config) as log:
        end, done = _already(log, name, copy.records)
        if done:
            print_line(
                f"{name} already holds {done} of {len(copy.records)} records from an earlier run; continuing after them"
            )
        rest = copy.records[done:]
        batches = list(_batches(rest, batch, is_kafka=url.lower().startswith("kafka:")))
        if len(batches) > 1:
            print_line(
                f"{name}: writing {len(rest)} records in {len(batches)} appends; do not serve it before the last"
            )
        with step(f"writing {name}", len(rest)) as advance:
            for part in batches:
                try:
                    end = log.append(end, part)[-1].offset
                except Conflict:
                    raise TransferError(
                        f"{name}: another writer appends to this log; stop it, and import into a new log"
                    ) from None
                advance(len(part))
    return len(rest)


def _already(log: Log, name: str, records: Sequence[Record]) -> tuple[int, int]:
    """Return the log's end, and how many of the records it already holds; reject any other content."""
    end, done = START, 0
    for entry in log.read(START):
        end = entry.offset
        if entry.key == _NOOP:
            continue  # only names the pen's holder
        if done == len(records) or not _is(entry, records[done]):
            raise TransferError(
                f"{name} is not empty, and does not hold the start of this import; expected a new file, database or "
                "topic. Nothing was written"
            )
        done += 1
    return end, done


def _is(entry: Entry, record: Record) -> bool:
    return entry.key == record.key and entry.value == record.value


def _batches(records: Sequence[Record], size: int | None, *, is_kafka: bool) -> Iterator[Batch]:
    """Split records into appends: all at once, `size` at a time, or as many as a topic's transaction takes."""
    most = size or (_KAFKA_BATCH if is_kafka else len(records))
    rest = iter(records)
    while part := list(islice(rest, most)):
        yield from _by_bytes(part) if is_kafka else [part]


def _by_bytes(records: Batch) -> Iterator[Batch]:
    part, size = Batch(), 0
    for record in records:
        length = len(record.key) + len(record.value or b"")
        if part and size + length > _KAFKA_BYTES:
            yield part
            part, size = [], 0
        part.append(record)
        size += length
    yield part


@contextmanager
def opened(url: str, kafka_config: Mapping[str, str], *, must_exist: bool = False) -> Iterator[Log]:
    """Open a log for a block.

    Raises:
        TransferError: if it cannot be opened, or fails in the block.
    """
    name = without_password(url)
    try:
        log = open_log(url, kafka_config=kafka_config, must_exist=must_exist)
    except ValueError as error:
        raise TransferError(str(error)) from None
    except LogError as error:
        raise TransferError(not_opened(url, error)) from None
    try:
        yield log
    except LogError as error:
        raise TransferError(f"the log {name} failed: {error}") from None
    finally:
        log.close()
