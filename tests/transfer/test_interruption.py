"""Import and migration after kill -9: a second run completes the first."""

import subprocess
import sys
from contextlib import closing

import pytest

from strata.storage.log import Record
from strata.storage.open_log import open_log

# A kill from outside would sometimes come too late.
_DYING = """
import os, sys
from strata.registry.commands.cli import main
from strata.registry.transfer import progress

print_line, line = progress.print_line, sys.argv.pop(1)

def print_and_die(text):
    print_line(text)
    if text.startswith(line):
        os.kill(os.getpid(), 9)

progress.print_line = print_and_die
main()
"""


def _killed_at(line, *arguments):
    """Run a command that kills itself with SIGKILL as soon as it has printed a line."""
    command = [sys.executable, "-c", _DYING, line, *map(str, arguments)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert -9 == ended.returncode, ended.stderr


def _held(log_url):
    with closing(open_log(log_url)) as log:
        return sum(entry.key != b'{"keytype":"NOOP","magic":0}' for entry in log.read(-1))


def test_a_killed_import_goes_on(strata, raw_source, write_raw, tmp_path, log_url):
    """A second run keeps the first run's records and writes only the rest."""
    _fill_up(write_raw, raw_source, 300)
    strata("export", raw_source, tmp_path / "file")
    whole = strata("verify", tmp_path / "file", tmp_path / "file")[2].partition("A holds ")[2]
    total = int(whole.split()[0])

    _killed_at("writing", "import", tmp_path / "file", log_url, "--batch", 1)

    assert 0 < _held(log_url) < total
    code, _, errors = strata("import", tmp_path / "file", log_url)
    assert (0, True) == (code, "records from an earlier run" in errors), errors
    assert total == _held(log_url)
    assert (0, "") == strata("verify", raw_source, log_url)[:2]


def test_an_import_of_one_append_is_all_or_nothing(strata, raw_source, write_raw, tmp_path):
    """An import into a database that is killed before its append ends has written nothing."""
    log = f"sqlite:///{tmp_path / 'target.db'}"
    _fill_up(write_raw, raw_source, 50)
    strata("export", raw_source, tmp_path / "file")
    (tmp_path / "kill.py").write_text(
        "import os\n"
        "from strata.storage.sql import sqlite_statements\n"
        "insert = sqlite_statements.insert_rows\n"
        "def insert_and_die(connection, rows):\n"
        "    insert(connection, rows)\n"
        "    os.kill(os.getpid(), 9)\n"
        "sqlite_statements.insert_rows = insert_and_die\n"
        "from strata.registry.commands.cli import main\n"
        "main()\n"
    )

    command = [sys.executable, tmp_path / "kill.py", "import", tmp_path / "file", log]
    assert -9 == subprocess.run(command, check=False, capture_output=True).returncode

    assert 0 == _held(log)
    assert 0 == strata("import", tmp_path / "file", log)[0]
    assert (0, "") == strata("verify", raw_source, log)[:2]


@pytest.mark.parametrize("moment", ["registering", "configuring"])
def test_a_killed_migration_goes_on(strata, source, serve, tmp_path, moment):
    """The target stays in mode IMPORT; the second run completes it and sets the source's modes."""
    target = f"sqlite:///{tmp_path / 'target.db'}"
    old, new = serve(source), serve(target)

    _killed_at(moment, "migrate", "--from", old.url, "--to", new.url)

    assert "IMPORT" == new.call("GET", "/mode")["mode"]
    assert 1 == strata("verify", source, target)[0]
    code, output, errors = strata("migrate", "--from", old.url, "--to", new.url)
    assert (0, "") == (code, output), errors
    assert "READWRITE" == new.call("GET", "/mode")["mode"]
    assert (0, "") == strata("verify", source, target)[:2]


def _fill_up(write_raw, log_url, count):
    write_raw(log_url, *(Record(b'{"keytype":"CONFIG","subject":"s%d","magic":0}' % i, b"{}") for i in range(count)))
