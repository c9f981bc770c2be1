"""`strata compact` and `strata log`, which work on a log directly, even while nodes serve it."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing

import orjson

from strata.registry.node.log_opening import open_for
from strata.registry.settings import Settings
from strata.storage.fold import Fold
from strata.storage.log import START, Entry, Log
from strata.storage.sql.compaction import compact
from strata.storage.state import State

__all__ = ["compact_log", "listed_lines"]

_SQL = ("sqlite", "postgresql")
_KAFKA_NOTE = (
    "Nothing to compact: a Kafka log is a compacted topic, which the brokers compact by themselves according to the "
    "topic's settings (min.cleanable.dirty.ratio, segment.ms, delete.retention.ms)."
)
_MEMORY_NOTE = "Nothing to compact: a log in memory ends with the process that serves it."


def compact_log(settings: Settings, *, dry_run: bool, say: Callable[[str], None]) -> None:
    """Compact the log of the settings, and report the result.

    Args:
        settings: the settings that name the log.
        dry_run: whether to report only.
        say: prints a line.

    Raises:
        StartError: if the log cannot be opened.
        LogError: if the log fails.
        CompactionRefused: if the compacted log would not give the same result.
    """
    with closing(open_for(settings, must_exist=True, named="LOG")) as log:
        if log.status().backend not in _SQL:
            say(_KAFKA_NOTE if log.status().backend == "kafka" else _MEMORY_NOTE)
            return
        from strata.storage.sql.log import SqlLog

        assert isinstance(log, SqlLog)  # noqa: S101 - its backend is a SQL one
        plan = compact(log, dry_run=dry_run, progress=say)
    left = plan.records - len(plan.dropped)
    say(f"{plan.records} records before, {left} {'would be left' if dry_run else 'after'}")


def listed_lines(settings: Settings, *, set_aside: bool, tail: int | None) -> Iterator[bytes]:
    """Yield the records of the log of the settings as JSON lines, with the reason for those set aside.

    Args:
        settings: the settings that name the log.
        set_aside: whether to yield only records that are set aside.
        tail: how many of the last records to yield; None means all.

    Raises:
        StartError: if the log cannot be opened.
        LogError: if the log fails.
    """
    with closing(open_for(settings, must_exist=True, named="LOG")) as log:
        listed = ((entry, reason) for entry, reason in _folded(log) if reason is not None or not set_aside)
        for entry, reason in listed if tail is None else deque(listed, tail):
            yield orjson.dumps(_line(entry, reason), option=orjson.OPT_APPEND_NEWLINE)


def _folded(log: Log) -> Iterator[tuple[Entry, str | None]]:
    fold = Fold(State())
    for entry in log.read(START):
        yield entry, fold.apply(entry)


def _line(entry: Entry, reason: str | None) -> dict[str, object]:
    line = {"offset": entry.offset, "ts": entry.timestamp, "key": _shown(entry.key), "value": _shown(entry.value)}
    return line | ({} if reason is None else {"setAside": _text(reason)})


def _shown(data: bytes | None) -> object:
    """Return JSON as a value, and anything else as text."""
    try:
        return None if data is None else orjson.loads(data)
    except ValueError:
        return _text((data or b"").decode(errors="backslashreplace"))


def _text(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()
