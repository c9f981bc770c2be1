"""`/v1/search`: names, fields, documentation, tags and metadata of the latest versions."""

from typing import Annotated

from fastapi import Query
from fastapi.responses import Response

from strata.registry.api.parameters import Limit, Offset
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.features.search.bodies import SearchAnswer, search_answer
from strata.registry.features.search.index import SearchIndex
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.json_bodies import answer
from strata.registry.http.route_facts import Kept

__all__ = ["router"]

router = Router("/v1/search", "operations", place=160)
_MOST = 100


@router.reads("GET", "", SearchAnswer, (404,), kept=Kept.NO, need=listed(Operation.READ))
async def search(
    exchange: ExchangeDep,
    query: Annotated[
        str, Query(description="words; `name:`, `field:`, `doc:`, `tag:` or `meta:` before one says where it must be")
    ] = "",
    offset: Offset = 0,
    limit: Limit = 20,
) -> Response:
    """Find the subjects whose latest version has all words; a word also finds words that begin with it."""
    state, visible = await exchange.fresh(), exchange.readable
    most = limit if 0 < limit <= _MOST else _MOST
    index = exchange.service.part(SearchIndex)
    if index is None:
        raise errors.not_found()
    matches = await exchange.service.writer.in_thread(
        lambda: index.find(state, query, visible, offset=max(0, offset), limit=most)
    )
    return answer(search_answer(matches))
