"""Look-ups by the UUIDs of AWS Glue as a feature."""

from strata.registry.features.feature import Feature
from strata.registry.features.glue import routes

__all__ = ["GLUE"]

GLUE = Feature("glue", routers=(routes.router,))
