"""The mechanism of rejected credentials, for the audit and the metrics."""

from collections.abc import Mapping
from typing import Any

from strata.registry.core.rights.principal import RejectedCredentials
from strata.registry.features.access.authenticator import certificates_of
from strata.registry.features.access.basic import InvalidPassword, parse_credentials

__all__ = ["rejected_credentials"]


def rejected_credentials(scope: Mapping[str, Any]) -> RejectedCredentials:
    """Return the mechanism of rejected credentials, and the user name of Basic ones.

    An unknown scheme, or Basic credentials without a colon, may be a secret, so neither is returned.
    """
    given = next((value for name, value in scope["headers"] if name == b"authorization"), None)
    if given is None:
        return RejectedCredentials("mtls" if certificates_of(scope) else "proxy")
    scheme, _, credentials = given.partition(b" ")
    if scheme.lower() != b"basic":
        return RejectedCredentials("bearer" if scheme.lower() == b"bearer" else "other")
    try:
        return RejectedCredentials("basic", parse_credentials(credentials.strip())[0])
    except InvalidPassword:
        return RejectedCredentials("basic")
