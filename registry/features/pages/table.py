"""The table of the views that belong to no other feature: a new view is a row, a function, a template."""

from typing import TYPE_CHECKING

from strata.imports import deferred
from strata.registry.api.views.view import Page, View
from strata.registry.core.rights.route_rights import by_id, listed, on_cluster, on_subject, referred_to
from strata.registry.core.rights.rules import Operation
from strata.registry.features.pages.views.configuration import show_configuration, show_scope
from strata.registry.features.pages.views.contexts import show_contexts
from strata.registry.features.pages.views.health import show_health
from strata.registry.features.pages.views.identity import find_schema, show_guid, show_id
from strata.registry.features.pages.views.log import show_log
from strata.registry.features.pages.views.subject import show_subject
from strata.registry.features.pages.views.subjects import show_places, show_subjects
from strata.registry.features.pages.views.version import download_version, show_version

if TYPE_CHECKING:
    from strata.registry.features.pages.views import difference
else:
    difference = deferred("strata.registry.features.pages.views.difference")

__all__ = ["VIEWS"]

_DESCRIBED = listed(Operation.DESCRIBE)

_CONFIGURED = listed(Operation.DESCRIBE_CONFIGS)
_VERSION = "/subjects/{subject}/versions/{version}"
_READ = referred_to(Operation.READ)


def _show_difference(page: Page) -> dict[str, object]:
    return difference.show_difference(page)


VIEWS = (
    View("/subjects", "subjects.html", _DESCRIBED, show_subjects, label="Subjects", place=10),
    View("/subjects/{subject}", "subject.html", on_subject(Operation.DESCRIBE), show_subject, place=20),
    View("/subjects/{subject}/diff", "difference.html", on_subject(Operation.READ), _show_difference, place=30),
    View(_VERSION, "version.html", _READ, show_version, place=50),
    View(f"{_VERSION}/text", "", _READ, download_version, place=60),
    View("/places", "places.html", listed(Operation.READ), show_places, place=70),
    View("/schemas/find", "", _DESCRIBED, find_schema, place=80),
    View("/schemas/ids/{id}", "version.html", by_id(Operation.READ), show_id, place=90),
    View("/schemas/guids/{guid}", "", by_id(Operation.READ), show_guid, place=100),
    View("/contexts", "contexts.html", _DESCRIBED, show_contexts, label="Contexts", place=130),
    View("/settings", "settings.html", _CONFIGURED, show_configuration, label="Settings", place=140),
    View("/settings/{subject}", "scope.html", on_subject(Operation.DESCRIBE_CONFIGS), show_scope, place=150),
    View("/log", "log.html", on_cluster(Operation.DESCRIBE), show_log, label="Log", place=180),
    View("/health", "health.html", on_cluster(Operation.DESCRIBE), show_health, label="Health", place=190),
)
"""The views of this feature."""
