"""What all requests to one node share. What one request reads and writes is in its exchange (`exchange.py`)."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast

from strata.registry.core.rights.authentication import Authenticator
from strata.registry.core.rights.logged_rules import logged_rules
from strata.registry.core.rights.request_access import Access, AskedBy
from strata.registry.core.rights.rights import Rights
from strata.registry.core.writer import Writer
from strata.registry.http.node_signature import NodeSecret
from strata.registry.node.health import Health
from strata.registry.node.settings import CoreSettings
from strata.storage.state import State

__all__ = ["NOTHING", "Control", "Service"]

NOTHING = State()
"""The State before the first record."""
_T = TypeVar("_T")


class Control(Protocol):
    """Access control: who sends a request, and what they may do."""

    authenticator: Authenticator

    @property
    def secret(self) -> NodeSecret | None:
        """The secret of the nodes; None if other nodes cannot say who asks."""

    async def admit(self, scope: MutableMapping[str, object], state: State) -> Access:
        """Return the rights of a request, which another node may have forwarded; never raises."""

    def passed_on(self, asked_by: AskedBy, state: State) -> Access:
        """Return the rights of a request whose principal another process of ours has found out."""

    def rights(self, state: State) -> Rights:
        """Return the rights of all principals."""


@dataclass(slots=True)
class Service:
    """One node of the registry.

    Attributes:
        writer: the writer, which holds the State.
        settings: the settings of the service.
        cluster_id: the name of the log in `/v1/metadata/id`.
        health: the health of the node.
        control: access control; None if it is off.
        features: the names of the features that are on.
        parts: what features keep for their own routes, by its type.
    """

    writer: Writer
    settings: CoreSettings
    cluster_id: str
    health: Health
    control: Control | None = None
    features: frozenset[str] = frozenset()
    parts: dict[type, object] = field(default_factory=dict)

    def part(self, of_type: type[_T]) -> _T | None:
        """Return what a feature keeps for its routes; None while it is off."""
        return cast("_T | None", self.parts.get(of_type))

    def rights(self, state: State) -> Rights:
        """Return the rights of all principals, also while access control is off."""
        return self.control.rights(state) if self.control else Rights(logged_rules(state))

    @property
    def state(self) -> State:
        """The State that this node has in memory."""
        return self.writer.state
