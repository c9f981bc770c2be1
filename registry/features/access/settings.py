"""The settings of `strata serve` that say how clients prove who they are."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from strata.registry.features.access.identity_keys import InvalidProvider, check_url
from strata.registry.features.access.names import check_name
from strata.registry.features.access.options import (
    ALGORITHMS,
    CodeFlowOptions,
    IdentityOptions,
    OidcOptions,
    TokenRules,
)
from strata.registry.features.access.principal_mapping import parse_mapping
from strata.registry.features.access.proxy import TrustedProxies, parse_networks
from strata.registry.node.setting_types import ExistingFile, SettingGroup, listed

__all__ = ["IdentitySettings"]

_HIGHEST_RATE = 100_000  # they are counted in microseconds


def _networks(value: str | None) -> str | None:
    try:
        parse_networks(value or "")
    except ValueError as error:
        raise ValueError(f"expected addresses or networks such as 10.0.0.0/8, separated by commas: {error}") from None
    return value


def _mapping(value: str | None) -> str | None:
    if value is not None:
        parse_mapping(value)
    return value


def _algorithms(value: str) -> str:
    for name in listed(value):
        if name not in ALGORITHMS:
            raise ValueError(f"expected one or more of {','.join(ALGORITHMS)}; got {name!r}")
    if not listed(value):
        raise ValueError("expected at least one algorithm")
    return value


def _header(value: str | None) -> str | None:
    if value is not None and not (value.isascii() and value.replace("-", "").isalnum()):
        raise ValueError("expected the name of a header, such as X-Forwarded-User")
    return value


def _principals(value: str | None) -> str | None:
    for item in listed(value, ";"):
        prefix, _, name = item.partition(":")
        if prefix not in ("User", "Group"):
            raise ValueError(
                f"expected names such as User:admin or Group:platform, separated by semicolons; got {item!r}"
            )
        check_name(name)
    return value


class IdentitySettings(SettingGroup):
    """How clients prove who they are, and how often they may ask; each field is a flag and a variable."""

    auth_file: Path | None = Field(
        None,
        description="file with users, roles and rules, as `strata user` writes it; switches on Basic authentication",
    )
    superusers: Annotated[str | None, AfterValidator(_principals)] = Field(
        None,
        description="principals that may do everything, such as User:admin;Group:platform, separated by semicolons",
    )
    oidc_issuer: str | None = Field(
        None,
        description="URL of the OpenID Connect provider whose tokens are accepted; switches on Bearer authentication",
    )
    oidc_audience: str | None = Field(
        None, description="audiences of accepted tokens, separated by commas; required with --oidc-issuer"
    )
    oidc_jwks_url: str | None = Field(
        None, description="URL of the provider's keys  [the one in its discovery document]"
    )
    oidc_ca_file: ExistingFile = Field(None, description="CA certificates for the provider (PEM)  [the system's]")
    oidc_principal_claim: str = Field(
        "sub", min_length=1, description="claim that names the user; its values must be unique, and not chosen by users"
    )
    oidc_groups_claim: str = Field(
        "groups",
        min_length=1,
        description="claim that lists the groups, or a path such as realm_access.roles or "
        "resource_access.[my.client].roles",
    )
    oidc_leeway: float = Field(30.0, ge=0, le=300, description="seconds by which the provider's clock may differ")
    oidc_algorithms: Annotated[str, AfterValidator(_algorithms)] = Field(
        ",".join(ALGORITHMS), description="signature algorithms of accepted tokens"
    )
    oidc_client_id: str | None = Field(
        None, description="client id of this registry at the provider; lets people sign in to the pages there"
    )
    oidc_client_secret: ExistingFile = Field(
        None, description="file with the client secret of --oidc-client-id  [none: a public client]"
    )
    oidc_scopes: str = Field(
        "openid", min_length=1, description="scopes to ask the provider for at a sign-in, separated by spaces"
    )
    oidc_allow_http: bool = Field(False, description="allow a provider at http:// on loopback, for tests")
    tls_principal_rules: Annotated[str | None, AfterValidator(_mapping)] = Field(
        None,
        description="rules that turn the subject of a client certificate into a user name, as in Kafka's "
        "ssl.principal.mapping.rules: RULE:PATTERN/REPLACEMENT/[L|U],…,DEFAULT; switches on principals by certificate",
    )
    trusted_proxies: Annotated[str | None, AfterValidator(_networks)] = Field(
        None,
        description="addresses or networks of reverse proxies, separated by commas, whose X-Forwarded-For names the "
        "client",
    )
    proxy_user_header: Annotated[str | None, AfterValidator(_header)] = Field(
        None,
        description="header in which trusted proxies name the user that they have authenticated, such as "
        "X-Forwarded-User; they must remove it from what clients send",
    )
    proxy_groups_header: Annotated[str | None, AfterValidator(_header)] = Field(
        None, description="header in which they list the user's groups, separated by commas, such as X-Forwarded-Groups"
    )
    rate_limit: float | None = Field(
        None,
        gt=0,
        le=_HIGHEST_RATE,
        description="requests per second of each user, or of each address without a user; further ones get status 429  "
        "[no limit]",
    )
    address_rate_limit: float | None = Field(
        None,
        gt=0,
        le=_HIGHEST_RATE,
        description="requests per second of each address, all its users together; further ones get status 429  "
        "[no limit]",
    )
    rate_burst_seconds: float = Field(
        2.0, gt=0, le=3600, description="seconds' worth of requests within a rate limit that may come at once"
    )

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        if self.oidc_issuer is None:
            if self.oidc_audience or self.oidc_jwks_url:
                raise ValueError("--oidc-audience and --oidc-jwks-url need --oidc-issuer")
        elif not listed(self.oidc_audience):
            raise ValueError("--oidc-issuer needs --oidc-audience: else tokens for other services would be accepted")
        if self.oidc_client_id and not self.oidc_issuer:
            raise ValueError("--oidc-client-id needs --oidc-issuer")
        if self.oidc_client_secret and not self.oidc_client_id:
            raise ValueError("--oidc-client-secret needs --oidc-client-id")
        for flag, url in (("--oidc-issuer", self.oidc_issuer), ("--oidc-jwks-url", self.oidc_jwks_url)):
            if url is not None:
                try:
                    check_url(url, allow_http=self.oidc_allow_http)
                except InvalidProvider as error:
                    raise ValueError(f"{flag}: {error}") from None
        if self.proxy_user_header and not listed(self.trusted_proxies):
            raise ValueError("--proxy-user-header needs --trusted-proxies: else any client could send it")
        if self.proxy_groups_header and not self.proxy_user_header:
            raise ValueError("--proxy-groups-header needs --proxy-user-header")
        return self

    @property
    def superuser_names(self) -> frozenset[str]:
        """The principals that may do everything, such as `User:admin`."""
        return frozenset(listed(self.superusers, ";"))

    @property
    def identity(self) -> IdentityOptions:
        """The mechanisms of authentication that are on."""
        return IdentityOptions(
            auth_file=self.auth_file,
            oidc=self._oidc(self.oidc_issuer) if self.oidc_issuer else None,
            code_flow=self._code_flow,
            mapping=parse_mapping(self.tls_principal_rules) if self.tls_principal_rules else None,
            proxies=TrustedProxies(
                parse_networks(self.trusted_proxies or ""),
                _lower_bytes(self.proxy_user_header),
                _lower_bytes(self.proxy_groups_header),
            ),
        )

    @property
    def _code_flow(self) -> CodeFlowOptions | None:
        if self.oidc_client_id is None:
            return None
        secret = self.oidc_client_secret.read_text().strip() if self.oidc_client_secret else None
        return CodeFlowOptions(self.oidc_client_id, secret, self.oidc_scopes)

    def _oidc(self, issuer: str) -> OidcOptions:
        return OidcOptions(
            TokenRules(
                issuer,
                audiences=listed(self.oidc_audience),
                algorithms=listed(self.oidc_algorithms),
                leeway_s=self.oidc_leeway,
                principal_claim=self.oidc_principal_claim,
                groups_claim=self.oidc_groups_claim,
            ),
            jwks_url=self.oidc_jwks_url,
            ca_file=str(self.oidc_ca_file) if self.oidc_ca_file else None,
            allow_http=self.oidc_allow_http,
        )


def _lower_bytes(name: str | None) -> bytes | None:
    return name.lower().encode() if name else None
