"""One Kafka broker and one PostgreSQL for all processes of a test run, each started when the first test needs it.

    with shared_run() as folder:          # in the process that controls the run
        ...
        broker = shared_broker(folder)    # in any process of the run

Each service has a keeper: a process, this file run as a script, that is tied to the life of the run, not to the life
of the process that needed the service first. The run holds a lock, which the kernel releases even if the run is
killed; the keeper waits for that lock, then stops its service.
"""

import fcntl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.kafka import KafkaBroker
from harness.postgres import Postgres
from harness.processes import tail

__all__ = ["shared_broker", "shared_postgres", "shared_run"]

_POLL_S = 0.05
_READY_S = 240.0
_keepers: list[subprocess.Popen[bytes]] = []


class _LentBroker(KafkaBroker):
    """The run's broker, by its address: it has no nodes to kill."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @property
    def bootstrap(self) -> str:
        """The `bootstrap.servers` of the cluster."""
        return self._bootstrap


class _LentPostgres(Postgres):
    """The run's server, by its port: it has no process to kill."""

    def __init__(self, port: str) -> None:
        self._port = int(port)


@contextmanager
def shared_run() -> Iterator[Path]:
    """Yield the folder in which a run's processes find its services; stop the services at the end."""
    with tempfile.TemporaryDirectory(prefix="strata-run-") as name:
        folder = Path(name)
        with (folder / "run").open("wb") as run:
            fcntl.flock(run, fcntl.LOCK_EX)
            try:
                yield folder
            finally:
                fcntl.flock(run, fcntl.LOCK_UN)  # a forked child may still have the file open
                for kept in folder.glob("*.kept"):
                    with kept.open("rb") as lock:  # its keeper holds it until the service has stopped
                        fcntl.flock(lock, fcntl.LOCK_SH)


def shared_broker(folder: Path) -> KafkaBroker:
    """Return the run's one-node cluster; it cannot be killed or restarted.

    Raises:
        RuntimeError: it did not start; the message contains the end of the keeper's log.
    """
    return _LentBroker(_address(folder, "kafka"))


def shared_postgres(folder: Path) -> Postgres:
    """Return the run's server; it cannot be killed or restarted.

    Raises:
        RuntimeError: it did not start; the message contains the end of the keeper's log.
    """
    return _LentPostgres(_address(folder, "postgres"))


def _address(folder: Path, kind: str) -> str:
    address = folder / f"{kind}.address"
    with (folder / f"{kind}.start").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not address.exists():
            _start_keeper(folder, kind, address)
    return address.read_text()


def _start_keeper(folder: Path, kind: str, address: Path) -> None:
    log = folder / f"{kind}.log"
    command = [sys.executable, "-m", "harness.shared", kind, str(folder)]
    with log.open("ab") as output:
        keeper = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            cwd=Path(__file__).parents[1],
        )  # fmt: skip
    _keepers.append(keeper)
    deadline = time.monotonic() + _READY_S
    while not address.exists():
        if keeper.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the shared {kind} did not start:\n{tail(log)}")
        time.sleep(_POLL_S)


def _keep(kind: str, folder: Path) -> None:
    with (folder / f"{kind}.kept").open("wb") as kept, (folder / "run").open("rb") as run:
        fcntl.flock(kept, fcntl.LOCK_EX)
        with _service(kind) as address:
            draft = folder / f"{kind}.draft"
            draft.write_text(address)
            draft.rename(folder / f"{kind}.address")
            fcntl.flock(run, fcntl.LOCK_SH)


@contextmanager
def _service(kind: str) -> Iterator[str]:
    if kind == "postgres":
        with Postgres() as server:
            yield str(server.port)
        return
    # It is never restarted. With a short session, the controller would take it for dead after a pause of the machine.
    with KafkaBroker(config={"broker.session.timeout.ms": "60000"}) as broker:
        yield broker.bootstrap


if __name__ == "__main__":
    _keep(sys.argv[1], Path(sys.argv[2]))
