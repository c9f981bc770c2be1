"""The service as routes use it: the writer, the settings, and sufficiently fresh reads."""

from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from strata.compat.limits import Limits
from strata.compat.tags import Tags
from strata.registry.clock import Clock, TimedDecide
from strata.registry.health import Health
from strata.registry.parsing import inline_tags, printed
from strata.registry.settings import Reads, Settings
from strata.registry.writer import Writer
from strata.storage.state import SchemaVersion, State

__all__ = ["SERVICE", "Service", "ServiceDep"]

SERVICE = "strata.service"
"""The name of the service in the scope of a request."""

_T = TypeVar("_T")
_NOTHING = State()


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
    """

    writer: Writer
    settings: Settings
    cluster_id: str
    health: Health
    answers_from: State | None = None
    lasts: bool = False

    def for_request(self) -> "Service":
        """Return the same node for another request."""
        return Service(self.writer, self.settings, self.cluster_id, self.health)

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
        found = await self.writer.in_thread(lambda: inline_tags(state, entry, self.limits.started()))
        return {entity: tags for entity, tags in found.items() if "*" in wanted or not set(wanted).isdisjoint(tags)}

    async def write(self, decide: TimedDecide[_T]) -> _T:
        """Write after a dry run outside the writer's turn, with one clock for both.

        Raises:
            RegistryError: any error of `Writer.write`; `TooExpensive` if the request's time is used up.
        """
        clock = Clock(decide, self.limits)
        await self.writer.in_time(clock.try_out, self.state)
        return await self.writer.write(clock.decide)

    async def fresh(self) -> State:
        """Return a State with every write acknowledged before this request, unless reads are local.

        Further calls return the same State, so that an answer comes from one State alone.

        Raises:
            RegistryError: 50301 if the log cannot be read.
        """
        if self.answers_from is None:
            local = self.settings.reads is Reads.LOCAL
            self.answers_from = self.writer.state if local else await self.writer.catch_up()
        return self.answers_from

    async def fresh_on_miss(self) -> State:
        """Return a State with every write acknowledged before this request, also if reads are local.

        Raises:
            RegistryError: 50301 if the log cannot be read.
        """
        if self.settings.reads is not Reads.LOCAL:
            return await self.fresh()
        self.forget()
        return await self.writer.catch_up()

    def keep(self) -> None:
        """Let the answer be kept until something is deleted."""
        self.lasts = True

    def forget(self) -> None:
        """Keep the answer out of the cache, because it comes from more than State and request."""
        self.answers_from = None


async def _service(request: Request) -> Service:
    return request.scope[SERVICE]  # type: ignore[no-any-return]  # `KeptAnswers` puts it there


ServiceDep = Annotated[Service, Depends(_service)]
