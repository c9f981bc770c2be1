"""The mechanism of rejected credentials, for the audit and the metrics."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from strata.registry.access.authenticator import certificates_of
from strata.registry.access.basic import InvalidPassword, parse_credentials

__all__ = ["Tried", "tried_by"]


class Tried(NamedTuple):
    """Rejected credentials: the mechanism, and the user that they name if the mechanism is Basic."""

    mechanism: str
    user: str | None = None


def tried_by(scope: Mapping[str, Any]) -> Tried:
    """Return the mechanism of rejected credentials, and the user name of Basic ones.

    An unknown scheme, or Basic credentials without a colon, may be a secret, so neither is returned.
    """
    given = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if given is None:
        return Tried("mtls" if certificates_of(scope) else "proxy")
    scheme, _, credentials = given.partition(b" ")
    if scheme.lower() != b"basic":
        return Tried("bearer" if scheme.lower() == b"bearer" else "other")
    try:
        return Tried("basic", parse_credentials(credentials.strip())[0])
    except InvalidPassword:
        return Tried("basic")
