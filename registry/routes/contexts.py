"""`/contexts`: namespaces of subjects and ids."""

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from strata.registry.access.needs import listed, on_registry
from strata.registry.access.rules import Operation
from strata.registry.decide.contexts import delete_context
from strata.registry.lookup import page
from strata.registry.routes.parameters import ContextPath, Limit, Offset
from strata.registry.routes.router import Router
from strata.registry.service import ServiceDep
from strata.registry.transport.context_prefix import context_name
from strata.registry.wire.json_bodies import answer

__all__ = ["router"]

router = Router("/contexts", "contexts")


@router.reads(
    "GET", "", list[str], (404,), need=listed(Operation.DESCRIBE, more="empty contexts need DESCRIBE registry")
)
async def contexts(
    service: ServiceDep,
    context_prefix: Annotated[str, Query(alias="contextPrefix", description="the start of the names to list")] = "",
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """List the contexts; the default one is `.`."""
    names = [name for name in (await service.fresh()).context_names() if name.startswith(context_prefix)]
    return answer(page(names, offset, limit))


@router.writes("DELETE", "/{context}", None, (400, 42205, 42211), status=204, need=on_registry(Operation.DELETE))
async def delete(
    service: ServiceDep,
    context: ContextPath,
) -> Response:
    """Delete a context that has no subjects left, soft-deleted ones included."""
    name = context_name(context)
    await service.writer.write(lambda state: delete_context(state, name))
    return Response(status_code=204)
