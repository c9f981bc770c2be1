"""Logs as source and as target of a transfer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from registry.transfer.copies import Copy, TransferError, copy_of_entries
from registry.transfer.progress import step, tell, walk
from storage.addresses import without_password
from storage.log import START, Conflict, Entry, Log, LogError, Record
from storage.open_log import not_opened, open_log
from storage.record_json import encode
from storage.records import NoopKey

__all__ = ["is_log", "read_log", "restore"]

_SCHEMES = ("sqlite:", "sqlite+pysqlite:", "postgresql:", "postgres:", "postgresql+psycopg:", "kafka:")
_NOOP = encode(NoopKey()).key
# More than one transaction of a Kafka topic takes well; a database takes everything at once.
_KAFKA_BATCH, _KAFKA_BYTES = 5_000, 16 << 20
Batch = list[Record]


def is_log(where: str) -> bool:
    """Tell the URL of a log from that of a service and the name of a file."""
    return where.lower().startswith(_SCHEMES)


def read_log(url: str, kafka_config: Mapping[str, str]) -> Copy:
    """Read a log to its end.

    Raises:
        TransferError: there is no such log, it holds nothing, or cannot be read.
    """
    name = without_password(url)
    with _opened(url, kafka_config, must_exist=True) as log:
        copy = copy_of_entries(name, walk(f"reading {name}", log.read(START)))
    if copy.end == START:
        raise TransferError(f"{name} holds no record: is it the right log?")
    return copy


def restore(copy: Copy, url: str, kafka_config: Mapping[str, str], batch: int | None) -> int:
    """Write a copy's records into a log that holds nothing, or what an interrupted restore left; return how many.

    A SQL log takes everything in one append, a Kafka topic in batches: there the first record is seen before the
    last is written, and a restore that was interrupted goes on where it stopped. `batch` asks for another size.

    Raises:
        TransferError: the log holds something else, or cannot be written.
    """
    name = without_password(url)
    with _opened(url, kafka_config) as log:
        end, done = _already(log, name, copy.records)
        if done:
            tell(f"{name} holds {done} of {len(copy.records)} records of an earlier run; going on after them")
        rest = copy.records[done:]
        batches = list(_batches(rest, batch, is_kafka=url.lower().startswith("kafka:")))
        if len(batches) > 1:
            tell(f"{name}: {len(rest)} records in {len(batches)} appends; until the last one no node should serve it")
        with step(f"writing {name}", len(rest)) as advance:
            for part in batches:
                try:
                    end = log.append(end, part)[-1].offset
                except Conflict:
                    raise TransferError(
                        f"{name}: somebody else writes to this log; stop that, and start with a new one"
                    ) from None
                advance(len(part))
    return len(rest)


def _already(log: Log, name: str, records: Sequence[Record]) -> tuple[int, int]:
    """Return the log's end, and how many of the records it holds: nothing else may be there."""
    end, done = START, 0
    for entry in log.read(START):
        end = entry.offset
        if entry.key == _NOOP:
            continue  # only says who may write
        if done == len(records) or not _is(entry, records[done]):
            raise TransferError(
                f"{name} is not empty, and what it holds is not the beginning of this import: nothing was written. "
                "Take a new file, database or topic"
            )
        done += 1
    return end, done


def _is(entry: Entry, record: Record) -> bool:
    return entry.key == record.key and entry.value == record.value


def _batches(records: Sequence[Record], size: int | None, *, is_kafka: bool) -> Iterator[Batch]:
    """Cut records into appends: all at once, or `size` at a time, or what a transaction of a topic takes."""
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
def _opened(url: str, kafka_config: Mapping[str, str], *, must_exist: bool = False) -> Iterator[Log]:
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
