"""`strata compact` and `strata log` work on a log while nodes serve it."""

import json
from contextlib import closing

import pytest
from click.testing import CliRunner

from harness.kafka import KafkaBroker
from strata.registry.commands.cli import main
from strata.storage.log import START, Record
from strata.storage.open_log import open_log
from strata.storage.record_json import encode
from strata.storage.records import ModeKey
from strata.storage.sql.log import SqlLog


def strata(*arguments):
    """Run a command in this process; return its exit code and output."""
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


@pytest.fixture
def url(tmp_path):
    """Return a SQLite log of four records, one of them damaged, one superseded."""
    found = f"sqlite:///{tmp_path}/strata.db"
    junk = Record(b"\xff\x00junk", b"\x80")
    with closing(SqlLog(found)) as log:
        log.append(START, [*(encode(ModeKey("s"), mode) for mode in ("READONLY", "READWRITE")), junk])
        log.append(2, [encode(ModeKey("t"), "READONLY")])
    return found


def offsets(url):
    """Return the offsets of a log's records."""
    with closing(SqlLog(url)) as log:
        return [entry.offset for entry in log.read(START)]


def test_compact_says_what_it_did(url):
    """A dry run drops nothing and prints the same numbers; a second run finds nothing to do."""
    assert (0, [0, 1, 2, 3]) == (strata("compact", url, "--dry-run")[0], offsets(url))
    code, output = strata("compact", url)
    assert (0, [1, 2, 3]) == (code, offsets(url))
    assert "4 records before, 3 after" in output
    assert "3 records before, 3 after" in strata("compact", url)[1]


@pytest.mark.parametrize("command", ["compact", "log"])
def test_a_log_that_is_not_there_is_not_created(tmp_path, command):
    """A misspelt name is an error, and creates no empty log."""
    code, output = strata(command, f"sqlite:///{tmp_path}/absent.db")
    assert (2, True, []) == (code, "no such file" in output, list(tmp_path.iterdir()))


# flags, listed offsets
LISTS = [
    pytest.param([], [0, 1, 2, 3], id="all"),
    pytest.param(["--tail", "2"], [2, 3], id="the last two"),
    pytest.param(["--set-aside"], [2], id="what is set aside"),
    pytest.param(["--set-aside", "--tail", "0"], [], id="none"),
]


@pytest.mark.parametrize(("flags", "expected"), LISTS)
def test_log_lists_records_as_json_lines(url, flags, expected):
    """`strata log` prints each record as an object: offset, time, key, value, and the reason if it is set aside."""
    code, output = strata("log", url, *flags)
    lines = [json.loads(line) for line in output.splitlines()]

    assert (0, expected) == (code, [line["offset"] for line in lines])
    assert all(("setAside" in line) == (line["offset"] == 2) for line in lines)
    assert all(line["key"]["keytype"] == "MODE" for line in lines if line["offset"] != 2)


NO_LOGS = [
    ("another scheme", "redis://user:secret@here", "sqlite:///FILE"),
    ("a service", "http://user:secret@here:8081", "expected the URL of a log, got that of a service"),
]


@pytest.mark.parametrize("command", ["compact", "log"])
@pytest.mark.parametrize(("url", "words"), [row[1:] for row in NO_LOGS], ids=[row[0] for row in NO_LOGS])
def test_a_url_of_no_log_is_refused(command, url, words):
    """The message names the argument, without the password in it."""
    code, output = strata(command, url)

    assert (2, True, True) == (code, words in output, output.startswith("strata: LOG is "))
    assert "secret" not in output
    assert "--log" not in output


def test_memory_needs_no_compaction():
    """On a log in memory the command says that there is nothing to compact."""
    code, output = strata("compact", "memory:")

    assert (0, True) == (code, "Nothing to compact" in output)


@pytest.mark.kafka
def test_kafka_compacts_itself(kafka_broker: KafkaBroker):
    """On a Kafka log the command says that brokers compact it."""
    url = f"kafka://{kafka_broker.bootstrap}/compacts-itself"
    open_log(url).close()
    code, output = strata("compact", url)

    assert (0, True) == (code, "the brokers compact by themselves" in output)


@pytest.mark.parametrize("command", ["export", "import", "migrate", "verify"])
def test_help_shows_examples_line_by_line(command):
    """The help shows each example command on its own line, ready to copy."""
    shown = CliRunner().invoke(main, [command, "--help"]).output.splitlines()

    assert any(line.startswith(f"  strata {command} ") for line in shown)
    assert "\\b" not in "".join(shown)
