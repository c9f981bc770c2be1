"""Engines for SQLite and PostgreSQL: URLs, connection settings, and the meaning of their errors."""

import sqlite3

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from strata.storage.log import LogError, LogFull, LogReadOnly

__all__ = ["WRITE", "checked_url", "is_transient", "kind_of", "open_engine"]

_FORMS = "a SQL log is sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
_WRITE = "strata_write"
WRITE = {_WRITE: True}
"""The execution option of connections that write."""

# SQLSTATEs after which the same transaction may succeed: serialization failure, deadlock, lock not available.
_TRANSIENT_STATES = {"40001", "40P01", "55P03"}
# Errors of a database that takes no writes: prefixes of SQLite's names, and SQLSTATEs.
_KINDS = {"SQLITE_FULL": LogFull, "SQLITE_READONLY": LogReadOnly, "53100": LogFull, "25006": LogReadOnly}


def kind_of(error: SQLAlchemyError) -> type[LogError]:
    """Return the kind of `LogError` that an error of the database amounts to."""
    cause = getattr(error, "orig", None)
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
    return next((error_class for name, error_class in _KINDS.items() if code.startswith(name)), LogError)


def is_transient(error: SQLAlchemyError) -> bool:
    """Return whether the same transaction may succeed when it is tried again."""
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
        raise ValueError(f"not the URL of a database; {_FORMS}") from None
    if parsed.drivername in {"sqlite", "sqlite+pysqlite"}:
        if parsed.database in {None, "", ":memory:"}:
            raise ValueError(
                "a SQLite log needs a file, such as sqlite:///strata.db; the URL of a log in memory is memory:"
            )
        return parsed
    if parsed.drivername in {"postgresql", "postgres", "postgresql+psycopg"}:
        return parsed.set(drivername="postgresql+psycopg")
    raise ValueError(f"unsupported database {parsed.drivername}; {_FORMS}")


def open_engine(url: URL, timeout_s: float) -> Engine:
    """Return an engine whose connections are set up for a log; it connects on first use.

    Args:
        url: The URL from `checked_url`.
        timeout_s: Time limit for one statement and for getting a connection, in seconds.
    """
    if url.drivername == "postgresql+psycopg":
        return create_engine(url, pool_timeout=timeout_s, connect_args=_postgres_arguments(url, timeout_s))
    engine = create_engine(url, pool_timeout=timeout_s, connect_args={"timeout": timeout_s})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgres_arguments(url: URL, timeout_s: float) -> dict[str, object]:
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
    from psycopg.rows import RowFactory

    class BinaryCursor(psycopg.Cursor[object]):
        def __init__(self, connection: psycopg.Connection[object], *, row_factory: RowFactory[object]) -> None:
            super().__init__(connection, row_factory=row_factory)
            self.format = psycopg.pq.Format.BINARY

    return BinaryCursor


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Otherwise the driver opens transactions by itself, and only before some statements.
    connection.isolation_level = None
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise LogError(f"expected journal mode wal, SQLite chose {mode}: the file must be on a local disk")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the write lock at once, because a transaction that begins as a read cannot wait for it later.
    write = connection.get_execution_options().get(_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
