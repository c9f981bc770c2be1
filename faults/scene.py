"""The nodes of one run, each behind a proxy for the other nodes and proxies for its log."""

import random
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from faults.archive import Archive
from faults.clients import Recorder
from faults.nursery import set_clock
from faults.proxy import Proxy
from faults.rights import SUPERUSER, credentials
from faults.services import NODES, Services
from harness.registry import RegistryNode

__all__ = ["Member", "Scene", "opened"]

_FREE_S = 120.0


@dataclass(slots=True)
class Member:
    """A node, the proxy by which the others reach it, and the proxies by which it reaches its log.

    A fault that stops or starts the node holds `lock`; a fault of its paths holds `path_lock`.
    """

    number: int
    node: RegistryNode
    proxy: Proxy
    to_log: list[Proxy]
    lock: threading.Lock = field(default_factory=threading.Lock)
    path_lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(slots=True)
class Scene:
    """Everything that a fault can act on. Services that the run may not break are None."""

    log: str
    log_url: str
    members: list[Member]
    services: Services
    recorder: Recorder
    archive: Archive | None = None
    service_locks: list[threading.Lock] = field(default_factory=lambda: [threading.Lock() for _ in range(3)])
    only_read: set[int] = field(default_factory=set)
    """The nodes that clients send no writes to at the moment."""

    @property
    def credentials(self) -> dict[str, str]:
        """The header of a client that may do everything; empty without access control."""
        return credentials(SUPERUSER) if self.services.access else {}

    @property
    def ports(self) -> list[int]:
        """The ports at which clients reach the nodes."""
        return [member.node.port for member in self.members]

    def holder(self) -> Member | None:
        """Return the node that took the pen last, None if the log has no pen or the node is unknown."""
        url = self.archive.holder() if self.archive else None
        return next((member for member in self.members if member.proxy.url == url), None)

    @contextmanager
    def claim(self, rng: random.Random, *, writer: bool = False) -> Iterator[Member | None]:
        """Reserve one node, or the one that writes; yield None if other faults hold all candidates.

        Args:
            rng: selects the node.
            writer: whether to reserve the pen's holder, if it is known.
        """
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
        """Reserve every node, after other faults have released them.

        Raises:
            RuntimeError: another fault did not release a node in time.
        """
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
        """Stop the nodes and close the proxies."""
        if self.archive is not None:
            self.archive.close()
        for member in self.members:
            if member.node.is_started:
                member.node.send(signal.SIGKILL)
            member.node.stop()
            member.proxy.close()
            for proxy in member.to_log:
                # The paths to the brokers belong to the services and are reused.
                (proxy.close if self.log == "postgres" else proxy.restore)()


@contextmanager
def opened(services: Services, log: str, *more: str, leases: Sequence[str] = ()) -> Iterator[Scene]:
    """Start the nodes of a run on a new log, with more options, and each with its read lease, if any are given."""
    url = services.fresh_log(log)
    members = []
    for number in range(NODES[log]):
        proxy = Proxy()
        node_url, to_log = services.path_to(url, number)
        options = [f"--advertised-url={proxy.url}", f"--workers={services.workers}", *services.access_options, *more]
        is_older = services.starts_older(log, number)
        options += [f"--read-lease={leases[number]}"] if leases and not is_older else []
        node = RegistryNode(node_url, *options, start=services.start_older if is_older else services.start)
        proxy.lead_to(node.port)
        members.append(Member(number, node, proxy, to_log))
        set_clock(node.log_file, 0)
    scene = Scene(log, url, members, services, Recorder())
    try:
        # The first node starts alone on the empty log and creates it.
        members[0].node.restart()
        scene.archive = Archive(url)
        with ThreadPoolExecutor(len(members)) as pool:
            list(pool.map(lambda member: member.node.restart(), members[1:]))
        yield scene
    finally:
        scene.close()
