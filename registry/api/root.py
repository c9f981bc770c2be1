"""`/`, `/schemas/types` and `/v1/metadata`: facts about the registry itself."""

from starlette.responses import Response

from strata import __version__
from strata.registry.api.parameters import ContextPath
from strata.registry.api.router import Router
from strata.registry.core.parsing import schema_types
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.http.bodies import answer
from strata.registry.http.context_prefix import context_name
from strata.registry.http.exchange import ExchangeDep

__all__ = ["router"]

router = Router(tag="registry", place=120)


@router.reads("GET", "/", dict[str, str], needs_log=False, need=OPEN)
async def root() -> Response:
    """Return an empty object: the registry is up."""
    return answer({})


@router.reads("POST", "/", dict[str, str], needs_log=False, need=OPEN)
async def post_root() -> Response:
    """Return an empty object, as GET does."""
    return answer({})


@router.reads("GET", "/contexts/{context}", dict[str, str], (400,), need=OPEN)
async def root_of_context(context: ContextPath) -> Response:
    """Return an empty object, as the root does, because a client's base URL may end in a context."""
    context_name(context)
    return answer({})


@router.reads("POST", "/contexts/{context}", dict[str, str], (400,), need=OPEN)
async def post_root_of_context(context: ContextPath) -> Response:
    """Return an empty object, as GET does."""
    context_name(context)
    return answer({})


@router.reads("GET", "/schemas/types", list[str], needs_log=False, need=OPEN)
async def types() -> Response:
    """List the schema formats that can be registered."""
    return answer(schema_types())


@router.reads("GET", "/v1/metadata/id", dict[str, dict[str, object]], needs_log=False, need=OPEN)
async def cluster_id(exchange: ExchangeDep) -> Response:
    """Return the names of the log and of the registry."""
    clusters = {"kafka-cluster": exchange.service.cluster_id, "schema-registry-cluster": "schema-registry"}
    return answer({"scope": {"path": [], "clusters": clusters}})


@router.reads("GET", "/v1/metadata/version", dict[str, str], needs_log=False, need=OPEN)
async def version_in_use() -> Response:
    """Return the version of the service."""
    return answer({"version": __version__, "commitId": ""})


@router.reads("GET", "/v1/metadata/deployment", dict[str, list[str]], needs_log=False, need=OPEN)
async def deployment() -> Response:
    """List the attributes of the deployment, of which there are none."""
    return answer({"attributes": []})
