"""Encryption keys as a feature, and their pages."""

from typing import NamedTuple

from strata.registry.api.views.paging import paged
from strata.registry.api.views.view import Page, View
from strata.registry.core import errors
from strata.registry.core.rights.route_rights import listed, on_kek
from strata.registry.core.rights.rules import Operation, ResourceType
from strata.registry.features.feature import Feature
from strata.registry.features.keys import deks, keks
from strata.storage.records import Subject

__all__ = ["KEYS"]


class _Series(NamedTuple):
    """The data encryption keys of a subject for one algorithm."""

    subject: Subject
    algorithm: str
    versions: int
    created: int
    deleted: bool


def show_keys(page: Page) -> dict[str, object]:
    """Return the key encryption keys that the person may know of."""
    keys = page.state.encryption_keys
    seen = (name for name in sorted(keys.keks) if page.access.may(Operation.DESCRIBE, ResourceType.KEK, name))
    shown = paged(page, seen)
    return {"rows": [(name, keys.keks[name], _reads(page, name)) for name in shown.items], "paged": shown}


def show_key(page: Page) -> dict[str, object]:
    """Return a key encryption key and what it encrypts.

    Raises:
        RegistryError: 40470 if there is no such key.
    """
    name, keys = page.names["name"], page.state.encryption_keys
    kek = keys.keks.get(name)
    if kek is None:
        raise errors.key_not_found(name)
    series = sorted(keys.deks.get(name, {}).items())
    shown = paged(page, (row for row in series if page.exchange.describable(row[0][0])))
    rows = [
        _Series(
            subject,
            algorithm,
            len(versions),
            max(dek.created for dek in versions.values()),
            all(dek.deleted for dek in versions.values()),
        )
        for (subject, algorithm), versions in shown.items
    ]
    return {"name": name, "kek": kek, "rows": rows, "paged": shown}


def _reads(page: Page, name: str) -> bool:
    return page.access.may(Operation.READ, ResourceType.KEK, name)


_VIEWS = (
    View("/keys", "keys.html", listed(Operation.DESCRIBE, ResourceType.KEK), show_keys, label="Keys", place=160),
    View("/keys/{name}", "key.html", on_kek(Operation.READ), show_key, place=170),
)

KEYS = Feature("keys", routers=(keks.router, deks.router), views=_VIEWS)
