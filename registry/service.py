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

__all__ = ["Service", "ServiceDep"]

_T = TypeVar("_T")
_NOTHING = State()


@dataclass(frozen=True, slots=True)
class Service:
    """One node of the registry.

    Attributes:
        writer: the writer, which holds the State.
        settings: the settings of the service.
        cluster_id: the name of the log in `/v1/metadata/id`.
        health: the health of the node.
    """

    writer: Writer
    settings: Settings
    cluster_id: str
    health: Health

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

    async def text_of(self, entry: SchemaVersion, form: str) -> str:
        """Return the text of a version.

        Args:
            entry: the version.
            form: another form of its format, such as `resolved`; empty means as stored.

        Raises:
            RegistryError: 42201 if the stored schema cannot be printed.
        """
        if not form:
            return entry.schema.text
        return await self.writer.in_thread(printed, self.writer.state, entry, form)

    async def tags_of(self, entry: SchemaVersion, wanted: list[str]) -> Tags:
        """Return the records and fields of a version that have a wanted tag, with their tags.

        Args:
            entry: the version.
            wanted: the wanted tags; `*` means any.

        Raises:
            TooExpensive: if this takes too long.
        """
        if not wanted:
            return {}
        state, limits = self.writer.state, self.limits
        found = await self.writer.in_thread(lambda: inline_tags(state, entry, limits.started()))
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
        """Return a State with every write that any node acknowledged before this call, unless reads are local.

        Raises:
            RegistryError: 50301 if the log cannot be read.
        """
        if self.settings.reads is Reads.LOCAL:
            return self.writer.state
        return await self.writer.catch_up()


async def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)  # noqa: S101 - create_app sets it
    return service


ServiceDep = Annotated[Service, Depends(_service)]
