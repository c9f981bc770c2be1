"""The search as a feature."""

from strata.registry.api.views.addresses import page_address
from strata.registry.api.views.view import Page, View
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.features.feature import Feature, Node, Part
from strata.registry.features.search import routes
from strata.registry.features.search.index import SearchIndex

__all__ = ["SEARCH"]

_PER_PAGE = 20
_KINDS = {"name": "name", "field": "field", "doc": "documentation", "tag": "tag", "meta": "metadata"}


def _show_search(page: Page) -> dict[str, object]:
    """Return a page of the versions that fit a query."""
    query, number = page.text("query"), page.number("page", 1)
    offset = (number - 1) * _PER_PAGE
    index = page.exchange.service.part(SearchIndex) or SearchIndex()
    matching = index.find(page.state, query, page.exchange.readable, offset=offset, limit=_PER_PAGE)
    return {
        "query": query,
        "found": matching,
        "kinds": _KINDS,
        "number": number,
        "before": page_address("search", query=query, page=number - 1) if number > 1 else None,
        "after": page_address("search", query=query, page=number + 1) if matching.more else None,
    }


_VIEW = View("/search", "search.html", listed(Operation.READ), _show_search, label="Search", place=110)


def _part(_node: Node) -> Part:
    return Part(keeps=SearchIndex())


SEARCH = Feature("search", _part, routers=(routes.router,), views=(_VIEW,))
