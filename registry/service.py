"""What all requests to one node share. What one request reads and writes is in its exchange (`http/exchange.py`)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from strata.registry.access.control import AccessControl
from strata.registry.access.logged_rules import logged_rules
from strata.registry.access.rights import Rights
from strata.registry.health import Health
from strata.registry.search.index import SearchIndex
from strata.registry.settings import Settings
from strata.registry.trends import Trends
from strata.registry.usage import Usage
from strata.registry.writer import Writer
from strata.storage.state import State

__all__ = ["NOTHING", "Service"]

NOTHING = State()
"""The State before the first record."""


@dataclass(slots=True)
class Service:
    """One node of the registry.

    Attributes:
        writer: the writer, which holds the State.
        settings: the settings of the service.
        cluster_id: the name of the log in `/v1/metadata/id`.
        health: the health of the node.
        control: access control; None if it is off.
        search: the index behind the search.
        trends: the main figures over time; None without pages.
        scrape: returns all metrics and their media type, given the header `Accept`; None if nothing is counted.
        usage: which versions are fetched from this node; None if that is not counted.
    """

    writer: Writer
    settings: Settings
    cluster_id: str
    health: Health
    control: AccessControl | None = None
    search: SearchIndex = field(default_factory=SearchIndex)
    trends: Trends | None = None
    scrape: Callable[[str], tuple[bytes, str]] | None = None
    usage: Usage | None = None

    def rights(self, state: State) -> Rights:
        """Return the rights of all principals, also while access control is off."""
        return self.control.rights(state) if self.control else Rights(logged_rules(state))

    @property
    def state(self) -> State:
        """The State that this node has in memory."""
        return self.writer.state
