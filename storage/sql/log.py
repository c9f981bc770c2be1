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
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    Table,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DataError, DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from strata.storage.addresses import without_password
from strata.storage.log import (
    START,
    Conflict,
    Entry,
    LogCompacted,
    LogError,
    LogFull,
    LogReadOnly,
    LogStatus,
    LogTimeout,
    Record,
    RecordTooLarge,
)

__all__ = ["SqlLog", "checked_url"]

_logger = logging.getLogger(__name__)

T = TypeVar("T")

_BATCH = 10_000
_PAUSE_S = (0.005, 0.05)
_FORMS = "a SQL log is sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
_WRITE = {"strata_write": True}
# On SQLite only a column of exactly the type INTEGER is the rowid itself; any other type adds a second index.
_OFFSET_TYPE = BigInteger().with_variant(Integer(), "sqlite")
_TABLE = Table(
    "strata_log",
    MetaData(),
    Column("offset", _OFFSET_TYPE, primary_key=True, autoincrement=False),
    Column("ts", BigInteger, nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("value", LargeBinary, nullable=True),
    Column("append_id", LargeBinary, nullable=False),
)
# One row, first written by a compaction: how many compactions there were, and the last offset that they considered.
_COMPACTION = Table(
    "strata_compaction",
    MetaData(),
    Column("generation", BigInteger, nullable=False),
    Column("upto", BigInteger, nullable=False),
)
_ENTRY = (_TABLE.c.offset, _TABLE.c.ts, _TABLE.c.key, _TABLE.c.value)
_READ = select(*_ENTRY).where(_TABLE.c.offset > bindparam("after")).order_by(_TABLE.c.offset).limit(_BATCH)
_LANDED = select(_TABLE.c.offset).where(_TABLE.c.offset == bindparam("first"), _TABLE.c.append_id == bindparam("token"))
_END = select(func.max(_TABLE.c.offset))
_INSERT = insert(_TABLE)
_DROP = delete(_TABLE).where(_TABLE.c.offset.in_(bindparam("offsets", expanding=True)))
_CHUNK = 10_000
_LOCK_OUT = (
    text("SET LOCAL lock_timeout = 5000"),
    text("SET LOCAL statement_timeout = 0"),
    text(f"LOCK TABLE {_TABLE.name} IN ACCESS EXCLUSIVE MODE"),
)
_VACUUM = {
    "sqlite": ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"),
    "postgresql": ("SET statement_timeout = 0", f"VACUUM {_TABLE.name}"),
}
# Create both at the first start, so that one grant covers them; an older log gets the second at its first compaction.
_CREATE = (CreateTable(_TABLE, if_not_exists=True), CreateTable(_COMPACTION, if_not_exists=True))
# Any constant will do. The lock keeps two nodes from creating the table at the same moment, which fails on PostgreSQL.
_CREATE_LOCK = text("SELECT pg_advisory_xact_lock(7239001)")

# SQLSTATEs after which the same transaction may succeed: serialization failure, deadlock, lock not available.
_TRANSIENT_STATES = {"40001", "40P01", "55P03"}
# Errors of a database that takes no writes: prefixes of SQLite's names, and SQLSTATEs.
_KINDS = {"SQLITE_FULL": LogFull, "SQLITE_READONLY": LogReadOnly, "53100": LogFull, "25006": LogReadOnly}
# Only a write statement shows that a SQLite file is read-only: BEGIN IMMEDIATE succeeds on such a file.
_WRITE_NOTHING = delete(_TABLE).where(_TABLE.c.offset < START)
_IS_READ_ONLY = text("SELECT current_setting('transaction_read_only') = 'on'")


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
        self._engine = _engine(self._url, timeout_s)
        self._writing_engine = self._engine.execution_options(**_WRITE)
        self._write_lock = threading.Lock()
        self._closed = False
        self._file: tuple[int, int] | None = None
        try:
            if must_exist:
                self._check_exists()
            else:
                self._create()
            self._file = self._file_now()
        except BaseException:
            self._engine.dispose()
            raise

    def read(self, after: int) -> Iterator[Entry]:
        """Yield the records after an offset; see `Log.read`. No transaction stays open between batches."""
        generation = self.generation() if after == START else None
        begun = after
        while True:
            rows = self._run(partial(_batch, after=after))
            if after != START and rows and rows[-1][0] - after != len(rows):
                self._check_gap(begun, generation)
            for offset, timestamp, key, value in rows:
                yield Entry(offset, timestamp, key, value)
            if len(rows) < _BATCH:
                return
            after = rows[-1][0]

    def append(self, after: int, records: Sequence[Record]) -> Sequence[Entry]:
        """Append all records or none; see `Log.append`."""
        if not records:
            raise ValueError("An append needs at least one record")
        deadline = time.monotonic() + self._timeout_s
        # Threads of one process take turns here: at the database they would sleep and poll.
        if not self._write_lock.acquire(timeout=self._timeout_s):
            raise LogError(f"{self._name()}: other appends took {self._timeout_s:g} s; nothing was written")
        try:
            return self._append(after, records, deadline)
        finally:
            self._write_lock.release()

    def end(self) -> int:
        """Return the offset of the last record, or `START` if the log is empty."""
        return self._run(_end)

    def generation(self) -> int:
        """Return how many compactions there were."""
        return self._run(_compactions)[0]

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
                _lock_out_others(connection)
                if _compactions(connection)[0] != generation:
                    raise Conflict
                for start in range(0, len(offsets), _CHUNK):
                    connection.execute(_DROP, {"offsets": offsets[start : start + _CHUNK]})
                if not inspect(connection).has_table(_COMPACTION.name):
                    connection.execute(CreateTable(_COMPACTION))
                connection.execute(delete(_COMPACTION))
                connection.execute(insert(_COMPACTION), {"generation": generation + 1, "upto": upto})
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
            for statement in _VACUUM[self._engine.dialect.name]:
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
            with self._connect(write=True) as connection:
                _check_writable(connection)
        except SQLAlchemyError as error:
            if not _is_transient(error):
                raise self._failure(error) from error
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
        self._engine.dispose()

    def _check_gap(self, begun: int, generation: int | None) -> None:
        now, upto = self._run(_compactions)
        if upto > begun if generation is None else now != generation:
            raise LogCompacted(
                f"{self._name()}: the log was compacted up to offset {upto}, and was last read before that from {begun}"
            )

    def _append(self, after: int, records: Sequence[Record], deadline: float) -> Sequence[Entry]:
        now, token = time.time_ns() // 1_000_000, uuid.uuid4().bytes
        entries = [Entry(offset, now, r.key, r.value) for offset, r in enumerate(records, start=after + 1)]
        rows = [
            {"offset": e.offset, "ts": e.timestamp, "key": e.key, "value": e.value, "append_id": token} for e in entries
        ]
        fate_unknown = False
        while True:
            try:
                with self._connect(write=True) as connection:
                    if fate_unknown and _landed(connection, after + 1, token):
                        return entries
                    if _end(connection) != after:
                        raise Conflict
                    connection.execute(_INSERT, rows)
                    fate_unknown = True
                    connection.commit()
                    return entries
            except IntegrityError as error:
                if not fate_unknown:
                    raise Conflict from error
            except DataError as error:
                raise RecordTooLarge(self._explain(error)) from error
            except SQLAlchemyError as error:
                if fate_unknown and _kind(error) is not LogError and self._has_not_landed(after + 1, token):
                    raise self._failure(error) from error
                self._retry_or_raise(error, deadline, fate_unknown=fate_unknown)
            except LogError as error:
                if fate_unknown:
                    raise LogTimeout(str(error)) from error
                raise

    def _has_not_landed(self, first: int, token: bytes) -> bool:
        """Return whether it is certain that a commit which the database refused did not take place."""
        try:
            with self._connect(write=False) as connection:
                return not _landed(connection, first, token)
        except (SQLAlchemyError, LogError):
            return False

    def _run(self, read: Callable[[Connection], T]) -> T:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                with self._connect(write=False) as connection:
                    return read(connection)
            except SQLAlchemyError as error:
                self._retry_or_raise(error, deadline, fate_unknown=False)

    def _retry_or_raise(self, error: SQLAlchemyError, deadline: float, *, fate_unknown: bool) -> None:
        if (fate_unknown or _is_transient(error)) and time.monotonic() < deadline:
            time.sleep(random.uniform(*_PAUSE_S))  # noqa: S311 - spreads the retries, keeps no secret
            return
        raise (LogTimeout(self._explain(error)) if fate_unknown else self._failure(error)) from error

    def _connect(self, *, write: bool) -> Connection:
        if self._closed:
            raise LogError(f"{self._name()}: the log is closed")
        if self._file is not None and self._file_now() != self._file:
            # Open connections would go on with the old file, and what they write would be lost with it.
            raise LogError(f"{self._name()}: the file was removed or replaced; put it back, or restart the node")
        return (self._writing_engine if write else self._engine).connect()

    def _create(self) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                with self._connect(write=True) as connection:
                    if _create_table(connection):
                        _logger.info("created a new log: table %s in %s", _TABLE.name, self._place())
                    return
            except SQLAlchemyError as error:
                self._retry_or_raise(error, deadline, fate_unknown=False)

    def _file_now(self) -> tuple[int, int] | None:
        """Return device and inode of the SQLite file; None if there is none, or for a server."""
        file = self._sqlite_file()
        try:
            found = os.stat(file) if file is not None else None  # noqa: PTH116 - before every call; a Path costs more
        except OSError:
            return None
        return found and (found.st_dev, found.st_ino)

    def _sqlite_file(self) -> str | None:
        return self._url.database if self._url.drivername.startswith("sqlite") else None

    def _check_exists(self) -> None:
        file = self._sqlite_file()
        if file is not None and not Path(file).is_file():
            raise LogError(f"{self._name()}: there is no such file")
        if not self._run(_has_table):
            raise LogError(f"{self._name()} holds no log: it has no table {_TABLE.name}")

    def _failure(self, error: SQLAlchemyError) -> LogError:
        return _kind(error)(self._explain(error))

    def _explain(self, error: SQLAlchemyError) -> str:
        # Use the driver's message: SQLAlchemy's adds the statement and the record.
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        return f"{self._name()}: {str(cause).strip()}"

    def _place(self) -> str:
        file = self._url.database if self._url.get_backend_name() == "sqlite" else None
        return f"the file {Path(file).resolve()}" if file else self._name()

    def _name(self) -> str:
        return without_password(self._url.render_as_string(hide_password=True))


def _batch(connection: Connection, *, after: int) -> Sequence[Row[int, int, bytes, bytes | None]]:
    return connection.execute(_READ, {"after": after}).fetchall()


def _end(connection: Connection) -> int:
    last = connection.execute(_END).scalar()
    return START if last is None else int(last)


def _landed(connection: Connection, first: int, token: bytes) -> bool:
    return connection.execute(_LANDED, {"first": first, "token": token}).first() is not None


def _compactions(connection: Connection) -> tuple[int, int]:
    """Return how many compactions there were, and the last offset that they considered."""
    if not inspect(connection).has_table(_COMPACTION.name):
        return 0, START
    row = connection.execute(select(_COMPACTION.c.generation, _COMPACTION.c.upto)).first()
    return (0, START) if row is None else (int(row[0]), int(row[1]))


def _lock_out_others(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        for statement in _LOCK_OUT:
            connection.execute(statement)


def _has_table(connection: Connection) -> bool:
    return inspect(connection).has_table(_TABLE.name)


def _create_table(connection: Connection) -> bool:
    """Create the tables if `strata_log` is missing, and return whether it was."""
    # Checking first allows a role that may not create tables.
    if _has_table(connection):
        _check_writable(connection)
        return False
    if connection.dialect.name == "postgresql":
        connection.execute(_CREATE_LOCK)
    for statement in _CREATE:
        connection.execute(statement)
    connection.commit()
    return True


def _check_writable(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.execute(_WRITE_NOTHING)
        connection.rollback()
    elif connection.execute(_IS_READ_ONLY).scalar():
        raise LogReadOnly("The database takes no writes: it is a standby, or its transactions are read-only")


def _kind(error: SQLAlchemyError) -> type[LogError]:
    cause = getattr(error, "orig", None)
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    return next((kind for name, kind in _KINDS.items() if code.startswith(name)), LogError)


def _is_transient(error: SQLAlchemyError) -> bool:
    if not isinstance(error, DBAPIError):
        return False
    sqlite_name = getattr(error.orig, "sqlite_errorname", "")
    return (
        error.connection_invalidated
        or getattr(error.orig, "sqlstate", None) in _TRANSIENT_STATES
        or sqlite_name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))
    )


def checked_url(url: str) -> URL:
    """Parse the URL of a SQL log.

    Raises:
        ValueError: It does not name a SQLite file or a PostgreSQL database.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ValueError(f"this is not the URL of a database; {_FORMS}") from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        if parsed.database in {None, "", ":memory:"}:
            raise ValueError("A SQLite log needs a file: sqlite:///strata.db; for a log in memory say memory:")
        return parsed
    if parsed.drivername in {"postgresql", "postgres", "postgresql+psycopg"}:
        return parsed.set(drivername="postgresql+psycopg")
    raise ValueError(f"{parsed.drivername}: {_FORMS}")


def _engine(url: URL, timeout_s: float) -> Engine:
    if url.drivername == "postgresql+psycopg":
        return create_engine(url, pool_timeout=timeout_s, connect_args=_postgres_arguments(url, timeout_s))
    engine = create_engine(url, pool_timeout=timeout_s, connect_args={"timeout": timeout_s})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgres_arguments(url: URL, timeout_s: float) -> dict[str, Any]:
    milliseconds = int(timeout_s * 1000)
    # A node that is cut off in the middle of a transaction must not block the others for a whole call.
    options = {"statement_timeout": milliseconds, "idle_in_transaction_session_timeout": milliseconds // 3}
    arguments = {
        "application_name": "strata",
        "connect_timeout": max(1, int(timeout_s)),
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": milliseconds,
        "options": " ".join(f"-c {name}={value}" for name, value in options.items()),
        "cursor_factory": _binary_cursor(),
    }
    return {name: value for name, value in arguments.items() if name not in url.query}


def _binary_cursor() -> type:
    # Binary instead of hexadecimal text makes a replay nearly twice as fast. The import is here because only the extra
    # `postgres` installs the driver.
    import psycopg

    class BinaryCursor(psycopg.Cursor[Any]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.format = psycopg.pq.Format.BINARY

    return BinaryCursor


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # Otherwise the driver opens transactions by itself, and only before some statements.
    connection.isolation_level = None
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise LogError(f"SQLite cannot use its write-ahead log here (journal mode {mode}): is the disk local?")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the write lock at once, because a transaction that begins as a read cannot wait for it later.
    write = connection.get_execution_options().get("strata_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
