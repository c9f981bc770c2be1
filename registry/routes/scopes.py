"""`/v1/scopes`: the names that have a configuration or a mode of their own, with versions or without."""

from fastapi.responses import Response

from strata.registry.access.needs import listed
from strata.registry.access.rules import Operation, ResourceType
from strata.registry.lookup import page
from strata.registry.routes.parameters import Paging
from strata.registry.routes.router import Router
from strata.registry.service import ServiceDep
from strata.registry.subject_names import GLOBAL_SCOPE
from strata.registry.transport.route_facts import Kept
from strata.registry.wire.json_bodies import answer

__all__ = ["router"]

router = Router("/v1/scopes", "config")


@router.reads("GET", "", list[str], (404,), kept=Kept.NO, need=listed(Operation.DESCRIBE_CONFIGS))
async def scopes(service: ServiceDep, paging: Paging) -> Response:
    """List the subjects and contexts (`:.name:`) with settings of their own, such as names that are only aliases."""
    state, access = await service.fresh(), service.access

    def visible() -> list[str]:
        names = {str(name) for name in (*state.configs, *state.modes) if name not in (None, GLOBAL_SCOPE)}
        return sorted(one for one in names if access.may(Operation.DESCRIBE_CONFIGS, ResourceType.SUBJECT, one))

    return answer(page(await service.writer.in_thread(visible), *paging))
