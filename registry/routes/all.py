"""All routes of the service."""

from strata.registry.routes import (
    acls,
    associations,
    compatibility,
    config,
    contexts,
    deks,
    guids,
    keks,
    listing,
    log,
    mode,
    pages,
    probes,
    root,
    schemas,
    subjects,
)
from strata.registry.transport.route_facts import RouteTable

__all__ = ["ROUTERS", "ROUTES"]

ROUTERS = tuple(
    module.router
    for module in (
        schemas,
        subjects,
        compatibility,
        config,
        mode,
        guids,
        contexts,
        associations,
        keks,
        deks,
        listing,
        root,
        probes,
        log,
        acls,
        pages,
    )
)
"""The groups of routes, in the order in which they are matched."""

ROUTES = RouteTable(route for router in ROUTERS for route in router.declared)
"""The facts about each route."""
