"""Which versions are still fetched, by whom and when last: what a version can be retired on.

Everything is kept in memory and bounded: the clients of all versions together, and one number for each version whose
clients no longer fit. A client is the `User-Agent` that it sends, and its user if access control is on.

Only the event loop calls this. The workers of a node send what they counted to the one that writes (`UsageReports`).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, TypeVar

from strata.registry.http.exchange import Exchange, Fetched

__all__ = ["Client", "Counted", "Seen", "Usage", "UsageReports"]

_MOST_CLIENTS = 20_000
_MOST_ITEMS = 50_000
_SHARE = 10  # of the entries, one in so many gives way at once: looking for the oldest takes a look at all
_LONGEST = 120
_OK = 200
_EVERY_S = 2.0


class Client(NamedTuple):
    """Who fetches: the program as it names itself, and the user; None without access control."""

    agent: str
    user: str | None


class Seen(NamedTuple):
    """How often something was fetched, and when last, in seconds since the epoch."""

    times: int
    last: float

    def plus(self, other: "Seen") -> "Seen":
        """Return both together."""
        return Seen(self.times + other.times, max(self.last, other.last))


class Counted(NamedTuple):
    """What was counted of a version or an id: each client, and those that are no longer known together."""

    clients: dict[Client, Seen]
    others: Seen


_Entry = tuple[Fetched, bytes, str | None]

_KeyT = TypeVar("_KeyT")
Taken = tuple[Fetched, bytes | None, str | None, float, float]
"""What is counted of an item, as plain values: the item, the client's agent and user, how often, and when last."""


class Usage:
    """What was fetched from one process, or from all processes of a node.

    Args:
        most_clients: the most pairs of what was fetched and who fetched it.
        most_items: the most versions and ids of which only the number of fetches is known.
        now: the clock, in seconds since the epoch.
    """

    def __init__(
        self,
        *,
        most_clients: int = _MOST_CLIENTS,
        most_items: int = _MOST_ITEMS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._most_clients, self._most_items, self._now = most_clients, most_items, now
        self._entries: dict[_Entry, list[float]] = {}
        self._others: dict[Fetched, list[float]] = {}
        self.since = now()
        self.forgotten = 0
        """How many versions and ids were forgotten as a whole."""

    def note(self, fetched: Fetched, agent: bytes, user: str | None) -> None:
        """Count that a client has fetched something."""
        agent = agent[:_LONGEST]
        entry = self._entries.get((fetched, agent, user))
        if entry is None:
            self._add(fetched, agent, user, 1, self._now())
        else:
            entry[0] += 1
            entry[1] = self._now()

    def end(self, exchange: Exchange) -> None:
        """Count what a request has fetched, once it has its answer."""
        if exchange.fetched is not None and exchange.status == _OK:
            agent, user = exchange.headers.get(b"user-agent", b""), exchange.access.principal.user
            self.note(exchange.fetched, agent, user)

    def take(self) -> list[Taken]:
        """Return all that was counted, as plain values for `merge`, and start from zero."""
        taken: list[Taken] = [(*entry, seen[0], seen[1]) for entry, seen in self._entries.items()]
        taken += [(fetched, None, None, seen[0], seen[1]) for fetched, seen in self._others.items()]
        self._entries, self._others = {}, {}
        return taken

    def merge(self, taken: Iterable[Taken]) -> None:
        """Add what another process has counted."""
        for fetched, agent, user, count, last in taken:
            if agent is None:
                _add(self._others, fetched, count, last)
                self._bound_others()
            else:
                self._add(fetched, agent, user, count, last)

    def by_item(self) -> dict[Fetched, "Counted"]:
        """Return what was counted of each version and id."""
        counted: dict[Fetched, Counted] = {}
        for (item, agent, user), (count, last) in self._entries.items():
            clients = counted.setdefault(item, Counted({}, Seen(0, 0.0))).clients
            clients[Client(agent.decode("latin-1"), user)] = Seen(int(count), last)
        for item, (count, last) in self._others.items():
            known = counted.get(item)
            counted[item] = Counted(known.clients if known else {}, Seen(int(count), last))
        return counted

    def _add(self, fetched: Fetched, agent: bytes, user: str | None, count: float, last: float) -> None:
        _add(self._entries, (fetched, agent, user), count, last)
        if len(self._entries) > self._most_clients:
            for (item, _, _), seen in _oldest(self._entries):
                _add(self._others, item, *seen)
            self._bound_others()

    def _bound_others(self) -> None:
        while len(self._others) > self._most_items:
            self.forgotten += len(_oldest(self._others))


def _add(counts: dict[_KeyT, list[float]], key: _KeyT, count: float, last: float) -> None:
    seen = counts.setdefault(key, [0, 0.0])
    seen[0] += count
    seen[1] = max(seen[1], last)


def _oldest(counts: dict[_KeyT, list[float]]) -> list[tuple[_KeyT, list[float]]]:
    """Remove and return the part of the counts that has not moved for longest."""
    oldest = sorted(counts.items(), key=lambda item: item[1][1])[: max(1, len(counts) // _SHARE)]
    for key, _ in oldest:
        del counts[key]
    return oldest


class UsageReports:
    """Sends what this worker has counted to the worker that writes, which answers for the node.

    Args:
        usage: what this worker has counted.
        send: sends plain values to the other worker; raises if it is not there.
    """

    def __init__(self, usage: Usage, send: Callable[[object], Awaitable[object]]) -> None:
        self._usage, self._send = usage, send

    async def watch(self) -> None:
        """Send every two seconds, until cancelled; what cannot be sent waits."""
        while True:
            await asyncio.sleep(_EVERY_S)
            taken = self._usage.take()
            try:
                if taken:
                    await self._send(taken)
            except Exception:  # noqa: BLE001 - the worker that writes is being replaced
                self._usage.merge(taken)
