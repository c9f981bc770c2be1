"""The routes of the reference, and those about the registry itself; features have others (`features/feature.py`)."""

from strata.registry.api import (
    batches,
    compatibility,
    config,
    contexts,
    docs,
    guids,
    highest_ids,
    listing,
    log,
    mode,
    probes,
    root,
    schemas,
    scopes,
    subjects,
)

__all__ = ["ROUTERS"]

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
        listing,
        root,
        probes,
        log,
        highest_ids,
        batches,
        scopes,
        docs,
    )
)
"""The groups of routes that belong to no feature."""
