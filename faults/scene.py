"""The nodes of one run, each behind a proxy for the others, and who of them holds the pen."""

import random
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from faults.proxy import Proxy
from faults.services import Services
from harness.registry import RegistryNode
from storage.kafka_log import KafkaLog
from storage.log import START, LogError
from storage.open_log import open_log

__all__ = ["Member", "Scene", "opened"]

_NODES = {"sqlite": 4, "postgres": 3, "kafka": 3}
_FREE_S = 30.0


@dataclass(slots=True)
class Member:
    """A node and the proxy by which the others reach it; whoever acts on it holds its lock."""

    number: int
    node: RegistryNode
    proxy: Proxy
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class Scene:
    """What a fault can act on. Services that are not ours to break are None."""

    log: str
    log_url: str
    members: list[Member]
    services: Services
    service_lock: threading.Lock = field(default_factory=threading.Lock)
    _watch: KafkaLog | None = None

    @property
    def ports(self) -> list[int]:
        """Where clients reach the nodes."""
        return [member.node.port for member in self.members]

    def holder(self) -> Member | None:
        """Return the node that took the pen last, None on logs without one or when it cannot be found out."""
        if self.log != "kafka":
            return None
        with suppress(LogError):
            if self._watch is None:
                log = open_log(self.log_url)
                assert isinstance(log, KafkaLog)
                self._watch = log
            list(self._watch.read(START))
            url = self._watch.holder()
            return next((member for member in self.members if member.proxy.url == url), None)
        return None

    @contextmanager
    def claim(self, rng: random.Random, *, writer: bool = False) -> Iterator[Member | None]:
        """Hold one node, the writing one if asked for; None when every candidate is taken by another fault."""
        holder = self.holder() if writer else None
        candidates = [holder] if holder else rng.sample(self.members, len(self.members))
        taken = next((member for member in candidates if member.lock.acquire(blocking=False)), None)
        try:
            yield taken
        finally:
            if taken:
                taken.lock.release()

    @contextmanager
    def claim_all(self) -> Iterator[list[Member]]:
        """Hold every node, once other faults are done with them."""
        taken = []
        try:
            for member in self.members:
                if not member.lock.acquire(timeout=_FREE_S):
                    raise RuntimeError(f"node {member.number} was not given free")
                taken.append(member)
            yield taken
        finally:
            for member in taken:
                member.lock.release()

    def close(self) -> None:
        """End the nodes and the proxies."""
        if self._watch is not None:
            self._watch.close()
        for member in self.members:
            member.node.send(signal.SIGKILL)
            member.node.stop()
            member.proxy.close()


@contextmanager
def opened(services: Services, log: str) -> Iterator[Scene]:
    """Start the nodes of a run over a fresh log."""
    url = services.fresh_log(log)
    members = []
    for number in range(_NODES[log]):
        proxy = Proxy()
        node = RegistryNode(url, f"--advertised-url={proxy.url}", start=services.nursery.start)
        proxy.lead_to(node.port)
        members.append(Member(number, node, proxy))
    scene = Scene(log, url, members, services)
    try:
        # One by one on an empty log: the first one makes it.
        members[0].node.restart()
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(lambda member: member.node.restart(), members[1:]))
        yield scene
    finally:
        scene.close()
