"""`/schemas`: every version of every subject, a page at a time."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from registry.lookup import page, schemas
from registry.routes.parameters import Deleted, Limit, Offset, failures
from registry.service import ServiceDep
from registry.wire import Flag, SchemaAnswer, answer, schema_version

__all__ = ["router"]

router = APIRouter(prefix="/schemas", tags=["schemas"])
_MOST = 1000


@router.get("", responses={200: {"model": list[SchemaAnswer]}, **failures()})
async def all_schemas(
    service: ServiceDep,
    subject_prefix: Annotated[
        str, Query(alias="subjectPrefix", description="blank: the default context, `:*:`: every one")
    ] = "",
    deleted: Deleted = False,
    latest_only: Annotated[Flag, Query(alias="latestOnly", description="the newest version of each subject")] = False,
    offset: Offset = 0,
    limit: Limit = -1,
) -> Response:
    """List versions by subject and version, at most 1000 at a time."""
    found = schemas(await service.fresh(), subject_prefix, include_deleted=deleted, latest_only=latest_only)
    taken = page(found, offset, limit if 0 < limit <= _MOST else _MOST)
    return answer([schema_version(entry) for entry in taken])
