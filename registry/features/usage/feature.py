"""Usage as a feature: which versions are still fetched."""

from strata.registry.api.views.view import View
from strata.registry.core.rights.route_rights import on_subject
from strata.registry.core.rights.rules import Operation
from strata.registry.features.feature import Feature, Node, Part, settings_of
from strata.registry.features.usage import routes
from strata.registry.features.usage.fetches import Usage, UsageReports
from strata.registry.features.usage.settings import UsageSettings
from strata.registry.features.usage.view import show_usage, usage_target
from strata.registry.node.setting_types import Switch

__all__ = ["USAGE"]

_VIEW = View(
    "/subjects/{subject}/usage", "usage.html", on_subject(Operation.DESCRIBE), show_usage, asks=usage_target, place=40
)


def _part(node: Node) -> Part | None:
    if settings_of(node.settings, UsageSettings).usage is Switch.OFF:
        return None
    usage = Usage()
    watch = () if node.link is None else (UsageReports(usage, node.link.report).watch,)
    return Part(watch=watch, keeps=usage, end=usage.end, news=usage.merge)


USAGE = Feature("usage", _part, UsageSettings, (routes.router,), (_VIEW,))
