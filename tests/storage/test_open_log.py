"""URLs of logs."""

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from strata.storage.log import START, LogError, MemoryLog
from strata.storage.open_log import open_log
from strata.storage.sql.log import SqlLog


def test_memory() -> None:
    """`memory:` is a log in memory."""
    assert isinstance(open_log("memory:"), MemoryLog)


def test_sqlite(tmp_path: Path) -> None:
    """`sqlite:///FILE` is a SQL log in that file."""
    with closing(open_log(f"sqlite:///{tmp_path}/strata.db")) as log:
        assert isinstance(log, SqlLog)
        assert log.end() == START
    assert (tmp_path / "strata.db").exists()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "strata.db",
        "memory",
        "memory:x",
        "file:///tmp/x",
        "mysql://root:s3cret@localhost/x",
        "kafka://",
        "kafka://localhost:9092",
        "kafka://localhost:9092/",
        "kafka://localhost:9092/two/parts",
        "kafka://localhost:9092/no spaces",
        "kafka:///_schemas",
        "kafka://localhost:nine/_schemas",
        "kafka://a:9092,b:/_schemas",
    ],
)
def test_a_bad_url_is_answered_with_the_allowed_forms(url: str) -> None:
    """An invalid URL is refused with the list of valid forms, and without repeating a possible password."""
    with pytest.raises(ValueError, match=r"sqlite:///FILE, .*kafka://HOST:PORT.*memory:") as caught:
        open_log(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["kafka://u:s3cret@a:9092/_schemas", "kafka://a:9092,u:s3cret%40b:9092/_schemas"])
def test_a_kafka_url_with_credentials_is_refused_without_them(url: str) -> None:
    """The client would take them for a host name, and name it in its errors."""
    with pytest.raises(ValueError, match="a Kafka URL holds no credentials") as caught:
        open_log(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("kafka://localhost:9092/_schemas", "confluent_kafka", "kafka"),
        ("postgresql+psycopg://localhost/x", "psycopg", "postgres"),
        ("sqlite:///strata.db", "sqlalchemy", "server"),
    ],
)
def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str) -> None:
    """A log without its driver names the extra to install."""
    for name in ("strata.storage.kafka.log", "strata.storage.sql.log"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LogError, match=rf"strata-registry\[{extra}\]"):
        open_log(url)


def test_what_must_exist_is_not_created(log_url: str) -> None:
    """`must_exist` creates no file, table or topic: a second attempt fails too, until the log is created."""
    for _ in range(2):
        with pytest.raises(LogError, match=r"no such|holds no log"):
            open_log(log_url, must_exist=True)
    open_log(log_url).close()
    with closing(open_log(log_url, must_exist=True)) as log:
        assert START == log.end()


def test_drivers_are_imported_on_demand() -> None:
    """Importing the factory imports no driver, which costs start-up time and may be missing."""
    script = (
        "import sys, strata.storage.open_log; print({'sqlalchemy', 'confluent_kafka', 'psycopg'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "set()"
