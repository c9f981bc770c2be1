"""`/schemas/guids`: schemas by GUID, the identity that is the same in every context."""

from fastapi.responses import Response

from strata.registry import errors
from strata.registry.access.needs import by_id, listed
from strata.registry.access.rules import Operation
from strata.registry.lookup import ids_of_guid, schema_by_id
from strata.registry.routes.parameters import Form, GuidPath
from strata.registry.routes.router import Router
from strata.registry.service import ServiceDep
from strata.registry.wire.json_bodies import answer
from strata.registry.wire.schemas import ContextIdAnswer, SchemaStringAnswer, schema_string

__all__ = ["router"]

router = Router("/schemas/guids/{guid}", "schemas")


@router.reads("GET", "", SchemaStringAnswer, (40403,), need=by_id(Operation.READ, more="in any context"))
async def schema(service: ServiceDep, guid: GuidPath, form: Form = "") -> Response:
    """Return the schema of a GUID, as stored in the first context (by name) that holds it."""
    state = await service.fresh()
    if not (ids := ids_of_guid(state, guid)):
        state = await service.fresh_on_miss()
        ids = ids_of_guid(state, guid)
    if not ids:
        raise errors.schema_not_found(guid)
    context, schema_id = ids[0]
    found = schema_by_id(state, schema_id, f":{context}:")
    if found is None:
        raise errors.schema_not_found(guid)
    text = await service.text_of(state, found[1], form)
    return answer(schema_string(found[1], named=False, max_id=None, text=text))


@router.reads("GET", "/ids", list[ContextIdAnswer], need=listed(Operation.READ))
async def ids(service: ServiceDep, guid: GuidPath) -> Response:
    """List the contexts that hold a schema, with its id in each."""
    found = ids_of_guid(await service.fresh(), guid)
    return answer([{"context": context, "id": schema_id} for context, schema_id in found])
