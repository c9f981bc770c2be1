"""All processes of a run share one service, which ends with the run."""

import shutil
import subprocess
import sys

import psycopg
import pytest

from harness.shared import shared_postgres, shared_run
from harness.waiting import until

_RUN = """
import time
from harness.shared import shared_postgres, shared_run
with shared_run() as folder:
    print(shared_postgres(folder).port, folder, flush=True)
    time.sleep(600)
"""
_NEED = """
import sys
from pathlib import Path
from harness.shared import shared_postgres
print(shared_postgres(Path(sys.argv[1])).port)
"""


def _answers(port: int) -> bool:
    try:
        psycopg.connect(f"host=127.0.0.1 port={port} user=postgres", connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.postgres
def test_processes_share_a_server_that_outlives_the_one_that_needed_it_first() -> None:
    """The process that starts the server ends at once; the server ends with the run."""
    with shared_run() as folder:
        first = subprocess.check_output([sys.executable, "-c", _NEED, str(folder)])
        server = shared_postgres(folder)
        assert (int(first), True) == (server.port, _answers(server.port))
        assert server.new_database() != server.new_database()

    assert not _answers(server.port)


@pytest.mark.postgres
def test_a_server_ends_with_a_run_that_is_killed() -> None:
    """A killed run cannot stop its server; the keeper does."""
    with subprocess.Popen([sys.executable, "-c", _RUN], stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        number, folder = run.stdout.readline().decode().split()
        port = int(number)
        assert _answers(port)
        run.kill()

    until(lambda: not _answers(port))
    shutil.rmtree(folder)
