"""Usage as a feature: which versions are still fetched."""

from urllib.parse import urlencode

from strata.registry.api.views.subject import asked_subject
from strata.registry.api.views.view import Page, View
from strata.registry.core.rights.route_rights import on_subject
from strata.registry.core.rights.rules import Operation
from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.usage import routes
from strata.registry.features.usage.fetches import Usage, UsageReports
from strata.registry.features.usage.settings import UsageSettings
from strata.registry.node.setting_types import Switch

__all__ = ["USAGE"]


def _usage_target(page: Page) -> str:
    """Return what the page asks of the API, since one process of the node has counted for all of them."""
    return "/v1/usage?" + urlencode({"subject": asked_subject(page), "deleted": "true"})


def _show_usage(page: Page) -> dict[str, object]:
    usage = page.answered or {}
    return {"name": asked_subject(page), "since": usage.get("since"), "versions": usage.get("versions", [])}


_VIEW = View(
    "/subjects/{subject}/usage", "usage.html", on_subject(Operation.DESCRIBE), _show_usage, asks=_usage_target, place=40
)


def _part(node: Node) -> Part | None:
    if settings_of(node.settings, UsageSettings).usage is Switch.OFF:
        return None
    usage = Usage()
    watch = () if node.link is None else (UsageReports(usage, node.link.report).watch,)
    return Part(watch=watch, keeps=usage, end=usage.end, news=usage.merge)


USAGE = Feature("usage", _part, UsageSettings, (routes.router,), (_VIEW,))
