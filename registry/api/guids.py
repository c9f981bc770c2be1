"""`/schemas/guids`: schemas by GUID, the identity that is the same in every context."""

from starlette.responses import Response

from strata.registry.api.bodies.schemas import ContextIdAnswer, SchemaStringAnswer, schema_string
from strata.registry.api.parameters import Form, GuidPath
from strata.registry.api.router import Router
from strata.registry.core.lookup import ids_of_guid, schema_by_id
from strata.registry.core.rights.route_rights import by_id, listed
from strata.registry.core.rights.rules import Operation
from strata.registry.core.rights.visibility import readable_use, unknown_schema
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import Exchange, ExchangeDep
from strata.storage.state import SchemaVersion, State

__all__ = ["router"]

router = Router("/schemas/guids/{guid}", "schemas", place=60)


@router.reads("GET", "", SchemaStringAnswer, (40403,), need=by_id(Operation.READ, more="in any context"))
async def schema(exchange: ExchangeDep, guid: GuidPath, form: Form = "") -> Response:
    """Return the schema of a GUID, as stored in the first context (by name) that holds it."""
    state = await exchange.fresh()
    if (shown := _shown(exchange, state, guid)) is None:
        state = await exchange.fresh_on_miss()
        shown = _shown(exchange, state, guid)
    if shown is None:
        raise unknown_schema(exchange.access, guid)
    exchange.fetch_id(shown)
    text = await exchange.text_of(state, shown, form)
    return answer(schema_string(shown, named=False, max_id=None, text=text))


@router.reads("GET", "/ids", list[ContextIdAnswer], need=listed(Operation.READ))
async def ids(exchange: ExchangeDep, guid: GuidPath) -> Response:
    """List the contexts that hold a schema, with its id in each."""
    state = await exchange.fresh()
    places = [place for place in ids_of_guid(state, guid) if _use(exchange, state, place) is not None]
    return answer([{"context": context, "id": schema_id} for context, schema_id in places])


def _shown(exchange: Exchange, state: State, guid: str) -> SchemaVersion | None:
    """Return the version to show for a GUID, which the request may read; None if there is none."""
    return next((use for place in ids_of_guid(state, guid) if (use := _use(exchange, state, place)) is not None), None)


def _use(exchange: Exchange, state: State, place: tuple[str, int]) -> SchemaVersion | None:
    """Return a version that uses an id of a context and that the request may read; None if there is none."""
    context, schema_id = place
    known = schema_by_id(state, schema_id, f":{context}:")
    return readable_use(exchange.access, state, *known) if known else None
