"""The three logs under test, shared by many runs: each run gets a new topic, database or file.

A node reaches the brokers and the server through its own proxies, so that its path to them can be cut.
"""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from uuid import uuid4

from sqlalchemy.engine import make_url

from faults.mutants import BEFORE_LEASES
from faults.nursery import Child, Nursery
from faults.proxy import Proxy
from faults.rights import node_options
from harness.kafka import KafkaBroker
from harness.postgres import Postgres

__all__ = ["LOGS", "NODES", "Services"]

LOGS = ("sqlite", "postgres", "kafka")
NODES = {"sqlite": 4, "postgres": 3, "kafka": 3}
_BROKERS = 3
_BROKER_SETTINGS = {
    # How long a coordinator waits for a broker that has gone before it tries again to finish a transaction that a crash
    # has left; the default is 30 s, and no producer can write to the topic meanwhile.
    "request.timeout.ms": "5000",
    # The interval at which abandoned transactions are aborted; the default is every ten seconds only.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
# Few enough that a fault can take all of them, and more than the nodes of a run use at once.
_POSTGRES_SETTINGS = {"max_connections": "60"}


@dataclass(slots=True)
class Services:
    """The services behind the logs; each is started on first use, unless the caller lent one.

    A lent service is not broken, only the nodes are. With a `mutant`, the nodes run a registry with a planted bug. Each
    node has `workers` worker processes. With `access`, the nodes have access control; with `lease`, those on Kafka have
    read leases, but with `older` the first of them is of a version that knows none.
    """

    lent_broker: KafkaBroker | None = None
    lent_postgres: Postgres | None = None
    lent_nursery: Nursery | None = None
    own_broker: KafkaBroker | None = None
    own_postgres: Postgres | None = None
    mutant: str | None = None
    workers: int = 1
    access: bool = False
    lease: bool = False
    older: bool = False
    _nursery: Nursery | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _folder: Path | None = None
    _to_brokers: list[list[Proxy]] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything that was started; later uses start the services again."""
        self._stack.close()
        self.own_broker = self.own_postgres = self._nursery = self._folder = None
        self._to_brokers = []

    def start(self, command: Sequence[str], *, log: Path) -> Child:
        """Start a node, or another command: of the real registry, or of the one with the planted bug."""
        return self._starting().start(command, log=log, mutant=self.mutant)

    def start_older(self, command: Sequence[str], *, log: Path) -> Child:
        """Start a node of a version that knows no read leases."""
        return self._starting().start(command, log=log, mutant=BEFORE_LEASES)

    def starts_older(self, log: str, node: int) -> bool:
        """Return whether a node is of a version that knows no read leases."""
        return self.older and log == "kafka" and node == 0

    @property
    def access_options(self) -> list[str]:
        """The flags of nodes with access control; empty without it."""
        return node_options(self._files()) if self.access else []

    def fresh_log(self, log: str) -> str:
        """Return the URL of a new, empty log."""
        if log == "kafka":
            return f"kafka://{self._kafka().bootstrap}/schemas-{uuid4().hex[:12]}"
        if log == "postgres":
            return self._postgres().new_database()
        return f"sqlite:///{self._files()}/{uuid4().hex[:12]}.db"

    def path_to(self, log_url: str, node: int) -> tuple[str, list[Proxy]]:
        """Return the URL at which a node reaches a log, and the proxies on the path."""
        if log_url.startswith("kafka:") and self.own_broker is not None:
            topic = log_url.rpartition("/")[2]
            return f"kafka://{self.own_broker.bootstrap_by(_listener(node))}/{topic}", self._to_brokers[node]
        if log_url.startswith("postgresql"):
            url, proxy = make_url(log_url), Proxy()
            assert url.port is not None
            proxy.lead_to(url.port)
            return url.set(port=proxy.port).render_as_string(hide_password=False), [proxy]
        return log_url, []

    def _starting(self) -> Nursery:
        if self.lent_nursery is None and self._nursery is None:
            self._nursery = self._stack.enter_context(Nursery())
        nursery = self.lent_nursery or self._nursery
        assert nursery is not None
        return nursery

    def _kafka(self) -> KafkaBroker:
        if self.lent_broker is None and self.own_broker is None:
            self._to_brokers = [[Proxy() for _ in range(_BROKERS)] for _ in range(NODES["kafka"])]
            proxied = {_listener(n): [proxy.port for proxy in ways] for n, ways in enumerate(self._to_brokers)}
            broker = KafkaBroker(_BROKERS, config=_BROKER_SETTINGS, proxied=proxied)
            for node, ways in enumerate(self._to_brokers):
                for i, proxy in enumerate(ways):
                    proxy.lead_to(broker.listener_port(_listener(node), i))
                    self._stack.callback(proxy.close)
            self.own_broker = self._stack.enter_context(broker)
        found = self.lent_broker or self.own_broker
        assert found is not None
        return found

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


def _listener(node: int) -> str:
    return f"NODE{node}"
