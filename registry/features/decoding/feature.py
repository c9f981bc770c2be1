"""The decoding of one record as a feature."""

from strata.registry.api.views.view import View
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.features.decoding.view import show_decoding
from strata.registry.features.feature import Feature

__all__ = ["DECODING"]

_VIEW = View(
    "/decode", "decoding.html", listed(Operation.READ), show_decoding, label="Decode", takes_form=True, place=120
)

DECODING = Feature("decoding", views=(_VIEW,))
