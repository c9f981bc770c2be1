"""`/contexts`: the namespaces of subjects and ids."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from registry.lookup import page
from registry.routes.parameters import Limit, Offset, failures
from registry.service import ServiceDep
from registry.wire import answer

__all__ = ["router"]

router = APIRouter(prefix="/contexts", tags=["contexts"])


@router.get("", responses={200: {"model": list[str]}, **failures()})
async def contexts(
    service: ServiceDep,
    context_prefix: Annotated[str, Query(alias="contextPrefix", description="how the names begin")] = "",
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """List the contexts; the default one is `.`."""
    names = sorted(name for name in (await service.fresh()).contexts if name.startswith(context_prefix))
    return answer(page(names, offset, limit))
