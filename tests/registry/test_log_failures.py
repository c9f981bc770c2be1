"""Answers of a service whose log fails: the outcome, what to do, and no address, user or path."""

import logging
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import event

from harness.postgres import Postgres
from strata.registry.settings import Settings
from strata.storage.sql.log import SqlLog

SECRETS = ("sqlite", "strata.db", "postgresql", "psycopg", "127.0.0.1", "5432", "Errno", "/")
REQUESTS = [
    ("GET", "/subjects", None),
    ("GET", "/config", None),
    ("GET", "/schemas/ids/7", None),
    ("POST", "/subjects/s", {"schema": '"int"'}),
    ("POST", "/subjects/s/versions", {"schema": '"long"'}),
    ("PUT", "/config", {"compatibility": "NONE"}),
    ("DELETE", "/subjects/s", None),
    ("POST", "/associations", {"resourceName": "t"}),
]


def check_words(answer):
    """Check that the answer holds no word that only the operator should see."""
    assert not [word for word in SECRETS if word in answer["message"]], answer["message"]


def answers(api):
    """Send every request; return the status, code and Retry-After of each."""
    found = []
    for method, path, body in REQUESTS:
        status, answer = api.call(method, path, body)
        check_words(answer)
        found.append((status, answer["error_code"], api.headers.get("retry-after")))
    return found


READ_FAILED, NOT_WRITTEN = (503, 50301, "1"), (503, 50302, "1")
GONE = [READ_FAILED] * 4 + [NOT_WRITTEN] * 4


def test_a_file_that_is_gone(configured, tmp_path, caplog, monkeypatch):
    """Reads answer that the log cannot be read, writes that nothing was written; each logs one line."""
    monkeypatch.setattr("strata.registry.node.health._EVERY_S", 3600.0)  # the health check has a line of its own
    folder = tmp_path / "data"
    folder.mkdir()
    with closing(SqlLog(f"sqlite:///{folder}/strata.db")) as log:
        api = configured(Settings(log="memory:"), log)
        api.placed("s", '"int"')
        folder.rename(tmp_path / "elsewhere")
        log._engine.dispose()
        assert GONE == answers(api)
        (tmp_path / "elsewhere").rename(folder)
        assert (200, ["s"]) == api.get("/subjects")
    lines = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(lines) <= 1 + 4
    assert all("strata.db" in record.getMessage() and record.exc_info is None for record in lines)


def limited(log, statement):
    """Run a statement at the start of every later connection; return a function that stops this."""

    def begin(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(statement)

    event.listen(log._engine, "connect", begin)
    log._engine.dispose()
    return lambda: (event.remove(log._engine, "connect", begin), log._engine.dispose())


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        pytest.param("PRAGMA query_only=ON", "the log is read-only", id="read-only"),
        pytest.param("PRAGMA max_page_count=1", "no space is left where the log is kept", id="full"),
    ],
)
def test_a_file_that_takes_no_writes(configured, tmp_path, statement, words):
    """The registry serves reads; writes say why nothing was written, and work again once the cause is gone."""
    with closing(SqlLog(f"sqlite:///{tmp_path}/strata.db")) as log:
        api = configured(Settings(log="memory:"), log)
        api.placed("s", '"int"')
        undo = limited(log, statement)
        large = {"schema": f'{{"type":"enum","name":"E","symbols":["{"X" * 100_000}"]}}'}

        status, answer = api.post("/subjects/large/versions", large)
        assert (500, 50001) == (status, answer["error_code"])
        assert f"Error while writing to the log: {words}. Nothing was written" == answer["message"]
        assert (200, ["s"]) == api.get("/subjects")
        assert (404, 40401) == (lambda found: (found[0], found[1]["error_code"]))(api.delete("/subjects/large"))
        undo()
        assert 200 == api.post("/subjects/large/versions", large)[0]


@pytest.mark.postgres
@pytest.mark.slow
def test_a_server_that_is_gone(configured):
    """A PostgreSQL server that is gone gives the same answers as a missing file."""
    with Postgres() as server, closing(SqlLog(server.new_database())) as log:
        api = configured(Settings(log="memory:"), log)
        api.placed("s", '"int"')
        server.kill()
        assert GONE == answers(api)
        status, ready = api.get("/health/write")
        assert (503, "the log cannot be read: the log failed or did not answer") == (status, ready["reason"])
        assert 200 == api.get("/health/ready")[0]
