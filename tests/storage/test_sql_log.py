"""Behaviour of the SQL log alone: processes on one database, gaps, broken connections, unknown outcomes."""

import multiprocessing
import socket
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, event, make_url, text

from harness.logs import DATABASES, new_log_url
from harness.postgres import Postgres
from harness.processes import free_port
from strata.storage.log import START, Conflict, Entry, LogError, LogFull, LogReadOnly, Record
from strata.storage.sql.log import SqlLog


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return an empty database of each kind."""
    return new_log_url(request.param, tmp_path, request)


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    """Return the path of a SQLite log that does not exist yet."""
    return tmp_path / "strata.db"


def _record(name: str) -> Record:
    return Record(name.encode(), f"value of {name}".encode())


def _append_from_a_process(url: str, name: str, appends: int) -> list[tuple[int, bytes | None]]:
    acknowledged: list[Entry] = []
    with closing(SqlLog(url)) as log:
        end = START
        while len(acknowledged) < appends:
            for entry in log.read(end):
                end = entry.offset
            with suppress(Conflict):
                acknowledged += log.append(end, [_record(f"{name}.{len(acknowledged)}")])
    return [(entry.offset, entry.key) for entry in acknowledged]


def test_processes_that_start_at_once_on_a_fresh_database(url: str) -> None:
    """Four processes create the table together and append concurrently: nothing is lost or doubled."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])  # imported once, not by each process
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        running = [pool.submit(_append_from_a_process, url, f"p{i}", 8) for i in range(4)]
        acknowledged = [pair for each in running for pair in each.result(60)]
    with closing(SqlLog(url)) as log:
        held = [(entry.offset, entry.key) for entry in log.read(START)]
    assert sorted(acknowledged) == held
    assert [offset for offset, _ in held] == list(range(32))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a read take a hundred rows at a time."""
    monkeypatch.setattr("strata.storage.sql.tables.BATCH", 100)


@pytest.mark.usefixtures("small_batches")
def test_offsets_may_have_gaps(url: str) -> None:
    """Reads skip gaps between offsets, and the next append follows the last row."""
    engine = create_engine(url)
    with closing(SqlLog(url)) as log:
        log.append(START, [_record(str(i)) for i in range(2_500)])
        with engine.begin() as connection:
            connection.execute(text('DELETE FROM strata_log WHERE "offset" < 2400 AND "offset" % 7 <> 0'))
            connection.execute(text('DELETE FROM strata_log WHERE "offset" > 2497'))
        expected = [i for i in range(2_498) if i >= 2_400 or i % 7 == 0]
        assert [entry.offset for entry in log.read(START)] == expected
        assert log.append(2_497, [_record("next")])[0].offset == 2_498
    engine.dispose()


@pytest.mark.usefixtures("small_batches")
def test_a_replay_of_many_batches(url: str) -> None:
    """A log longer than several batches is read whole and in order, from its start and from the middle."""
    with closing(SqlLog(url)) as log:
        log.append(START, [_record(str(i)) for i in range(300)])
        assert [entry.offset for entry in log.read(START)] == list(range(300))
        assert [entry.offset for entry in log.read(99)] == list(range(100, 300))


@pytest.mark.usefixtures("small_batches")
def test_an_abandoned_read_holds_nothing(url: str) -> None:
    """A reader that stops in the middle blocks no writer."""
    with closing(SqlLog(url)) as log:
        log.append(START, [_record(str(i)) for i in range(200)])
        reading = log.read(START)
        assert next(reading).offset == 0
        assert log.append(199, [_record("more")])[0].offset == 200


def test_reads_go_on_during_an_append(sqlite_file: Path) -> None:
    """While another process holds SQLite's write lock, reads return."""
    with closing(SqlLog(f"sqlite:///{sqlite_file}")) as log, closing(sqlite3.connect(sqlite_file)) as other:
        written = log.append(START, [_record("a")])
        other.execute("BEGIN IMMEDIATE")
        assert list(log.read(START)) == list(written)


def test_the_probe_of_a_sqlite_log(sqlite_file: Path) -> None:
    """The probe finds the end of the log after appends, a compaction and a checkpoint by others."""
    url = f"sqlite:///{sqlite_file}"
    with closing(SqlLog(url)) as log, closing(SqlLog(url)) as other:
        assert log.unchanged(START)
        other.append(START, [_record(name) for name in "abc"])
        assert [False, True] == [log.unchanged(offset) for offset in (1, 2)]
        other.drop([0, 1], upto=2, generation=0)
        other.vacuum()
        assert [False, True] == [log.unchanged(offset) for offset in (1, 2)]
        log.append(2, [_record("d")])
        assert [False, True] == [log.unchanged(offset) for offset in (2, 3)]
        with closing(sqlite3.connect(sqlite_file)) as operator:
            operator.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert [False, True] == [log.unchanged(offset) for offset in (2, 3)]


def test_the_probe_leaves_what_it_cannot_read_to_a_read(sqlite_file: Path) -> None:
    """Without waiting, the probe says that it does not know if the database is locked or has no log any more."""
    with (
        closing(SqlLog(f"sqlite:///{sqlite_file}", timeout_s=60)) as log,
        closing(sqlite3.connect(sqlite_file, isolation_level=None)) as other,
    ):
        assert log.unchanged(START)
        log._engine.dispose()
        other.execute("DROP TABLE strata_log")
        assert not log.unchanged(START)


def test_a_locked_database_is_a_bounded_failure(sqlite_file: Path) -> None:
    """An append that gets no lock in time fails and writes nothing, and works once the lock is free."""
    with (
        closing(SqlLog(f"sqlite:///{sqlite_file}", timeout_s=0.2)) as log,
        closing(sqlite3.connect(sqlite_file, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LogError, match="locked"):
            log.append(START, [_record("a")])
        other.execute("ROLLBACK")
        assert log.end() == START
        assert log.append(START, [_record("a")])[0].offset == 0


def test_a_full_file_is_said_to_be_full(sqlite_file: Path) -> None:
    """An append without disk space fails at once with LogFull and writes nothing, and works once there is space."""
    with closing(SqlLog(f"sqlite:///{sqlite_file}")) as log:
        pages = [8]

        @event.listens_for(log._engine, "connect")
        def bound(connection: sqlite3.Connection, _record: object) -> None:
            connection.execute(f"PRAGMA max_page_count={pages[0]}")

        log._engine.dispose()
        with pytest.raises(LogFull, match="disk is full"):
            log.append(START, [Record(b"a", b"x" * 100_000)])
        assert log.append(START, [_record("a")])[0].offset == 0
        pages[0] = 1000
        log._engine.dispose()
        assert log.append(0, [Record(b"b", b"x" * 100_000)])[0].offset == 1


class _FullAtCommit(sqlite3.Connection):
    """A connection to a disk that is full at a commit; `carried_out` says whether the commit took place."""

    carried_out = False

    def commit(self) -> None:
        """Fail as SQLite does, which ends the transaction."""
        if not self.in_transaction:
            return
        if self.carried_out:
            super().commit()
        else:
            self.rollback()
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error


class _FullAfterCommit(_FullAtCommit):
    carried_out = True


@pytest.mark.parametrize("connection", [_FullAtCommit, _FullAfterCommit])
def test_a_disk_that_is_full_at_the_commit(sqlite_file: Path, connection: type[_FullAtCommit]) -> None:
    """The log checks whether the commit took place, so no append times out over a full disk."""
    with closing(SqlLog(f"sqlite:///{sqlite_file}")) as log:

        @event.listens_for(log._engine, "do_connect")
        def connect(_dialect: object, _record: object, _args: object, options: dict[str, object]) -> None:
            options["factory"] = connection

        log._engine.dispose()
        if connection.carried_out:
            assert log.append(START, [_record("a")])[0].offset == 0
        else:
            with pytest.raises(LogFull, match="disk is full"):
                log.append(START, [_record("a")])
        assert [b"a"] * connection.carried_out == [entry.key for entry in log.read(START)]


def test_a_read_only_file(sqlite_file: Path) -> None:
    """A node does not start on a read-only file; an open log reports it without writing."""
    with closing(SqlLog(f"sqlite:///{sqlite_file}")) as log:
        written = log.append(START, [_record("a")])
        log.check_writable()
        with pytest.raises(LogReadOnly, match="readonly"):
            SqlLog(f"sqlite:///file:{sqlite_file}?mode=ro&uri=true")
        with closing(SqlLog(f"sqlite:///{sqlite_file}")) as reader:
            event.listen(reader._engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only=ON"))
            reader._engine.dispose()
            with pytest.raises(LogReadOnly, match="readonly"):
                reader.check_writable()
            with pytest.raises(LogReadOnly, match="readonly"):
                reader.append(0, [_record("b")])
            assert list(written) == list(reader.read(START))
        log.check_writable()
        assert 0 == log.end()


@pytest.mark.parametrize("write", ["append", "check_writable"])
def test_a_file_that_was_read_only_for_a_while(sqlite_file: Path, write: str) -> None:
    """Connections that were opened while the file was read-only stay so, and are replaced at the next write."""
    with closing(SqlLog(f"sqlite:///{sqlite_file}")) as log, ExitStack() as opened:

        def forbid(connection: sqlite3.Connection, _record: object) -> None:
            connection.execute("PRAGMA query_only=ON")

        log._engine.dispose()
        event.listen(log._engine, "connect", forbid)
        for _ in range(3):
            opened.enter_context(log._engine.connect())
        opened.close()
        event.remove(log._engine, "connect", forbid)
        if write == "check_writable":
            log.check_writable()
        assert [0] == [entry.offset for entry in log.append(START, [_record("a")])]


def test_a_look_at_a_file_that_somebody_writes(sqlite_file: Path) -> None:
    """A file that another process has locked counts as writable."""
    with (
        closing(SqlLog(f"sqlite:///{sqlite_file}", timeout_s=0.1)) as log,
        closing(sqlite3.connect(sqlite_file, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        log.check_writable()


@pytest.mark.postgres
def test_a_read_only_server(postgres_url: str) -> None:
    """A standby, or a database whose transactions are read-only, serves reads and refuses writes."""
    with closing(SqlLog(postgres_url)) as log:
        written = log.append(START, [_record("a")])
        log.check_writable()
        with log._connect(write=True) as connection:
            name = connection.execute(text("SELECT current_database()")).scalar()
            connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'))
            connection.commit()
        log._engine.dispose()
        with pytest.raises(LogReadOnly):
            log.check_writable()
        with pytest.raises(LogReadOnly):
            log.append(0, [_record("b")])
        with pytest.raises(LogReadOnly):
            SqlLog(postgres_url)
        assert list(written) == list(log.read(START))


def test_sqlite_is_set_to_survive_a_power_cut(sqlite_file: Path) -> None:
    """Every connection uses a write-ahead log and syncs to the disk at each commit."""
    with closing(SqlLog(f"sqlite:///{sqlite_file}")) as log, log._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("missing/strata.db", None, id="no such folder"),
        pytest.param("strata.db", b"no database at all, " * 100, id="not a database"),
    ],
)
def test_a_file_that_cannot_be_opened(tmp_path: Path, name: str, content: bytes | None) -> None:
    """The error names the file."""
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(LogError, match=name):
        SqlLog(f"sqlite:///{file}")


@pytest.mark.parametrize(
    "url",
    ["sqlite://", "sqlite:///:memory:", "mysql://root@localhost/x", "nonsense"],
)
def test_urls_that_are_no_sql_log(url: str) -> None:
    """A database that cannot hold a log is refused before anything is opened."""
    with pytest.raises(ValueError, match=r"SQLite log needs a file|a SQL log is|not a database URL"):
        SqlLog(url)


def test_a_file_that_goes_while_it_is_opened(sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log whose file is gone once it is open is refused: later checks would have no file to compare with."""
    SqlLog(f"sqlite:///{sqlite_file}").close()

    def remove(log: SqlLog) -> None:
        check(log)
        sqlite_file.unlink()

    check = SqlLog._check_exists
    monkeypatch.setattr(SqlLog, "_check_exists", remove)

    with pytest.raises(LogError, match="removed while it was opened"):
        SqlLog(f"sqlite:///{sqlite_file}", must_exist=True)


def test_closed_log_refuses(sqlite_file: Path) -> None:
    """A closed log does not silently open its database again."""
    log = SqlLog(f"sqlite:///{sqlite_file}")
    log.close()
    assert not log.unchanged(START)
    with pytest.raises(LogError, match="closed"):
        log.end()


@pytest.mark.postgres
def test_an_unreachable_server_is_an_error_without_the_password() -> None:
    """The error names the server, and not the password."""
    with pytest.raises(LogError, match=r"127\.0\.0\.1") as caught:
        SqlLog(f"postgresql+psycopg://strata:s3cret@127.0.0.1:{free_port()}/strata")
    assert "s3cret" not in str(caught.value)


@pytest.mark.postgres
def test_a_server_that_restarts(postgres_server: Postgres) -> None:
    """Calls fail while the server is down; afterwards the same log continues."""
    server = postgres_server
    with closing(SqlLog(server.new_database())) as log:
        first = log.append(START, [_record("a")])
        server.kill()
        with pytest.raises(LogError):
            log.append(first[-1].offset, [_record("b")])
        with pytest.raises(LogError):
            log.end()
        server.restart()
        second = log.append(first[-1].offset, [_record("b")])
        server.restart()
        assert list(log.read(START)) == [*first, *second]


class _Wire:
    """A TCP relay to PostgreSQL that breaks one connection at its COMMIT, before or after forwarding it."""

    def __init__(self, target: tuple[str, int], *, pass_on: bool) -> None:
        self._target, self._pass_on = target, pass_on
        self._armed, self._answered = threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.broken = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def arm(self) -> None:
        """Break the next COMMIT."""
        self._armed.set()

    def close(self) -> None:
        # Closing alone leaves the thread in `accept`, which a stop of the process repeats, perhaps on another socket.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            for _ in count():
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError), client, server:
            while data := client.recv(65_536):
                if self._armed.is_set() and b"COMMIT" in data:
                    self._armed.clear()
                    self.broken += 1
                    client.shutdown(socket.SHUT_RDWR)
                    if self._pass_on:
                        server.sendall(data)
                        self._answered.wait(60)
                    server.shutdown(socket.SHUT_RDWR)
                    return
                server.sendall(data)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if self.broken:
                    self._answered.set()
                client.sendall(data)


@pytest.fixture(params=[True, False], ids=["commit took place", "commit was lost"])
def wire(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[_Wire]:
    """Yield a relay to an empty database."""
    target = make_url(postgres_url)
    relay = _Wire((str(target.host), int(target.port or 0)), pass_on=request.param)
    yield relay
    relay.close()


@pytest.mark.postgres
def test_a_commit_whose_answer_is_lost(wire: _Wire, postgres_url: str) -> None:
    """If a commit's answer is lost, the append finds out whether it took place, and its records are there once."""
    url = make_url(postgres_url).set(port=wire.port).render_as_string(hide_password=False)
    with closing(SqlLog(url)) as log:
        first = log.append(START, [_record("a")])
        wire.arm()
        second = log.append(first[-1].offset, [_record("b"), _record("c")])
        assert list(log.read(START)) == [*first, *second]
        assert wire.broken == 1


@pytest.mark.postgres
def test_a_role_that_can_only_read_and_append(postgres_url: str) -> None:
    """Once the tables exist, the grants of docs/operations.md are enough, also after a compaction."""
    role = f"writer_{make_url(postgres_url).database}"
    with closing(SqlLog(postgres_url)) as owner:
        with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
            for statement in (
                f"CREATE ROLE {role} LOGIN",
                "REVOKE CREATE ON SCHEMA public FROM public",
                f"GRANT USAGE ON SCHEMA public TO {role}",
                f"GRANT SELECT, INSERT ON strata_log TO {role}",
                f"GRANT SELECT ON strata_compaction TO {role}",
            ):
                connection.execute(statement.encode())
        url = make_url(postgres_url).set(username=role).render_as_string(hide_password=False)
        with closing(SqlLog(url)) as log:
            entries = log.append(START, [_record("a"), _record("b")])
            owner.drop([entries[0].offset], upto=entries[1].offset, generation=0)

            assert [entries[1]] == list(log.read(START))
            with pytest.raises(LogError, match="permission denied"):
                log.drop([entries[1].offset], upto=entries[1].offset, generation=1)


@pytest.mark.postgres
def test_a_role_that_may_not_create_says_so(postgres_url: str) -> None:
    """The first start with a role without CREATE fails with the database's reason."""
    role = f"reader_{make_url(postgres_url).database}"
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(b"REVOKE CREATE ON SCHEMA public FROM public")

    with pytest.raises(LogError, match="permission denied for schema public"):
        SqlLog(make_url(postgres_url).set(username=role).render_as_string(hide_password=False))


@pytest.mark.parametrize("replace", [False, True], ids=["removed", "replaced"])
def test_a_file_that_goes_away_under_a_running_node(tmp_path: Path, *, replace: bool) -> None:
    """The log acknowledges nothing while its path leads to no file or another one; it works again once restored."""
    path, aside, other = (tmp_path / f"{name}.db" for name in ("strata", "aside", "other"))
    SqlLog(f"sqlite:///{other}").close()
    with closing(SqlLog(f"sqlite:///{path}")) as log:
        first = log.append(START, [_record("a")])
        assert log.unchanged(0)
        path.rename(aside)
        if replace:
            other.rename(path)

        assert not log.unchanged(0)
        for call in (lambda: log.append(0, [_record("b")]), log.end, log.check_writable, lambda: list(log.read(START))):
            with pytest.raises(LogError, match="removed or replaced"):
                call()

        aside.rename(path)
        assert first == list(log.read(START))
        assert log.unchanged(0)
