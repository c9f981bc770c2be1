"""Writes log lines to standard error, as text or as JSON.

An event that operators must know is logged with a mapping as its only argument: `event` is its name, the other items
are its fields, which the text may name. docs/logs.md lists all events.

Equal lines are folded into one with a count, so that a failure that lasts does not fill the disk. The first
line is written at once. Further lines that differ from it only in numbers are counted for a second, and the last of
them is then written with their number. While lines keep coming, that interval doubles, up to a minute. Lines of
libraries, which have no event, are counted for ten seconds at first: a library that retries logs every few seconds.

A line that was held back has the time at which it is written, so that the lines of a process are in the order of their
times, and besides it the time at which it was logged.
"""

import copy
import logging
import math
import re
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO

import orjson

from strata.registry.node.logs.changes import CHANGES
from strata.registry.node.logs.context import REQUEST

__all__ = ["Folding", "event_of", "set_up_logging", "write_folded"]

# The events of which each line is written: a change, a request or the end of a worker is never one of many.
_EACH = {"request", "worker_ended", *CHANGES}
_OURS = "strata"
_IDS = ("request_id", "trace_id")
# Also what ends a line or changes the direction of text for some viewers.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_EVENT_S, _OTHER_S, _LONGEST_S = 1.0, 10.0, 60.0
_MOST_OPEN = 1_000
_Key = tuple[str, int, str]
_NUMBERS = re.compile(r"\d+")


def set_up_logging(level: str, *, as_json: bool, worker: int | None = None) -> None:
    """Log to standard error, each line in one write, so that lines of several workers do not mix.

    Args:
        level: the lowest severity that is logged.
        as_json: whether lines are JSON objects; otherwise they are text.
        worker: the number of this worker; None for the process that started, or the only one.
    """
    handler = _Handler()
    handler.setFormatter(_JsonLines(worker) if as_json else _TextLines(worker))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # it warns of each retry; who asks says why all have failed


def write_folded(*, everything: bool = False) -> None:
    """Write the lines that were counted long enough, or all."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Handler):
            handler.write_folded(everything=everything)


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


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines to standard error, and folds equal ones."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._folding = Folding(_EACH)

    def emit(self, record: logging.LogRecord) -> None:
        if (origin := REQUEST.get()) is not None:  # now, because a folded line is written later
            record.request_id, record.trace_id = origin.request_id.decode(), origin.trace_id
        for line in self._folding.take(record, time.monotonic()):
            super().emit(line)

    def write_folded(self, *, everything: bool) -> None:
        """Write the lines that were counted long enough, or all."""
        self.acquire()
        try:
            for line in self._folding.due(math.inf if everything else time.monotonic()):
                super().emit(line)
        finally:
            self.release()

    def close(self) -> None:
        self.write_folded(everything=True)
        super().close()


def _fields(record: logging.LogRecord, worker: int | None) -> dict[str, object]:
    """Return the fields that belong to a line besides time, level, logger and message."""
    fields: dict[str, object] = {} if worker is None else {"worker": worker}
    fields |= {name: item for name in _IDS if (item := getattr(record, name, ""))}
    if isinstance(record.args, Mapping):
        fields |= record.args
    if repeated := getattr(record, "repeated", 0):
        fields["repeated"] = repeated
    if logged := getattr(record, "logged", 0):
        fields["last"] = _time(logged)
    return fields


def _time(created: float) -> str:
    return datetime.fromtimestamp(created, UTC).isoformat(timespec="milliseconds")


def _message(record: logging.LogRecord) -> str:
    """Return the text; an exception in another library is named in it, without the traceback."""
    text = record.getMessage()
    if record.exc_info and record.exc_info[1] is not None and not _is_ours(record):
        text += ": " + " ".join(traceback.format_exception_only(record.exc_info[1])[-1].split())
    return text


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.split(".", 1)[0] == _OURS


class _JsonLines(logging.Formatter):
    """A log formatter that writes one JSON object per line."""

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, object] = {
            "time": _time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            **_fields(record, self._worker),
        }
        if record.exc_info and _is_ours(record):
            content["exception"] = self.formatException(record.exc_info)
        return _CONTROL.sub(_escaped_in_json, orjson.dumps(content, default=str).decode())


class _TextLines(logging.Formatter):
    """A log formatter that writes one line of text, and a traceback after it if there is one."""

    def __init__(self, worker: int | None) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record, self._worker)
        worker = "" if self._worker is None else f"worker {self._worker} "
        message = _CONTROL.sub(_escaped, _message(record))  # what a client sent must not look like another line
        ids = " ".join(f"{name}={fields[name]}" for name in _IDS if fields.get(name))
        repeated: int = getattr(record, "repeated", 0)
        more = f" (and {repeated - 1} more lines like this)" if repeated else ""
        more += f" (logged at {fields['last']})" if "last" in fields else ""
        ids = f" [{ids}]" if ids else ""
        line = f"{_time(record.created)} {record.levelname:7} {worker}{record.name}: {message}{more}{ids}"
        if record.exc_info and _is_ours(record):
            line += "\n" + self.formatException(record.exc_info)
        return line


def _escaped_in_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
