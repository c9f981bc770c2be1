"""The search as a feature."""

from strata.registry.api.views.view import View
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.features.feature import Feature, Node, Part
from strata.registry.features.search import routes
from strata.registry.features.search.index import SearchIndex
from strata.registry.features.search.view import show_search

__all__ = ["SEARCH"]

_VIEW = View("/search", "search.html", listed(Operation.READ), show_search, label="Search", place=110)


def _part(_node: Node) -> Part:
    return Part(keeps=SearchIndex())


SEARCH = Feature("search", _part, routers=(routes.router,), views=(_VIEW,))
