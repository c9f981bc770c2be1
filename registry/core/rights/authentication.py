"""How the service learns who sends a request, as those see it who ask; `features/access` has the mechanisms."""

from collections.abc import Callable, MutableMapping
from typing import Any, Protocol

from strata.registry.core.errors import RegistryError, Unauthorized
from strata.registry.core.rights.principal import ANONYMOUS, Principal

__all__ = ["Anyone", "Authenticator", "CodeFlow", "KnownUser", "KnownUsers", "SignInFailed", "no_user"]


class SignInFailed(Exception):
    """A sign-in that did not succeed; the message is for the service's own log."""


class Authenticator(Protocol):
    """What says who sends a request."""

    async def authenticate(self, scope: MutableMapping[str, Any], /) -> Principal:
        """Return the principal of a request; `ANONYMOUS` if it carries no credentials.

        Raises:
            RegistryError: 401 for invalid credentials, 429 after too many of them.
        """

    def address(self, scope: MutableMapping[str, Any], /) -> str:
        """Return the address of the client; empty if it is unknown."""

    def unauthorized(self) -> RegistryError:
        """Return the error for an anonymous client, which names the schemes that it may use."""


class CodeFlow(Protocol):
    """The sign-in of people by an identity provider."""

    async def begin(self, redirect_uri: str) -> tuple[str, Any]:
        """Return the address at the provider to send the browser to, and what the browser must keep meanwhile.

        Raises:
            SignInFailed: if the provider does not answer.
        """

    async def finish(self, attempt: Any, parameters: dict[str, str], redirect_uri: str) -> Principal:
        """Return who has signed in, given what the browser kept and what it brings along.

        Raises:
            SignInFailed: if the person has not signed in.
        """


class KnownUser(Protocol):
    """A user of the auth file."""

    @property
    def groups(self) -> frozenset[str]:
        """The groups of the user."""

    @property
    def password(self) -> Any:
        """The hash of the password, with its `salt` and `digest`."""


KnownUsers = Callable[[str], KnownUser | None]
"""Returns a user of the auth file now in force; None if there is no such user."""


def no_user(_name: str) -> KnownUser | None:
    """Return no user: there is no auth file."""
    return None


class Anyone:
    """An authenticator for a registry without access control: every client is anonymous."""

    async def authenticate(self, _scope: MutableMapping[str, Any], /) -> Principal:
        """Return the anonymous principal."""
        return ANONYMOUS

    def address(self, scope: MutableMapping[str, Any], /) -> str:
        """Return the address of the client; empty if it is unknown."""
        client = scope.get("client")
        return str(client[0]) if client else ""

    def unauthorized(self) -> RegistryError:
        """Return the error for an anonymous client."""
        return Unauthorized(())
