"""The log in a SQL database: one append-only table whose primary key is the offset.

The key itself refuses the second writer: if two nodes have read up to 5, both insert 6, and one of them fails. A
transaction that inserts n + 1 has seen n committed, so a reader that sees n + 1 also sees n: readers may tail by
offset. SQLite (one machine) and PostgreSQL (several nodes) run the same code.

Fate of a write: if the connection breaks during COMMIT, the node does not know whether the commit took place. Every
append therefore stores a token in its rows, and the node retries it at the same offsets. The key makes PostgreSQL wait
for the earlier attempt if that is still running, and the token then shows whose rows are there.

Offsets may have gaps, because a compaction drops rows (`drop`). It does so in one transaction that locks the table
against all others: no row that would have refused an insert may vanish between a writer's check of the end and its
insert. A reader that was behind the compacted rows may have missed some that it needed. So a reader that meets a gap
checks `strata_compaction`, and `LogCompacted` sends it back to the start if rows after its offset were dropped.
"""

import logging
import os
import random
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import count, repeat
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError

from strata.storage.addresses import without_password
from strata.storage.log import (
    START,
    Conflict,
    Entry,
    LogCompacted,
    LogError,
    LogReadOnly,
    LogStatus,
    LogTimeout,
    Record,
    RecordTooLarge,
)
from strata.storage.sql import sqlite_statements, tables
from strata.storage.sql.database import WRITE, checked_url, is_transient, kind_of, open_engine
from strata.storage.sql.sqlite_probe import SqliteProbe

__all__ = ["SqlLog"]

_logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_PAUSE_S = (0.005, 0.05)
_TOKEN = struct.Struct("8sQ")
_entry = partial(tuple.__new__, Entry)  # `Entry._make` is a Python function, which takes three times as long


class SqlLog:
    """The log in the table `strata_log` of a database.

    Args:
        url: `sqlite:///FILE` or `postgresql+psycopg://…`.
        timeout_s: Time limit for one call, in seconds.
        must_exist: Raise `LogError` if the file or table is missing instead of creating it.

    Raises:
        ValueError: The URL does not name a SQLite file or a PostgreSQL database.
        LogError: The database cannot be reached or used, or holds no log although it must.
    """

    def __init__(self, url: str, *, timeout_s: float = 10.0, must_exist: bool = False) -> None:
        self._timeout_s = timeout_s
        self._url = checked_url(url)
        self._engine = open_engine(self._url, timeout_s)
        self._writing_engine = self._engine.execution_options(**WRITE)
        self._sqlite_file = self._url.database if self._url.get_backend_name() == "sqlite" else None
        self._rows = tables if self._sqlite_file is None else sqlite_statements
        self._probe = None if self._sqlite_file is None else SqliteProbe(self._engine)
        self._appends = map(_TOKEN.pack, repeat(secrets.token_bytes(8)), count())
        self._write_lock = threading.Lock()
        self._closed = False
        self._file: tuple[int, int] | None = None
        try:
            if must_exist:
                self._check_exists()
            else:
                self._create()
            self._file = self._known_file()
        except BaseException:
            self._engine.dispose()
            raise

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset; see `Log.read`. No transaction stays open between batches."""
        generation = self.generation() if after == START else None
        begun = after
        while True:
            rows = self._retried(partial(self._read_batch, after))
            if after != START and rows and rows[-1][0] - after != len(rows):
                self._check_gap(begun, generation)
            yield from map(_entry, rows)
            if len(rows) < tables.BATCH:
                return
            after = rows[-1][0]

    def unchanged(self, after: int) -> bool:
        """Return whether certainly no record follows an offset; see `Log.unchanged`. A server is never asked."""
        return self._probe is not None and self._file_now() == self._file and self._probe.finds_nothing(after)

    async def ends_at(self, _read_to: Callable[[], int]) -> bool:
        """Return False: `unchanged` or a read tells; see `Log.ends_at`."""
        return False

    def note_append(self, last: int) -> None:
        """Do nothing; see `Log.note_append`."""

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append all records or none; see `Log.append`."""
        if not records:
            raise ValueError("an append needs at least one record")
        deadline = time.monotonic() + self._timeout_s
        # Threads of one process take turns here: at the database they would sleep and poll.
        if not self._write_lock.acquire(timeout=self._timeout_s):
            raise LogError(
                f"{self._name()}: other appends kept this one waiting for {self._timeout_s:g} s; nothing was written"
            )
        try:
            return self._on_new_connections(partial(self._append, after, records, deadline))
        finally:
            self._write_lock.release()

    def end(self) -> int:
        """Return the offset of the last record, or `START` if the log is empty."""
        return self._run(tables.last_offset)

    def generation(self) -> int:
        """Return how many compactions there were."""
        return self._run(tables.compactions).generation

    def drop(self, offsets: Sequence[int], *, upto: int, generation: int) -> None:
        """Drop superseded rows in a transaction that excludes all others.

        Args:
            offsets: The offsets of the rows, without that of the last row.
            upto: The last offset that the choice considered.
            generation: The value of `generation()` before the choice was made.

        Raises:
            Conflict: Another compaction came first; nothing was dropped.
            LogError: The database failed; nothing was dropped.
        """
        with self._write_lock, self._connect(write=True) as connection:
            try:
                if not tables.drop_rows(connection, offsets, upto, generation):
                    raise Conflict
                connection.commit()
            except SQLAlchemyError as error:
                raise LogError(self._explain(error)) from error

    def vacuum(self) -> None:
        """Release the space of dropped rows. This takes a while, during which SQLite accepts no writes.

        Raises:
            LogError: The database refused.
        """
        connection = self._engine.raw_connection()
        try:
            driver: Any = connection.driver_connection
            if self._engine.dialect.name == "postgresql":
                driver.autocommit = True
            for statement in tables.VACUUM[self._engine.dialect.name]:
                driver.execute(statement)
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise LogError(f"{self._name()}: {error}") from error
        finally:
            connection.invalidate()

    def check_writable(self) -> None:
        """Check that the database takes writes; see `Log.check_writable`. Skip the check while a write is running."""
        if not self._write_lock.acquire(blocking=False):
            return
        try:
            self._on_new_connections(self._check_writable)
        finally:
            self._write_lock.release()

    def holder(self) -> str | None:
        """Return None: every node may write, and the database decides."""
        return None

    def status(self) -> LogStatus:
        """Return the kind of database."""
        return LogStatus(self._url.get_backend_name())

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._closed = True
        if self._probe is not None:
            self._probe.close()
        self._engine.dispose()

    def _check_gap(self, begun: int, generation: int | None) -> None:
        now, upto = self._run(tables.compactions)
        if upto > begun if generation is None else now != generation:
            raise LogCompacted(
                f"{self._name()}: a compaction up to offset {upto} may have dropped unread records after {begun}"
            )

    def _on_new_connections(self, write: Callable[[], _T]) -> _T:
        """Write, and again on new connections if the database took no writes.

        A connection that was opened while the database was read-only remains so when the database no longer is.
        """
        try:
            return write()
        except LogReadOnly:
            self._engine.dispose()
            return write()

    def _check_writable(self) -> None:
        try:
            with self._connect(write=True) as connection:
                tables.check_writable(connection)
        except SQLAlchemyError as error:
            if not is_transient(error):
                raise self._failure(error) from error

    def _append(self, after: int, records: Sequence[Record], deadline: float) -> Sequence[Entry]:
        now, token = time.time_ns() // 1_000_000, next(self._appends)
        entries = [Entry(offset, r.time(now), r.key, r.value) for offset, r in enumerate(records, start=after + 1)]
        rows = [(*entry, token) for entry in entries]
        fate_unknown = False
        while True:
            try:
                with self._connect_to_rows(write=True) as connection:
                    if fate_unknown and self._rows.has_landed(connection, after + 1, token):
                        return entries
                    if self._rows.last_offset(connection) != after:
                        raise Conflict
                    self._rows.insert_rows(connection, rows)
                    fate_unknown = True
                    connection.commit()
                    return entries
            except IntegrityError as error:
                if not fate_unknown:
                    raise Conflict from error
            except DataError as error:
                raise RecordTooLarge(self._explain(error)) from error
            except SQLAlchemyError as error:
                if fate_unknown and kind_of(error) is not LogError and self._has_not_landed(after + 1, token):
                    raise self._failure(error) from error
                self._retry_or_raise(error, deadline, fate_unknown=fate_unknown)
            except LogError as error:
                if fate_unknown:
                    raise LogTimeout(str(error)) from error
                raise

    def _read_batch(self, after: int) -> Sequence[tuple[int, int, bytes, bytes | None]]:
        with self._connect_to_rows(write=False) as connection:
            rows: Sequence[tuple[int, int, bytes, bytes | None]] = self._rows.read_batch(connection, after)
            return rows

    def _has_not_landed(self, first: int, token: bytes) -> bool:
        """Return whether it is certain that a commit which the database refused did not take place."""
        try:
            with self._connect(write=False) as connection:
                return not tables.has_landed(connection, first, token)
        except (SQLAlchemyError, LogError):
            return False

    def _run(self, statement: Callable[[Connection], _T], *, write: bool = False) -> _T:
        def run() -> _T:
            with self._connect(write=write) as connection:
                return statement(connection)

        return self._retried(run)

    def _retried(self, call: Callable[[], _T]) -> _T:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return call()
            except SQLAlchemyError as error:
                self._retry_or_raise(error, deadline, fate_unknown=False)

    def _retry_or_raise(self, error: SQLAlchemyError, deadline: float, *, fate_unknown: bool) -> None:
        if (fate_unknown or is_transient(error)) and time.monotonic() < deadline:
            time.sleep(random.uniform(*_PAUSE_S))  # noqa: S311 - spreads the retries, keeps no secret
            return
        raise (LogTimeout(self._explain(error)) if fate_unknown else self._failure(error)) from error

    def _connect(self, *, write: bool) -> Connection:
        self._check_usable()
        return (self._writing_engine if write else self._engine).connect()

    def _connect_to_rows(self, *, write: bool) -> AbstractContextManager[Any]:
        """Return a connection for the functions of `_rows`, which has a method `commit`."""
        if self._rows is tables:
            return self._connect(write=write)
        self._check_usable()
        return sqlite_statements.connected(self._engine, write=write)

    def _check_usable(self) -> None:
        if self._closed:
            raise LogError(f"{self._name()}: the log is closed")
        if self._file is not None and self._file_now() != self._file:
            # Open connections would go on with the old file, and what they write would be lost with it.
            raise LogError(f"{self._name()}: the file was removed or replaced; restore it, or restart the node")

    def _create(self) -> None:
        if self._run(tables.create_tables, write=True):
            _logger.info(
                "created a new log: table %(name)s in %(where)s",
                {"event": "log_created", "name": tables.LOG_TABLE.name, "where": self._location()},
            )

    def _known_file(self) -> tuple[int, int] | None:
        file = self._file_now()
        if file is None and self._sqlite_file is not None:
            raise LogError(f"{self._name()}: the file was removed while it was opened")
        return file

    def _file_now(self) -> tuple[int, int] | None:
        """Return device and inode of the SQLite file; None if there is none, or for a server."""
        if self._sqlite_file is None:
            return None
        try:
            status = os.stat(self._sqlite_file)  # noqa: PTH116 - before every call; a Path costs more
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_exists(self) -> None:
        if self._sqlite_file is not None and not Path(self._sqlite_file).is_file():
            raise LogError(f"{self._name()}: no such file")
        if not self._run(tables.has_log):
            raise LogError(f"{self._name()}: holds no log: it has no table {tables.LOG_TABLE.name}")

    def _failure(self, error: SQLAlchemyError) -> LogError:
        return kind_of(error)(self._explain(error))

    def _explain(self, error: SQLAlchemyError) -> str:
        # Use the driver's message: SQLAlchemy's adds the statement and the record.
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        return f"{self._name()}: {str(cause).strip()}"

    def _location(self) -> str:
        return f"the file {Path(self._sqlite_file).resolve()}" if self._sqlite_file else self._name()

    def _name(self) -> str:
        return without_password(self._url.render_as_string(hide_password=True))
