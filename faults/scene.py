"""The nodes of one run, each behind a proxy for the others and one for its log, and who of them holds the pen."""

import random
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from faults.archive import Archive
from faults.clients import Recorder
from faults.nursery import set_clock
from faults.proxy import Proxy
from faults.services import NODES, Services
from harness.registry import RegistryNode

__all__ = ["Member", "Scene", "opened"]

_FREE_S = 30.0


@dataclass(slots=True)
class Member:
    """A node, the proxy by which the others reach it, and those by which it reaches its log.

    Whoever stops or starts the node holds `lock`, whoever acts on its paths `path_lock`.
    """

    number: int
    node: RegistryNode
    proxy: Proxy
    to_log: list[Proxy]
    lock: threading.Lock = field(default_factory=threading.Lock)
    path_lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class Scene:
    """What a fault can act on. Services that are not ours to break are None."""

    log: str
    log_url: str
    members: list[Member]
    services: Services
    recorder: Recorder
    archive: Archive | None = None
    service_locks: list[threading.Lock] = field(default_factory=lambda: [threading.Lock() for _ in range(3)])

    @property
    def ports(self) -> list[int]:
        """Where clients reach the nodes."""
        return [member.node.port for member in self.members]

    def holder(self) -> Member | None:
        """Return the node that took the pen last, None on logs without one or when it cannot be found out."""
        url = self.archive.holder() if self.archive else None
        return next((member for member in self.members if member.proxy.url == url), None)

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
                    raise RuntimeError(f"node {member.number} was not released by another fault")
                taken.append(member)
            yield taken
        finally:
            for member in taken:
                member.lock.release()

    def close(self) -> None:
        """End the nodes and the proxies."""
        if self.archive is not None:
            self.archive.close()
        for member in self.members:
            if member.node.is_started:
                member.node.send(signal.SIGKILL)
            member.node.stop()
            member.proxy.close()
            for proxy in member.to_log:
                # The paths to the brokers are the services' own, and live on.
                (proxy.close if self.log == "postgres" else proxy.restore)()


@contextmanager
def opened(services: Services, log: str) -> Iterator[Scene]:
    """Start the nodes of a run over a fresh log."""
    url = services.fresh_log(log)
    members = []
    for number in range(NODES[log]):
        proxy = Proxy()
        node_url, to_log = services.path_to(url, number)
        node = RegistryNode(node_url, f"--advertised-url={proxy.url}", start=services.nursery.start)
        proxy.lead_to(node.port)
        members.append(Member(number, node, proxy, to_log))
        set_clock(node.log_file, 0)
    scene = Scene(log, url, members, services, Recorder())
    try:
        # One by one on an empty log: the first one makes it.
        members[0].node.restart()
        scene.archive = Archive(url)
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(lambda member: member.node.restart(), members[1:]))
        yield scene
    finally:
        scene.close()
