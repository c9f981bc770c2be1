"""`/v1/highest-ids`: the highest schema id of a context, which an administrator can lower (docs/decisions/0003)."""

from starlette.requests import Request
from starlette.responses import Response

from strata.registry.api.bodies.operations import HighestIdAnswer, HighestIdChange
from strata.registry.api.parameters import ContextPath
from strata.registry.api.router import Router
from strata.registry.core.decide.highest_id import lower_highest
from strata.registry.core.rights.route_rights import on_cluster
from strata.registry.core.rights.rules import Operation
from strata.registry.http.bodies import answer, read_body
from strata.registry.http.context_prefix import context_name
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.route_facts import Kept

__all__ = ["router"]

router = Router("/v1/highest-ids/{context}", "operations", place=150)


@router.reads("GET", "", HighestIdAnswer, (404,), kept=Kept.NO, need=on_cluster(Operation.DESCRIBE))
async def highest_id(exchange: ExchangeDep, context: ContextPath) -> Response:
    """Return the highest id that a context has assigned, and the highest that one of its versions has."""
    name = context_name(context)
    held = (await exchange.fresh()).context(name)
    return answer(_shown(name, held.high_water, max(held.schemas, default=0)))


@router.writes("PUT", "", HighestIdAnswer, (400, 422, 42205), body=HighestIdChange, need=on_cluster(Operation.ALTER))
async def lower(request: Request, exchange: ExchangeDep, context: ContextPath) -> Response:
    """Lower the highest id of a context, so that ids which no version has any more are assigned again.

    Clients that have seen such an id read another schema under it: choose one above all that were used.
    """
    name, change = context_name(context), await read_body(request, HighestIdChange)
    made = await exchange.change(lambda state: lower_highest(state, name, change.highest_id))
    return answer(_shown(name, made.highest, made.in_use) | {"before": made.before})


def _shown(context: str, highest: int, in_use: int) -> dict[str, object]:
    return {"context": context, "highestId": highest, "highestInUse": in_use}
