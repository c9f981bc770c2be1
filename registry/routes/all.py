"""All routes of the service."""

from strata.registry.http.route_facts import RouteTable
from strata.registry.routes import (
    acls,
    associations,
    batches,
    compatibility,
    config,
    contexts,
    deks,
    docs,
    exporters,
    glue,
    guids,
    highest_ids,
    keks,
    listing,
    log,
    metrics,
    mode,
    probes,
    root,
    schemas,
    scopes,
    search,
    subjects,
    usage,
)

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
        highest_ids,
        search,
        batches,
        glue,
        scopes,
        metrics,
        usage,
        exporters,
        acls,
        docs,
    )
)
"""The groups of routes, in the order in which they are matched."""

ROUTES = RouteTable(route for router in ROUTERS for route in router.declared)
"""The facts about each route."""
