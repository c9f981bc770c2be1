"""`/`, `/schemas/types` and `/v1/metadata`: facts about the registry itself."""

from fastapi import APIRouter
from fastapi.responses import Response

from strata import __version__
from strata.registry.parsing import schema_types
from strata.registry.routes.parameters import ContextPath, failures
from strata.registry.service import ServiceDep
from strata.registry.transport.context_prefix import context_name
from strata.registry.wire.schemas import answer

__all__ = ["router"]

router = APIRouter(tags=["registry"])


@router.get("/", responses={200: {"model": dict[str, str]}})
async def root() -> Response:
    """Return an empty object: the registry is up."""
    return answer({})


@router.post("/", responses={200: {"model": dict[str, str]}})
async def post_root() -> Response:
    """Return an empty object, as GET does."""
    return answer({})


@router.get("/contexts/{context}", responses={200: {"model": dict[str, str]}, **failures(400)})
async def root_of_context(context: ContextPath) -> Response:
    """Return an empty object, as the root does, because a client's base URL may end in a context."""
    context_name(context)
    return answer({})


@router.post("/contexts/{context}", responses={200: {"model": dict[str, str]}, **failures(400)})
async def post_root_of_context(context: ContextPath) -> Response:
    """Return an empty object, as GET does."""
    context_name(context)
    return answer({})


@router.get("/schemas/types", responses={200: {"model": list[str]}})
async def types() -> Response:
    """List the schema formats that can be registered."""
    return answer(schema_types())


@router.get("/v1/metadata/id", responses={200: {"model": dict[str, dict[str, object]]}})
async def cluster_id(service: ServiceDep) -> Response:
    """Return the names of the log and of the registry."""
    clusters = {"kafka-cluster": service.cluster_id, "schema-registry-cluster": "schema-registry"}
    return answer({"scope": {"path": [], "clusters": clusters}})


@router.get("/v1/metadata/version", responses={200: {"model": dict[str, str]}})
async def version_in_use() -> Response:
    """Return the version of the service."""
    return answer({"version": __version__, "commitId": ""})


@router.get("/v1/metadata/deployment", responses={200: {"model": dict[str, list[str]]}})
async def deployment() -> Response:
    """List the attributes of the deployment, of which there are none."""
    return answer({"attributes": []})
