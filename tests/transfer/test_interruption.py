"""Import and migration after kill -9: a second run completes the first."""

import importlib
import multiprocessing
import os
import signal
from contextlib import closing

import pytest

from strata.registry.commands.cli import main
from strata.storage.log import Record
from strata.storage.open_log import open_log

_PRINT = "strata.registry.transfer.progress.print_line"
_INSERT = "strata.storage.sql.sqlite_statements.insert_rows"
_IMPORTED = [
    __name__,
    "strata.registry.transfer.copies",
    "strata.registry.transfer.rest_target",
    "strata.storage.sql.log",
]


def _run_until(function, argument, arguments):
    """Run a command that dies once it has called a function whose first argument, as text, begins so."""
    module, _, name = function.rpartition(".")
    called = getattr(importlib.import_module(module), name)

    def call_and_die(*given):
        called(*given)
        if str(given[0]).startswith(argument):
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(importlib.import_module(module), name, call_and_die)
    main(arguments)


def _killed_at(function, argument, *arguments):
    """Run a command that kills itself with SIGKILL; a kill from outside would sometimes come too late."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)  # imported once, not by each process
    process = context.Process(target=_run_until, args=(function, argument, [str(argument) for argument in arguments]))
    process.start()
    process.join()
    assert -signal.SIGKILL == process.exitcode


def _held(log_url):
    with closing(open_log(log_url)) as log:
        return sum(entry.key != b'{"keytype":"NOOP","magic":0}' for entry in log.read(-1))


def test_a_killed_import_goes_on(strata, raw_source, write_raw, tmp_path, log_url):
    """A second run keeps the first run's records and writes only the rest."""
    _fill_up(write_raw, raw_source, 50)
    strata("export", raw_source, tmp_path / "file")
    whole = strata("verify", tmp_path / "file", tmp_path / "file")[2].partition("A holds ")[2]
    total = int(whole.split()[0])

    _killed_at(_PRINT, "writing", "import", tmp_path / "file", log_url, "--batch", 1)

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

    _killed_at(_INSERT, "", "import", tmp_path / "file", log)

    assert 0 == _held(log)
    assert 0 == strata("import", tmp_path / "file", log)[0]
    assert (0, "") == strata("verify", raw_source, log)[:2]


@pytest.mark.parametrize("moment", ["registering", "configuring"])
def test_a_killed_migration_goes_on(strata, source, serve, tmp_path, moment):
    """The target stays in mode IMPORT; the second run completes it and sets the source's modes."""
    target = f"sqlite:///{tmp_path / 'target.db'}"
    old, new = serve(source), serve(target)

    _killed_at(_PRINT, moment, "migrate", "--from", old.url, "--to", new.url)

    assert "IMPORT" == new.call("GET", "/mode")["mode"]
    assert 1 == strata("verify", source, target)[0]
    code, output, errors = strata("migrate", "--from", old.url, "--to", new.url)
    assert (0, "") == (code, output), errors
    assert "READWRITE" == new.call("GET", "/mode")["mode"]
    assert (0, "") == strata("verify", source, target)[:2]


def _fill_up(write_raw, log_url, count):
    write_raw(log_url, *(Record(b'{"keytype":"CONFIG","subject":"s%d","magic":0}' % i, b"{}") for i in range(count)))
