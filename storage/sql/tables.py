"""The tables of a SQL log, and the statements on them, each a function that takes a connection."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    bindparam,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.schema import CreateTable

from strata.storage.log import START, LogReadOnly

__all__ = [
    "BATCH",
    "INSERT",
    "LANDED",
    "LAST",
    "LOG_TABLE",
    "READ",
    "VACUUM",
    "Compactions",
    "check_writable",
    "compactions",
    "create_tables",
    "drop_rows",
    "has_landed",
    "has_log",
    "insert_rows",
    "last_offset",
    "read_batch",
]

BATCH = 10_000
"""How many rows one statement reads or drops."""

# On SQLite only a column of exactly the type INTEGER is the rowid itself; any other type adds a second index.
_OFFSET_TYPE = BigInteger().with_variant(Integer(), "sqlite")
LOG_TABLE = Table(
    "strata_log",
    MetaData(),
    Column("offset", _OFFSET_TYPE, primary_key=True, autoincrement=False),
    Column("ts", BigInteger, nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("value", LargeBinary, nullable=True),
    Column("append_id", LargeBinary, nullable=False),
)
# Compactions write its only row.
_COMPACTION_TABLE = Table(
    "strata_compaction",
    MetaData(),
    Column("generation", BigInteger, nullable=False),
    Column("upto", BigInteger, nullable=False),
)
_COLUMNS = LOG_TABLE.c
# The frequent statements; `sqlite_statements.py` has them as texts too.
READ = (
    select(_COLUMNS.offset, _COLUMNS.ts, _COLUMNS.key, _COLUMNS.value)
    .where(_COLUMNS.offset > bindparam("after"))
    .order_by(_COLUMNS.offset)
    .limit(bindparam("rows"))
)
LANDED = select(_COLUMNS.offset).where(_COLUMNS.offset == bindparam("first"), _COLUMNS.append_id == bindparam("token"))
LAST = select(func.max(_COLUMNS.offset))
INSERT = insert(LOG_TABLE)
_DROP = delete(LOG_TABLE).where(_COLUMNS.offset.in_(bindparam("offsets", expanding=True)))
_COMPACTIONS = select(_COMPACTION_TABLE.c.generation, _COMPACTION_TABLE.c.upto)
# On PostgreSQL; SQLite's BEGIN IMMEDIATE keeps other writers out, and readers see the rows as they were.
_LOCK = (
    text("SET LOCAL lock_timeout = 5000"),
    text("SET LOCAL statement_timeout = 0"),
    text(f"LOCK TABLE {LOG_TABLE.name} IN ACCESS EXCLUSIVE MODE"),
)
VACUUM: Mapping[str, Sequence[str]] = {
    "sqlite": ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"),
    "postgresql": ("SET statement_timeout = 0", f"VACUUM {LOG_TABLE.name}"),
}
"""The statements that release the space of dropped rows, by dialect; they run outside a transaction."""

# Create both at the first start, so that one grant covers them; an older log gets the second at its first compaction.
_CREATE = (CreateTable(LOG_TABLE, if_not_exists=True), CreateTable(_COMPACTION_TABLE, if_not_exists=True))
# Any constant will do. The lock keeps two nodes from creating the table at the same moment, which fails on PostgreSQL.
_CREATE_LOCK = text("SELECT pg_advisory_xact_lock(7239001)")
# Only a write statement shows that a SQLite file is read-only: BEGIN IMMEDIATE succeeds on such a file.
_WRITE_NOTHING = delete(LOG_TABLE).where(_COLUMNS.offset < START)
_IS_READ_ONLY = text("SELECT current_setting('transaction_read_only') = 'on'")


class Compactions(NamedTuple):
    """How many compactions there were, and the last offset that they considered."""

    generation: int = 0
    upto: int = START


def read_batch(connection: Connection, after: int) -> Sequence[tuple[int, int, bytes, bytes | None]]:
    """Return the next rows after an offset, at most `BATCH`, as (offset, timestamp, key, value)."""
    return [tuple(row) for row in connection.execute(READ, {"after": after, "rows": BATCH})]


def last_offset(connection: Connection) -> int:
    """Return the offset of the last row, or `START` if there is none."""
    last = connection.execute(LAST).scalar()
    return START if last is None else int(last)


def has_landed(connection: Connection, first: int, token: bytes) -> bool:
    """Return whether the row at an offset has an append's token."""
    return connection.execute(LANDED, {"first": first, "token": token}).first() is not None


def insert_rows(connection: Connection, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, which have the values of all columns in order."""
    connection.execute(INSERT, [dict(zip(_COLUMNS.keys(), row, strict=True)) for row in rows])


def compactions(connection: Connection) -> Compactions:
    """Return what the log remembers of its compactions."""
    if not inspect(connection).has_table(_COMPACTION_TABLE.name):
        return Compactions()
    row = connection.execute(_COMPACTIONS).first()
    return Compactions() if row is None else Compactions(*row)


def drop_rows(connection: Connection, offsets: Sequence[int], upto: int, generation: int) -> bool:
    """Drop rows and record the compaction; return false and drop nothing if another compaction came first.

    Args:
        connection: A connection on which a write transaction begins.
        offsets: The offsets of the rows.
        upto: The last offset that the compaction considered.
        generation: The number of compactions before this one.
    """
    if connection.dialect.name == "postgresql":
        for statement in _LOCK:
            connection.execute(statement)
    if compactions(connection).generation != generation:
        return False
    for start in range(0, len(offsets), BATCH):
        connection.execute(_DROP, {"offsets": offsets[start : start + BATCH]})
    # On PostgreSQL even IF NOT EXISTS needs the right to create tables.
    if not inspect(connection).has_table(_COMPACTION_TABLE.name):
        connection.execute(CreateTable(_COMPACTION_TABLE))
    connection.execute(delete(_COMPACTION_TABLE))
    connection.execute(insert(_COMPACTION_TABLE), {"generation": generation + 1, "upto": upto})
    return True


def has_log(connection: Connection) -> bool:
    """Return whether the database has the log's table."""
    return inspect(connection).has_table(LOG_TABLE.name)


def create_tables(connection: Connection) -> bool:
    """Create and commit the tables if the log's is missing, and return whether it was.

    Raises:
        LogReadOnly: The table exists, but the database takes no writes.
    """
    # Checking first allows a role that may not create tables.
    if has_log(connection):
        check_writable(connection)
        return False
    if connection.dialect.name == "postgresql":
        connection.execute(_CREATE_LOCK)
    for statement in _CREATE:
        connection.execute(statement)
    connection.commit()
    return True


def check_writable(connection: Connection) -> None:
    """Check that the database takes writes.

    Raises:
        LogReadOnly: PostgreSQL takes no writes.
        OperationalError: SQLite takes no writes.
    """
    if connection.dialect.name == "sqlite":
        connection.execute(_WRITE_NOTHING)
        connection.rollback()
    elif connection.execute(_IS_READ_ONLY).scalar():
        raise LogReadOnly("the database is read-only: it is a standby, or default_transaction_read_only is on")
