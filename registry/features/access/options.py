"""The mechanisms of authentication that are on, as the settings say; without a mechanism, everyone is anonymous."""

from dataclasses import dataclass, field
from pathlib import Path

from strata.registry.features.access.principal_mapping import PrincipalMapping
from strata.registry.features.access.proxy import NO_PROXIES, TrustedProxies

__all__ = ["ALGORITHMS", "CodeFlowOptions", "IdentityOptions", "OidcOptions", "TokenRules"]

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The signature algorithms that can be chosen, all with public keys: a shared secret could be used to sign as well."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """Which tokens are accepted, and what their claims mean.

    Attributes:
        issuer: the issuer, compared exactly.
        audiences: the audiences, of which a token must name one.
        algorithms: the signature algorithms.
        leeway_s: by how much clocks may differ, in seconds.
        principal_claim: the claim that names the user.
        groups_claim: the claim that names the groups.
    """

    issuer: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...] = ALGORITHMS
    leeway_s: float = 30.0
    principal_claim: str = "sub"
    groups_claim: str = "groups"


@dataclass(frozen=True, slots=True)
class OidcOptions:
    """An identity provider.

    Attributes:
        rules: which tokens are accepted.
        jwks_url: the URL of its keys; None to discover it from the issuer.
        ca_file: a file with certificates of authorities for both; None for those of the system.
        allow_http: whether `http://` is allowed on loopback, for tests.
    """

    rules: TokenRules
    jwks_url: str | None = None
    ca_file: str | None = None
    allow_http: bool = False


@dataclass(frozen=True, slots=True)
class CodeFlowOptions:
    """The client that this registry is to the identity provider, for people who sign in to the pages.

    Attributes:
        client_id: its name.
        client_secret: its secret; None for a public client.
        scopes: the scopes to ask for, separated by spaces.
    """

    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: str = "openid"


@dataclass(frozen=True, slots=True)
class IdentityOptions:
    """The mechanisms that are on.

    Attributes:
        auth_file: the file with users, roles and rules; switches on Basic authentication.
        oidc: the identity provider; switches on Bearer authentication.
        mapping: the rules for the subjects of certificates; switches on principals by mTLS.
        proxies: the proxies whose headers count; may switch on principals by header.
        code_flow: how people sign in to the pages by the identity provider; None if they cannot.
    """

    auth_file: Path | None = None
    oidc: OidcOptions | None = None
    mapping: PrincipalMapping | None = None
    proxies: TrustedProxies = NO_PROXIES
    code_flow: CodeFlowOptions | None = None

    @property
    def is_on(self) -> bool:
        """Whether any mechanism is on."""
        return bool(self.auth_file or self.oidc or self.mapping or self.proxies.user_header)
