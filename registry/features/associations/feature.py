"""Associations as a feature."""

from strata.registry.features.associations import routes
from strata.registry.features.feature import Feature

__all__ = ["ASSOCIATIONS"]

ASSOCIATIONS = Feature("associations", routers=(routes.router,))
