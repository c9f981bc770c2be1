"""The frequent statements of a SQLite log without SQLAlchemy, which takes several times as long as SQLite itself.

The functions have the names and meanings of those in `tables.py`. The connections are those of the engine's pool, set
up as for all other calls. Errors are SQLAlchemy's, so that one place explains them.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

from sqlalchemy import Engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from strata.storage.log import START
from strata.storage.sql import tables

__all__ = ["connected", "has_landed", "insert_rows", "last_offset", "read_batch"]

_READ, _LAST, _LANDED, _INSERT = (
    str(statement.compile(dialect=sqlite.dialect()))
    for statement in (tables.READ, tables.LAST, tables.LANDED, tables.INSERT)
)


@contextmanager
def connected(engine: Engine, *, write: bool) -> Iterator[sqlite3.Connection]:
    """Yield a connection of an engine's pool; what is not committed at the end is rolled back.

    Args:
        engine: The engine.
        write: Whether to take the write lock at once.

    Raises:
        SQLAlchemyError: SQLite reported an error.
    """
    pooled = engine.raw_connection()
    try:
        connection = cast("sqlite3.Connection", pooled.driver_connection)
        if write:
            connection.execute("BEGIN IMMEDIATE")
        yield connection
    except sqlite3.Error as error:
        raise DBAPIError.instance(None, None, error, sqlite3.Error) from error
    finally:
        pooled.close()


def read_batch(connection: sqlite3.Connection, after: int) -> Sequence[tuple[int, int, bytes, bytes | None]]:
    """Return the next rows after an offset, at most `BATCH`, as (offset, timestamp, key, value)."""
    return connection.execute(_READ, (after, tables.BATCH, 0)).fetchall()


def last_offset(connection: sqlite3.Connection) -> int:
    """Return the offset of the last row, or `START` if there is none."""
    last = connection.execute(_LAST).fetchall()[0][0]
    return START if last is None else int(last)


def has_landed(connection: sqlite3.Connection, first: int, token: bytes) -> bool:
    """Return whether the row at an offset has an append's token."""
    return bool(connection.execute(_LANDED, (first, token)).fetchall())


def insert_rows(connection: sqlite3.Connection, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, which have the values of all columns in order."""
    connection.executemany(_INSERT, rows)
