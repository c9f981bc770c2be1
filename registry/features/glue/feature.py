"""Look-ups by the UUIDs of AWS Glue as a feature."""

from starlette.responses import Response

from strata.registry.api.bodies.schemas import SchemaAnswer, schema_version
from strata.registry.api.parameters import GuidPath
from strata.registry.api.router import Router
from strata.registry.core.lookup import versions_of_glue
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.core.rights.visibility import is_readable
from strata.registry.features.feature import Feature
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.route_facts import Kept

__all__ = ["GLUE"]

router = Router("/v1/glue", "schemas", place=180)


@router.reads("GET", "/{guid}", list[SchemaAnswer], kept=Kept.NO, need=listed(Operation.READ))
async def versions(exchange: ExchangeDep, guid: GuidPath) -> Response:
    """List the versions, soft-deleted ones included, that had this UUID in AWS Glue; usually one."""
    state = await exchange.fresh()
    entries = versions_of_glue(state, guid.lower())
    readable = (entry for entry in entries if is_readable(exchange.access, state, entry.subject, entry.version))
    return answer([schema_version(entry) for entry in readable])


GLUE = Feature("glue", routers=(router,))
