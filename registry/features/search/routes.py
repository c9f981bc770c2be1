"""`/v1/search`: names, fields, documentation, tags and metadata of the latest versions."""

from typing import Annotated

from starlette.responses import Response

from strata.registry.api.bodies.contracts import Answer
from strata.registry.api.parameters import Limit, Offset
from strata.registry.api.router import Router
from strata.registry.core import errors
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.features.search.index import Found, SearchIndex
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import ExchangeDep
from strata.registry.http.parameter_marks import Query
from strata.registry.http.route_facts import Kept

__all__ = ["SearchAnswer", "router"]

router = Router("/v1/search", "operations", place=160)
_MOST = 100


class MatchAnswer(Answer):
    """A place of a schema that fits: its kind (`name`, `field`, `doc`, `tag` or `meta`), its path, its text."""

    kind: str
    path: str
    text: str


class HitAnswer(Answer):
    """A version that fits, and the first places that do."""

    subject: str
    version: int
    id: int
    schema_type: str
    matches: list[MatchAnswer]


class SearchAnswer(Answer):
    """A page of hits; `complete` is false while the index is being built, or if the registry is beyond its bounds.

    `partial` names subjects with a schema of so many words that only the first ones were searched, at most 20.
    """

    hits: list[HitAnswer]
    more: bool
    complete: bool
    partial: list[str]


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
    return answer(_content(matches))


def _content(matching: Found) -> dict[str, object]:
    """Return the JSON of a page of hits."""
    return {
        "hits": [
            {
                "subject": hit.entry.subject,
                "version": hit.entry.version,
                "id": hit.entry.schema.schema_id,
                "schemaType": hit.entry.schema.schema_type,
                "matches": [
                    {"kind": match.kind.value, "path": match.path, "text": match.text} for match in hit.matches
                ],
            }
            for hit in matching.hits
        ],
        "more": matching.more,
        "complete": matching.complete,
        "partial": list(matching.partial),
    }
