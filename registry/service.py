"""What a route works with: the writer, the settings, and reads that are fresh enough."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from registry.settings import Reads, Settings
from registry.writer import Writer
from storage.state import State

__all__ = ["Service", "ServiceDep"]


@dataclass(frozen=True, slots=True)
class Service:
    """One node of the registry."""

    writer: Writer
    settings: Settings
    cluster_id: str

    @property
    def state(self) -> State:
        """What this node knows now."""
        return self.writer.state

    async def fresh(self) -> State:
        """Return a State with everything that any node had acknowledged before this call (unless reads are local)."""
        if self.settings.reads is Reads.LOCAL:
            return self.writer.state
        return await self.writer.catch_up()


def _service(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)  # noqa: S101 - set where the app is assembled
    return service


async def _service_dep(request: Request) -> Service:
    return _service(request)


ServiceDep = Annotated[Service, Depends(_service_dep)]
