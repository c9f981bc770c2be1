"""`/v1/glue`: versions that came from AWS Glue, by the UUID in the frames of its records (transfer/glue_source.py)."""

from fastapi.responses import Response

from strata.registry.access.needs import listed
from strata.registry.access.rules import Operation
from strata.registry.access.visibility import is_readable
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.route_facts import Kept
from strata.registry.lookup import versions_of_glue
from strata.registry.routes.parameters import GuidPath
from strata.registry.routes.router import Router
from strata.registry.wire.json_bodies import answer
from strata.registry.wire.schemas import SchemaAnswer, schema_version

__all__ = ["router"]

router = Router("/v1/glue", "schemas")


@router.reads("GET", "/{guid}", list[SchemaAnswer], kept=Kept.NO, need=listed(Operation.READ))
async def versions(exchange: ExchangeDep, guid: GuidPath) -> Response:
    """List the versions, soft-deleted ones included, that had this UUID in AWS Glue; usually one."""
    state = await exchange.fresh()
    found = versions_of_glue(state, guid.lower())
    readable = (one for one in found if is_readable(exchange.access, state, one.subject, one.version))
    return answer([schema_version(one) for one in readable])
