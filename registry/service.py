"""The service as routes use it: the writer, the settings, and sufficiently fresh reads."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from strata.compat.limits import Limits, NotAtOnce
from strata.compat.tags import Tags
from strata.registry.access.control import AccessControl
from strata.registry.access.logged_rules import logged_rules
from strata.registry.access.request_access import UNLIMITED, Access
from strata.registry.access.rights import Rights
from strata.registry.access.rules import Operation, ResourceType
from strata.registry.clock import Clock, TimedDecide
from strata.registry.decide.decision import Decide, Decision
from strata.registry.decide.standby import decided
from strata.registry.health import Health
from strata.registry.lookup import Visible, everything
from strata.registry.parsing import inline_tags, printed
from strata.registry.search.index import SearchIndex
from strata.registry.settings import Reads, Settings
from strata.registry.tracing import RequestSpans
from strata.registry.trends import Trends
from strata.registry.usage import Fetched, Usage
from strata.registry.writer import Writer
from strata.storage.log import Record
from strata.storage.records import context_of
from strata.storage.state import SchemaVersion, State

__all__ = ["SERVICE", "Service", "ServiceDep"]

SERVICE = "strata.service"
"""The name of the service in the scope of a request."""

_T = TypeVar("_T")
_NOTHING = State()
_SMALL_BYTES = 16 << 10


@dataclass(slots=True)
class Service:
    """One node of the registry as one request uses it.

    Attributes:
        writer: the writer, which holds the State.
        settings: the settings of the service.
        cluster_id: the name of the log in `/v1/metadata/id`.
        health: the health of the node.
        answers_from: the State that the whole answer is computed from; None if it may come from several, or from more
            than State and request.
        lasts: whether the answer stays the same until something is deleted.
        body_bytes: the size of the request's body; None if it is not known.
        access: what the principal of the request may do.
        control: access control; None if it is off.
        search: the index behind the search.
        usage: which versions are fetched from this node; None if that is not counted.
        fetched: the version or id whose schema the answer holds.
        trends: the main figures over time; None without pages.
        scrape: returns all metrics and their media type, given the header `Accept`; None if nothing is counted.
        spans: the spans of the request; None while tracing is off.
    """

    writer: Writer
    settings: Settings
    cluster_id: str
    health: Health
    answers_from: State | None = None
    lasts: bool = False
    body_bytes: int | None = None
    access: Access = UNLIMITED
    control: AccessControl | None = None
    search: SearchIndex = field(default_factory=SearchIndex)
    trends: Trends | None = None
    scrape: Callable[[str], tuple[bytes, str]] | None = None
    spans: RequestSpans | None = None
    usage: Usage | None = None
    fetched: Fetched | None = None
    _decided: Sequence[Record] = ()
    _decided_on: State = _NOTHING
    _decided_at: int = 0

    def for_request(self, access: Access, spans: RequestSpans | None = None) -> "Service":
        """Return the same node for another request."""
        return Service(
            self.writer,
            self.settings,
            self.cluster_id,
            self.health,
            access=access,
            control=self.control,
            search=self.search,
            trends=self.trends,
            scrape=self.scrape,
            usage=self.usage,
            spans=spans,
        )

    def rights(self, state: State) -> Rights:
        """Return the rights of all principals, also while access control is off."""
        return self.control.rights(state) if self.control else Rights(logged_rules(state))

    @property
    def readable(self) -> Visible:
        """Which subjects the request may read."""
        return everything if self.access.is_unlimited else self.access.reads

    @property
    def describable(self) -> Visible:
        """Which subjects the request may know of."""
        return everything if self.access.is_unlimited else self.access.describes

    @property
    def limits(self) -> Limits:
        """The limits on schemas in one request."""
        return self.settings.limits

    @property
    def state(self) -> State:
        """The State that this node has in memory."""
        return self.writer.state

    @property
    def known(self) -> State:
        """The State for answers from memory: empty while the node has not read a write that it acknowledged."""
        return _NOTHING if self.writer.lags else self.writer.state

    async def text_of(self, state: State, entry: SchemaVersion, form: str) -> str:
        """Return the text of a version.

        Args:
            state: the State that holds the version.
            entry: the version.
            form: another form of its format, such as `resolved`; empty means as stored.

        Raises:
            RegistryError: 42201 if the stored schema cannot be printed.
        """
        if not form:
            return entry.schema.text
        return await self.writer.in_thread(printed, state, entry, form)

    async def tags_of(self, state: State, entry: SchemaVersion, wanted: list[str]) -> Tags:
        """Return the records and fields of a version that have a wanted tag, with their tags.

        Args:
            state: the State that holds the version.
            entry: the version.
            wanted: the wanted tags; `*` means any.

        Raises:
            TooExpensive: if this takes too long.
        """
        if not wanted:
            return {}
        found = await self.computed(partial(inline_tags, state, entry))
        return {entity: tags for entity, tags in found.items() if "*" in wanted or not set(wanted).isdisjoint(tags)}

    async def computed(self, work: Callable[[Limits], _T]) -> _T:
        """Return the result of a computation that looks at the clock of the limits that it gets.

        A small request is computed at once, because passing it to a thread and back costs as much as most of them. If
        that takes more than a moment, a thread starts again.

        Raises:
            RegistryError: any error of `work`.
        """
        with self._timed("check"):
            if self._is_small:
                with suppress(NotAtOnce):
                    return work(self.limits.briefly())
            return await self.writer.in_thread(lambda: work(self.limits.started()))

    async def require(self, operation: Operation, kind: ResourceType, name: str) -> None:
        """Check a right that is not in the path of the request.

        Raises:
            RegistryError: 40301, or 401 if an anonymous client must say who it is.
        """
        await self.access.reconsider(partial(self.access.check, operation, kind, name), self.writer.catch_up)

    async def change(self, decide: Decide[_T]) -> _T:
        """Write what a decision writes, if the request has the rights for it on the State that it is decided on.

        Raises:
            RegistryError: any error of `Writer.write`; 40301 if a right is missing or was revoked.
        """
        return await self.writer.write(lambda state: self._permitted(state, lambda: decide(state)), self._note)

    async def write(self, decide: TimedDecide[_T]) -> _T:
        """Write as `change` does; one clock counts the time of all decisions.

        A small request is decided in its turn, if that takes no more than a moment. Else a dry run outside the writer's
        turn comes first.

        Raises:
            RegistryError: any error of `change`; `TooExpensive` if the request's time is used up.
        """
        clock = Clock(lambda state, limits: self._permitted(state, lambda: decide(state, limits)), self.limits)
        if self._is_small:
            with suppress(NotAtOnce):
                return await self.writer.write(clock.decide_briefly, self._note)
        await self.writer.in_time(clock.try_out, self.state)
        return await self.writer.write(clock.decide, self._note)

    def _permitted(self, state: State, decide: Callable[[], Decision[_T]]) -> Decision[_T]:
        began = time.time_ns()
        self.access.renew(state)
        decision = decided(state, decide)
        self.access.check_records(decision.records)
        self._decided, self._decided_on = decision.records, state
        if self.spans is not None:
            self._decided_at = time.time_ns()
            self.spans.add("decide", began, self._decided_at)
        return decision

    def _timed(self, name: str) -> AbstractContextManager[None]:
        """Make a block a span of the trace, if there is one."""
        return nullcontext() if self.spans is None else self.spans.timed(name)

    def _note(self, offset: int) -> None:
        """Note what the log has."""
        if self.spans is not None:
            self.spans.add("log append", self._decided_at, time.time_ns())
        if self.access.on_change is not None:
            self.access.on_change(offset, self._decided, self._decided_on)

    @property
    def _is_small(self) -> bool:
        return self.body_bytes is not None and self.body_bytes <= _SMALL_BYTES

    async def fresh(self) -> State:
        """Return a State with every write acknowledged before this request, unless reads are local.

        Further calls return the same State, so that an answer comes from one State alone.

        Raises:
            RegistryError: 50301 if the log cannot be read; 40301 if the newest rules refuse the request.
        """
        if self.answers_from is None:
            if self.settings.reads is Reads.LOCAL:
                self.answers_from = self.writer.state
            else:
                with self._timed("log read"):
                    self.answers_from = await self.writer.catch_up()
            self.access.renew(self.answers_from)
        return self.answers_from

    async def fresh_on_miss(self) -> State:
        """Return a State with every write acknowledged before this request, also if reads are local.

        Raises:
            RegistryError: 50301 if the log cannot be read.
        """
        if self.settings.reads is not Reads.LOCAL:
            return await self.fresh()
        self.forget()
        with self._timed("log read"):
            state = await self.writer.catch_up()
        self.access.renew(state)
        return state

    def fetch(self, entry: SchemaVersion) -> None:
        """Record that the answer holds the schema of a version."""
        self.fetched = "version", entry.subject, entry.version

    def fetch_id(self, entry: SchemaVersion) -> None:
        """Record that the answer holds the schema of an id that a version uses."""
        self.fetched = "id", context_of(entry.subject), entry.schema.schema_id

    def keep(self) -> None:
        """Let the answer be kept until something is deleted."""
        self.lasts = True

    def forget(self) -> None:
        """Keep the answer out of the cache, because it comes from more than State and request."""
        self.answers_from = None


async def _service(request: Request) -> Service:
    return request.scope[SERVICE]  # type: ignore[no-any-return]  # `KeptAnswers` puts it there


ServiceDep = Annotated[Service, Depends(_service)]
