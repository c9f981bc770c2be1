"""What a route works with: the writer, the settings, and reads that are fresh enough."""

from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from compat.limits import Limits
from compat.tags import Tags
from registry.clock import Clock, TimedDecide
from registry.health import Health
from registry.schemas import inline_tags, printed
from registry.settings import Reads, Settings
from registry.writer import Writer
from storage.state import SchemaVersion, State

__all__ = ["Service", "ServiceDep"]

_T = TypeVar("_T")
_NOTHING = State()


@dataclass(frozen=True, slots=True)
class Service:
    """One node of the registry."""

    writer: Writer
    settings: Settings
    cluster_id: str
    health: Health

    @property
    def limits(self) -> Limits:
        """What one request may ask of the parsers and the checks."""
        return self.settings.limits

    @property
    def state(self) -> State:
        """What this node knows now."""
        return self.writer.state

    @property
    def known(self) -> State:
        """What may be answered from memory at once: nothing while the node lags behind a write it has acknowledged."""
        return _NOTHING if self.writer.lags else self.writer.state

    async def text_of(self, entry: SchemaVersion, form: str) -> str:
        """Return a version's text, in one of its format's other forms when one is asked for."""
        if not form:
            return entry.schema.text
        return await self.writer.in_thread(printed, self.writer.state, entry, form)

    async def tags_of(self, entry: SchemaVersion, wanted: list[str]) -> Tags:
        """Return the tagged records and fields of a version that have one of the wanted tags; `*` is any."""
        if not wanted:
            return {}
        state, limits = self.writer.state, self.limits
        found = await self.writer.in_thread(lambda: inline_tags(state, entry, limits.started()))
        return {entity: tags for entity, tags in found.items() if "*" in wanted or not set(wanted).isdisjoint(tags)}

    async def write(self, decide: TimedDecide[_T]) -> _T:
        """Write what takes computing: decide once apart, before the turn, and then within the time that is left.

        Raises:
            RegistryError: as `Writer.write` does; `TooExpensive` when the time is over.
        """
        clock = Clock(decide, self.limits)
        await self.writer.in_time(clock.try_out, self.state)
        return await self.writer.write(clock.decide)

    async def fresh(self) -> State:
        """Return a State with everything that any node had acknowledged before this call (unless reads are local)."""
        if self.settings.reads is Reads.LOCAL:
            return self.writer.state
        return await self.writer.catch_up()


async def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)  # noqa: S101 - set where the app is assembled
    return service


ServiceDep = Annotated[Service, Depends(_service)]
