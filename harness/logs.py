"""Logs for tests: one that stands in for a server's, and new ones of each kind that several processes can share."""

from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from _pytest.mark import ParameterSet

from strata.storage.log import START, MemoryLog, Record
from strata.storage.open_log import open_log
from strata.storage.records import Subject, Version
from strata.storage.state import State

__all__ = ["DATABASES", "SHARED_LOGS", "ServerLog", "copy_of", "new_log_url", "quick_on", "version_times"]

DATABASES = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))
SHARED_LOGS = (*DATABASES, pytest.param("kafka", marks=pytest.mark.kafka))
"""The kinds of log, as the parameters of a fixture or a test."""


def quick_on(kind: str) -> pytest.MarkDecorator:
    """Return a mark for tests with the fixture `log_url`, which are slow on all kinds of log but this one."""
    logs = [log if isinstance(log, ParameterSet) else pytest.param(log) for log in SHARED_LOGS]
    marks = [(*log.marks, *(() if log.values == (kind,) else (pytest.mark.slow,))) for log in logs]
    rows = [pytest.param(*log.values, marks=of_log) for log, of_log in zip(logs, marks, strict=True)]
    return pytest.mark.parametrize("log_url", rows, indirect=True)


class ServerLog(MemoryLog):
    """A memory log that, like one on a server, must be read to know whether anything was appended."""

    def unchanged(self, _after: int) -> bool:
        """Return False; see `Log.unchanged`."""
        return False


def new_log_url(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of a log that does not exist yet.

    Args:
        kind: one of `SHARED_LOGS`.
        folder: an empty folder, for SQLite's file.
        request: gives the fixtures of the session's services.
    """
    if kind == "sqlite":
        return f"sqlite:///{folder}/strata.db"
    if kind == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"kafka://{request.getfixturevalue('kafka_broker').bootstrap}/schemas-{uuid4().hex[:12]}"


def copy_of(log: MemoryLog) -> MemoryLog:
    """Return a new log with the records of another."""
    copy = MemoryLog()
    copy.append(START, [Record(entry.key, entry.value, entry.timestamp) for entry in log.read(START) if entry.key])
    return copy


def version_times(log_url: str) -> dict[tuple[Subject, Version], int]:
    """Return when each version of a log was written, in milliseconds since the epoch."""
    with closing(open_log(log_url)) as log:
        state = State().apply_all(log.read(START))
    return {
        (name, number): entry.timestamp
        for name, versions in state.subjects.items()
        for number, entry in versions.items()
    }
