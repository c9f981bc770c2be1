"""How the service learns who sends a request, as those see it who ask; `features/access` has the mechanisms."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from strata.registry.core.errors import RegistryError, Unauthorized
from strata.registry.core.rights.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from starlette.types import Scope

__all__ = ["Anyone", "Authenticator", "CodeFlow", "KnownUser", "KnownUsers", "SignInFailed", "no_user"]


class SignInFailed(Exception):
    """A sign-in that did not succeed; the message is for the service's own log."""


class Authenticator(Protocol):
    """What says who sends a request."""

    async def authenticate(self, scope: "Scope", /) -> Principal:
        """Return the principal of a request; `ANONYMOUS` if it carries no credentials.

        Raises:
            RegistryError: 401 for invalid credentials, 429 after too many of them.
        """

    def address(self, scope: "Scope", /) -> str:
        """Return the address of the client; empty if it is unknown."""

    def unauthorized(self) -> RegistryError:
        """Return the error for an anonymous client, which names the schemes that it may use."""


class CodeFlow(Protocol):
    """The sign-in of people by an identity provider."""

    async def begin(self, redirect_uri: str) -> tuple[str, dict[str, str]]:
        """Return the address at the provider to send the browser to, and what the browser must keep meanwhile.

        Raises:
            SignInFailed: if the provider does not answer.
        """

    async def finish(self, attempt: dict[str, str], parameters: dict[str, str], redirect_uri: str) -> Principal:
        """Return who has signed in, given what the browser kept and what it brings along.

        Raises:
            SignInFailed: if the person has not signed in.
        """


class HashedPassword(Protocol):
    """The hash of a password, and its salt."""

    @property
    def salt(self) -> bytes:
        """The salt."""

    @property
    def digest(self) -> bytes:
        """The hash."""


class KnownUser(Protocol):
    """A user of the auth file."""

    @property
    def groups(self) -> frozenset[str]:
        """The groups of the user."""

    @property
    def password(self) -> "HashedPassword":
        """The hash of the password, with its `salt` and `digest`."""


KnownUsers = Callable[[str], KnownUser | None]
"""Returns a user of the auth file now in force; None if there is no such user."""


def no_user(_name: str) -> KnownUser | None:
    """Return no user: there is no auth file."""
    return None


class Anyone:
    """An authenticator for a registry without access control: every client is anonymous."""

    async def authenticate(self, _scope: "Scope", /) -> Principal:
        """Return the anonymous principal."""
        return ANONYMOUS

    def address(self, scope: "Scope", /) -> str:
        """Return the address of the client; empty if it is unknown."""
        client = scope.get("client")
        return str(client[0]) if client else ""

    def unauthorized(self) -> RegistryError:
        """Return the error for an anonymous client."""
        return Unauthorized(())
