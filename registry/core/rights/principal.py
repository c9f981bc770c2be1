"""The principal: the identity on whose behalf a request acts."""

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["ANONYMOUS", "Principal", "RejectedCredentials"]

_USER, _GROUP = "User:", "Group:"


@dataclass(frozen=True, slots=True)
class Principal:
    """One user with any number of groups, and how the service learned of them.

    Attributes:
        user: the name of the user, without the prefix `User:`; None for an anonymous client.
        groups: the names of the user's groups, without the prefix `Group:`.
        mechanism: how the client proved who it is: `basic`, `bearer`, `mtls`, `proxy` or `none`.
        name: the name in rights, logs and audit lines: `User:NAME`, or `Anonymous`.
    """

    user: str | None
    groups: frozenset[str] = frozenset()
    mechanism: str = "none"
    name: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Name the principal."""
        object.__setattr__(self, "name", "Anonymous" if self.user is None else _USER + self.user)

    @property
    def names(self) -> frozenset[str]:
        """All names for which rights may be granted or denied to this principal."""
        return frozenset({self.name, *(_GROUP + group for group in self.groups)})


class RejectedCredentials(NamedTuple):
    """Rejected credentials: the mechanism, and the user that they name if the mechanism is Basic."""

    mechanism: str
    user: str | None = None


ANONYMOUS = Principal(None)
"""The principal of a request without credentials."""
