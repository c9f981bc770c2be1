"""`/contexts`: namespaces of subjects and ids."""

from functools import partial
from typing import Annotated

from starlette.responses import Response

from strata.registry.api.parameters import ContextPath, Paging
from strata.registry.api.router import Router
from strata.registry.core.decide.contexts import delete_context
from strata.registry.core.lookup import Visible, page, subjects
from strata.registry.core.rights.route_rights import listed, on_registry
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.http.bodies import answer
from strata.registry.http.context_prefix import context_name
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.storage.records import DEFAULT_CONTEXT
from strata.storage.state import State

__all__ = ["router"]

router = Router("/contexts", "contexts", place=70)


@router.reads(
    "GET", "", list[str], (404,), need=listed(Operation.DESCRIBE, more="empty contexts need DESCRIBE registry")
)
async def contexts(
    exchange: ExchangeDep,
    paging: Paging,
    context_prefix: Annotated[str, Query(alias="contextPrefix", description="the start of the names to list")] = "",
) -> Response:
    """List the contexts; the default one is `.`."""
    state, visible = await exchange.fresh(), exchange.describable
    names = [name for name in state.context_names() if name.startswith(context_prefix)]
    if not exchange.access.may(Operation.DESCRIBE, ResourceType.REGISTRY):
        names = await exchange.service.writer.in_thread(
            lambda: [name for name in names if _shows(state, name, visible)]
        )
    return answer(page(names, *paging))


def _shows(state: State, context: str, visible: Visible) -> bool:
    """Return whether a context has a subject that a request may know of; the default context always exists."""
    within = partial(subjects, state, f":{context}:", include_deleted=True, deleted_only=False, visible=visible)
    return context == DEFAULT_CONTEXT or bool(within(limit=1))


@router.writes("DELETE", "/{context}", None, (400, 42205, 42211), status=204, need=on_registry(Operation.DELETE))
async def delete(exchange: ExchangeDep, context: ContextPath) -> Response:
    """Delete a context that has no subjects left, soft-deleted ones included."""
    name = context_name(context)
    await exchange.change(lambda state: delete_context(state, name))
    return Response(status_code=204)
