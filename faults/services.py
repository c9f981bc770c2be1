"""The three logs under test, alive over many runs: each run gets a fresh topic, database or file."""

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import uuid4

from faults.nursery import Nursery
from harness.kafka import KafkaBroker
from harness.postgres import Postgres

__all__ = ["LOGS", "Services"]

LOGS = ("sqlite", "postgres", "kafka")
_BROKERS = 3
_BROKER_SETTINGS = {
    # How soon a transaction that was left open is given up; the default looks every ten seconds only.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
# Few enough that all can be taken away, and more than the nodes of a run use at once.
_POSTGRES_SETTINGS = {"max_connections": "60"}


@dataclass(slots=True)
class Services:
    """The services behind the logs; each is started when a run first asks for it, unless the caller lent one.

    A service that was lent belongs to somebody else: nothing is done to it, only to the nodes.
    """

    lent_broker: KafkaBroker | None = None
    lent_postgres: Postgres | None = None
    own_broker: KafkaBroker | None = None
    own_postgres: Postgres | None = None
    nursery: Nursery = field(default_factory=Nursery)
    _stack: ExitStack = field(default_factory=ExitStack)
    _folder: Path | None = None

    def __enter__(self) -> Self:
        self._stack.enter_context(self.nursery)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def fresh_log(self, log: str) -> str:
        """Return the URL of a log that nobody has written to."""
        if log == "kafka":
            return f"kafka://{self._kafka().bootstrap}/schemas-{uuid4().hex[:12]}"
        if log == "postgres":
            return self._postgres().new_database()
        return f"sqlite:///{self._files()}/{uuid4().hex[:12]}.db"

    def _kafka(self) -> KafkaBroker:
        if self.lent_broker is None and self.own_broker is None:
            self.own_broker = self._stack.enter_context(KafkaBroker(_BROKERS, config=_BROKER_SETTINGS))
        broker = self.lent_broker or self.own_broker
        assert broker is not None
        return broker

    def _postgres(self) -> Postgres:
        if self.lent_postgres is None and self.own_postgres is None:
            self.own_postgres = self._stack.enter_context(Postgres(config=_POSTGRES_SETTINGS))
        server = self.lent_postgres or self.own_postgres
        assert server is not None
        return server

    def _files(self) -> Path:
        if self._folder is None:
            self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-faults-")))
        return self._folder
