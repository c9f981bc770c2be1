"""The table of views: one row per page, in the order of the navigation. A new view is a row, a function, a template."""

from strata.registry.access.needs import by_id, listed, on_cluster, on_kek, on_subject, referred_to
from strata.registry.access.rules import Operation, ResourceType
from strata.registry.pages.view import View
from strata.registry.pages.views.configuration import show_configuration, show_scope
from strata.registry.pages.views.contexts import show_contexts
from strata.registry.pages.views.decoding import show_decoding
from strata.registry.pages.views.difference import show_difference
from strata.registry.pages.views.health import show_health
from strata.registry.pages.views.identity import find_schema, show_guid, show_id
from strata.registry.pages.views.keys import show_key, show_keys
from strata.registry.pages.views.log import show_log
from strata.registry.pages.views.search import show_search
from strata.registry.pages.views.subject import show_subject
from strata.registry.pages.views.subjects import show_places, show_subjects
from strata.registry.pages.views.usage import show_usage, usage_target
from strata.registry.pages.views.version import download_version, show_version

__all__ = ["VIEWS"]

_DESCRIBED = listed(Operation.DESCRIBE)

_CONFIGURED = listed(Operation.DESCRIBE_CONFIGS)
_VERSION = "/subjects/{subject}/versions/{version}"
_READ = referred_to(Operation.READ)

VIEWS = (
    View("/subjects", "subjects.html", _DESCRIBED, show_subjects, label="Subjects"),
    View("/subjects/{subject}", "subject.html", on_subject(Operation.DESCRIBE), show_subject),
    View("/subjects/{subject}/diff", "difference.html", on_subject(Operation.READ), show_difference),
    View("/subjects/{subject}/usage", "usage.html", on_subject(Operation.DESCRIBE), show_usage, asks=usage_target),
    View(_VERSION, "version.html", _READ, show_version),
    View(f"{_VERSION}/text", "", _READ, download_version),
    View("/places", "places.html", listed(Operation.READ), show_places),
    View("/schemas/find", "", _DESCRIBED, find_schema),
    View("/schemas/ids/{id}", "version.html", by_id(Operation.READ), show_id),
    View("/schemas/guids/{guid}", "", by_id(Operation.READ), show_guid),
    View("/search", "search.html", listed(Operation.READ), show_search, label="Search"),
    View("/decode", "decoding.html", listed(Operation.READ), show_decoding, label="Decode", takes_form=True),
    View("/contexts", "contexts.html", _DESCRIBED, show_contexts, label="Contexts"),
    View("/settings", "settings.html", _CONFIGURED, show_configuration, label="Settings"),
    View("/settings/{subject}", "scope.html", on_subject(Operation.DESCRIBE_CONFIGS), show_scope),
    View("/keys", "keys.html", listed(Operation.DESCRIBE, ResourceType.KEK), show_keys, label="Keys"),
    View("/keys/{name}", "key.html", on_kek(Operation.READ), show_key),
    View("/log", "log.html", on_cluster(Operation.DESCRIBE), show_log, label="Log"),
    View("/health", "health.html", on_cluster(Operation.DESCRIBE), show_health, label="Health"),
)
"""All views."""
