"""Every record that a log ever held, including records that a compaction has dropped.

A SQL log gets a trigger that keeps deleted rows. A topic is read continuously; its brokers must be configured to keep a
record long enough for that.
"""

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress

import psycopg
from sqlalchemy.engine import make_url

from strata.storage.log import START, Entry, Log, LogCompacted, LogError
from strata.storage.open_log import open_log

__all__ = ["Archive", "database", "dsn"]

_EVERY_S = 0.2
_KEEP_SQLITE = """
CREATE TABLE IF NOT EXISTS faults_kept ("offset" INTEGER, ts INTEGER, key BLOB, value BLOB);
CREATE TRIGGER IF NOT EXISTS faults_keep BEFORE DELETE ON strata_log BEGIN
  INSERT INTO faults_kept VALUES (OLD."offset", OLD.ts, OLD.key, OLD.value); END;
"""
_KEEP_POSTGRES = """
CREATE TABLE faults_kept ("offset" BIGINT, ts BIGINT, key BYTEA, value BYTEA);
CREATE FUNCTION faults_keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO faults_kept VALUES (OLD."offset", OLD.ts, OLD.key, OLD.value); RETURN OLD; END $$;
CREATE TRIGGER faults_keep BEFORE DELETE ON strata_log FOR EACH ROW EXECUTE FUNCTION faults_keep();
"""
_KEPT = 'SELECT "offset", ts, key, value FROM faults_kept'


class Archive:
    """The archive of one existing log."""

    def __init__(self, log_url: str) -> None:
        self._url = log_url
        self._topic: Log | None = None
        self._read: dict[int, Entry] = {}
        self._lock, self._stop = threading.Lock(), threading.Event()
        if log_url.startswith("kafka:"):
            self._topic = open_log(log_url)
            threading.Thread(target=self._follow, daemon=True).start()
        elif log_url.startswith("sqlite:"):
            with closing(sqlite3.connect(database(log_url), timeout=60)) as connection:
                connection.executescript(_KEEP_SQLITE)
        else:
            with psycopg.connect(dsn(log_url)) as connection:
                connection.execute(_KEEP_POSTGRES)

    def holder(self) -> str | None:
        """Return the URL of the node that took the pen last; None if the log has no pen or the node is unknown."""
        with suppress(LogError):
            self._catch_up()
        return self._topic.holder() if self._topic else None

    def everything(self) -> tuple[list[Entry], list[Entry]]:
        """Return the records that the log holds now, and all records that it ever held, both by offset."""
        with closing(open_log(self._url)) as log:
            now = list(log.read(START))
        self._catch_up()
        ever = {entry.offset: entry for entry in [*self._dropped(), *self._read.values(), *now]}
        return now, [ever[offset] for offset in sorted(ever)]

    def close(self) -> None:
        """Stop reading the log and close it."""
        self._stop.set()
        if self._topic:
            with self._lock:
                self._topic.close()

    def _follow(self) -> None:
        while not self._stop.wait(_EVERY_S):
            with suppress(LogError):
                self._catch_up()

    def _catch_up(self) -> None:
        if self._topic is None:
            return
        with self._lock:
            try:
                self._keep(self._topic.read(max(self._read, default=START)))
            except LogCompacted:
                self._keep(self._topic.read(START))

    def _keep(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._read[entry.offset] = entry

    def _dropped(self) -> Iterator[Entry]:
        if self._url.startswith("sqlite:"):
            with closing(sqlite3.connect(database(self._url), timeout=60)) as connection:
                rows = connection.execute(_KEPT).fetchall()
        elif self._topic is None:
            with psycopg.connect(dsn(self._url)) as server:
                rows = server.execute(_KEPT).fetchall()
        else:
            rows = []
        return (Entry(*row) for row in rows)


def database(log_url: str) -> str:
    """Return the path of a SQLite log's file."""
    return make_url(log_url).database or ""


def dsn(log_url: str) -> str:
    """Return the connection string of a PostgreSQL log, for psycopg."""
    return make_url(log_url).set(drivername="postgresql").render_as_string(hide_password=False)
