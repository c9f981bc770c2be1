"""Folds equal log lines into one line with a count, so that a failure that lasts does not fill the disk.

The first line is written at once. Further lines that differ from it only in numbers are counted for a second, and the
last of them is then written with their number. While lines keep coming, that interval doubles, up to a minute. Lines of
libraries, which have no event, are counted for ten seconds at first: a library that retries logs every few seconds.

A line that was held back has the time at which it is written, so that the lines of a process are in the order of their
times, and besides it the time at which it was logged.
"""

import copy
import logging
import re
import time
from collections.abc import Iterator, Set
from dataclasses import dataclass

__all__ = ["Folding", "event_of"]

_EVENT_S, _OTHER_S, _LONGEST_S = 1.0, 10.0, 60.0
_MOST_OPEN = 1_000
_Key = tuple[str, int, str]
_NUMBERS = re.compile(r"\d+")


def event_of(record: logging.LogRecord) -> str:
    """Return the event of a log record, which is the field `event`; empty if it has none."""
    return str(record.args.get("event", "")) if isinstance(record.args, dict) else ""


@dataclass(slots=True)
class _Series:
    """Equal lines: until when they are counted, for how long, how many there were, and the last one."""

    until: float
    interval: float
    count: int = 0
    last: logging.LogRecord | None = None


class Folding:
    """The lines of one process that are being counted. Not thread-safe.

    Args:
        each: the events of which each line is written.
    """

    def __init__(self, each: Set[str]) -> None:
        self._each, self._open = each, dict[_Key, _Series]()

    def take(self, record: logging.LogRecord, now: float) -> Iterator[logging.LogRecord]:
        """Take a line, and yield those to write now.

        Args:
            record: the line.
            now: the time on the monotonic clock, in seconds.
        """
        yield from self.due(now)
        if (event := event_of(record)) in self._each:
            yield record
            return
        series = self._open.get(key := self._key(record))
        if series is None:
            interval = _EVENT_S if event else _OTHER_S
            self._open[key] = _Series(now + interval, interval)
            yield record
        else:
            series.count, series.last = series.count + 1, record

    def due(self, now: float = float("inf")) -> Iterator[logging.LogRecord]:
        """Yield the lines that were counted long enough; by default all.

        Args:
            now: the time on the monotonic clock, in seconds.
        """
        for key, series in [item for item in self._open.items() if item[1].until <= now]:
            if series.last is None:
                del self._open[key]
                continue
            yield _counted(series.last, series.count)
            series.interval = min(2 * series.interval, _LONGEST_S)
            series.until, series.count, series.last = now + series.interval, 0, None

    def _key(self, record: logging.LogRecord) -> _Key:
        if len(self._open) >= _MOST_OPEN:
            return record.name, record.levelno, record.msg
        # librdkafka names the client and the thread in brackets; many fail for the same reason at once.
        return record.name, record.levelno, _NUMBERS.sub("0", record.getMessage().partition("[")[0])


def _counted(record: logging.LogRecord, count: int) -> logging.LogRecord:
    """Return the last of some equal lines, with their number if there were several, and both of its times."""
    counted = copy.copy(record)
    counted.created, counted.logged = time.time(), record.created
    if count > 1:
        counted.repeated = count
    return counted
