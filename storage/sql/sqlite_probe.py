"""A probe of a SQLite log that the event loop can afford: whether there is anything to read.

The probe runs the condition of an ordinary read on a connection of its own, which takes microseconds: SQLite answers
from the file's pages in memory. It waits for no lock, and whatever keeps it from answering is left to the ordinary
read, which waits, tries again and reports. Each question is a transaction of its own, so it sees every commit, of any
process, that returned before it.
"""

import sqlite3
import threading

from sqlalchemy import Engine

from strata.storage.sql.tables import LOG_TABLE

__all__ = ["SqliteProbe"]

_NEXT = f'SELECT 1 FROM {LOG_TABLE.name} WHERE "offset" > ? LIMIT 1'  # noqa: S608 - both names are constants


class SqliteProbe:
    """A connection that answers one question; it opens at the first one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._lock = threading.Lock()

    def finds_nothing(self, after: int) -> bool:
        """Return whether the log certainly has no record after an offset; False if that is unknown."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            # Fetch all rows: that ends the transaction, which would otherwise hide later commits.
            return not self._opened().execute(_NEXT, (after,)).fetchall()
        except sqlite3.Error:
            return False
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection; later questions are answered False."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        if self._closed:
            raise sqlite3.ProgrammingError("the probe is closed")
        if self._connection is None:
            arguments, defaults = self._engine.dialect.create_connect_args(self._engine.url)
            options = {**defaults, "timeout": 0, "isolation_level": None, "check_same_thread": False}
            self._connection = sqlite3.connect(arguments[0], **options)
        return self._connection
