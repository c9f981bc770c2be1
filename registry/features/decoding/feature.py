"""The decoding of one record as a feature."""

from typing import TYPE_CHECKING

from strata.imports import deferred
from strata.registry.api.views.view import Page, View
from strata.registry.core.rights.route_rights import listed
from strata.registry.core.rights.rules import Operation
from strata.registry.features.feature import Feature

if TYPE_CHECKING:
    from strata.registry.features.decoding import view
else:
    view = deferred("strata.registry.features.decoding.view")

__all__ = ["DECODING"]


def _show_decoding(page: Page) -> dict[str, object]:
    return view.show_decoding(page)


_VIEW = View(
    "/decode", "decoding.html", listed(Operation.READ), _show_decoding, label="Decode", takes_form=True, place=120
)

DECODING = Feature("decoding", views=(_VIEW,))
