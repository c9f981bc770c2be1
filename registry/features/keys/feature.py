"""Encryption keys as a feature."""

from strata.registry.api.views.view import View
from strata.registry.core.rights.route_rights import listed, on_kek
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.features.feature import Feature
from strata.registry.features.keys import deks, keks
from strata.registry.features.keys.view import show_key, show_keys

__all__ = ["KEYS"]

_VIEWS = (
    View("/keys", "keys.html", listed(Operation.DESCRIBE, ResourceType.KEK), show_keys, label="Keys", place=160),
    View("/keys/{name}", "key.html", on_kek(Operation.READ), show_key, place=170),
)

KEYS = Feature("keys", routers=(keks.router, deks.router), views=_VIEWS)
