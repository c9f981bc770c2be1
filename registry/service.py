"""The service as routes use it: the writer, the settings, and sufficiently fresh reads."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
from strata.registry.health import Health
from strata.registry.lookup import Visible, everything
from strata.registry.parsing import inline_tags, printed
from strata.registry.settings import Reads, Settings
from strata.registry.writer import Writer
from strata.storage.log import Record
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
    _decided: Sequence[Record] = ()

    def for_request(self, access: Access) -> "Service":
        """Return the same node for another request."""
        return Service(self.writer, self.settings, self.cluster_id, self.health, access=access, control=self.control)

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
        self.access.renew(state)
        decision = decide()
        self.access.check_records(decision.records)
        self._decided = decision.records
        return decision

    def _note(self, offset: int) -> None:
        """Note in the audit what the log has."""
        if self.access.on_change is not None:
            self.access.on_change(offset, self._decided)

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
            local = self.settings.reads is Reads.LOCAL
            self.answers_from = self.writer.state if local else await self.writer.catch_up()
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
        state = await self.writer.catch_up()
        self.access.renew(state)
        return state

    def keep(self) -> None:
        """Let the answer be kept until something is deleted."""
        self.lasts = True

    def forget(self) -> None:
        """Keep the answer out of the cache, because it comes from more than State and request."""
        self.answers_from = None


async def _service(request: Request) -> Service:
    return request.scope[SERVICE]  # type: ignore[no-any-return]  # `KeptAnswers` puts it there


ServiceDep = Annotated[Service, Depends(_service)]
