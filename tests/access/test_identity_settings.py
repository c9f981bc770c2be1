"""The settings of identity: what switches a mechanism on, and combinations that would be unsafe."""

import pytest

from strata.registry.node.settings import SettingRefused
from strata.registry.settings import load_settings

OIDC = {"oidc_issuer": "https://id.example.com", "oidc_audience": "strata, other"}
CERTIFICATES = {"tls_client_auth": "optional", "tls_client_ca": __file__, "tls_certfile": __file__}
REFUSED = [
    ("an issuer without audience", {"oidc_issuer": "https://id.example.com"}, "--oidc-issuer needs --oidc-audience"),
    ("an empty audience", OIDC | {"oidc_audience": " , "}, "--oidc-issuer needs --oidc-audience"),
    ("an audience without issuer", {"oidc_audience": "strata"}, "need --oidc-issuer"),
    ("keys without issuer", {"oidc_jwks_url": "https://id.example.com/jwks"}, "need --oidc-issuer"),
    ("http", OIDC | {"oidc_issuer": "http://id.example.com"}, "--oidc-issuer: expected https://"),
    ("http on loopback", OIDC | {"oidc_issuer": "http://127.0.0.1:80"}, "--oidc-issuer: expected https://"),
    (
        "http elsewhere, though allowed",
        OIDC | {"oidc_issuer": "http://id.example.com", "oidc_allow_http": True},
        "--oidc-issuer: expected https://",
    ),
    ("keys by http", OIDC | {"oidc_jwks_url": "http://id.example.com/jwks"}, "--oidc-jwks-url: expected https://"),
    ("keys in a file", OIDC | {"oidc_jwks_url": "file:///etc/keys"}, "--oidc-jwks-url: expected a URL"),
    ("a password in the URL", OIDC | {"oidc_jwks_url": "https://a:b@example.com"}, "--oidc-jwks-url: expected a URL"),
    ("a CA file that is missing", OIDC | {"oidc_ca_file": "/nowhere/ca.pem"}, "no such file"),
    ("no algorithm", OIDC | {"oidc_algorithms": ","}, "expected at least one algorithm"),
    ("the algorithm none", OIDC | {"oidc_algorithms": "RS256,none"}, "got 'none'"),
    ("a shared secret", OIDC | {"oidc_algorithms": "HS256"}, "got 'HS256'"),
    ("not a rule", {"tls_principal_rules": "RULE:x"}, "expected DEFAULT or RULE:PATTERN/REPLACEMENT/"),
    ("rules for certificates that no client shows", {"tls_principal_rules": "DEFAULT"}, "needs --tls-client-auth"),
    ("a header of anyone", {"proxy_user_header": "X-User"}, "--proxy-user-header needs --trusted-proxies"),
    ("groups of no one", {"trusted_proxies": "::1", "proxy_groups_header": "X-G"}, "needs --proxy-user-header"),
    ("not a header", {"trusted_proxies": "::1", "proxy_user_header": "X:Y"}, "expected the name of a header"),
    ("a network with host bits", {"trusted_proxies": "10.0.0.1/8"}, "has host bits set"),
    ("a superuser without kind", {"superusers": "admin"}, "expected names such as User:admin"),
    ("everyone", {"superusers": "User:*"}, "expected a name"),
    ("anonymous", {"superusers": "Anonymous"}, "expected names such as User:admin"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_an_unsafe_setting_is_rejected(given, message):
    """The message names the setting, and says what is expected."""
    with pytest.raises(SettingRefused) as caught:
        load_settings(**given)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "on"),
    [
        ({}, False),
        ({"trusted_proxies": "10.0.0.0/8"}, False),
        ({"superusers": "User:admin"}, False),
        ({"auth_file": "auth.yaml"}, True),
        (OIDC, True),
        (CERTIFICATES | {"tls_principal_rules": "DEFAULT"}, True),
        ({"trusted_proxies": "10.0.0.0/8", "proxy_user_header": "X-Forwarded-User"}, True),
    ],
)
def test_what_switches_identity_on(given, on):
    """Each mechanism has its own switch."""
    assert on == load_settings(**given).identity.is_on


def test_the_mechanisms_get_their_settings():
    """Lists are split, and the provider's rules are those of the settings."""
    found = load_settings(
        **OIDC,
        oidc_algorithms="ES256, EdDSA",
        oidc_leeway=0,
        oidc_groups_claim="realm_access.roles",
        superusers="User:CN=admin,O=x; Group:platform",
        trusted_proxies="10.0.0.0/8,::1",
        proxy_user_header="X-Forwarded-User",
    )
    rules = found.identity.oidc.rules

    assert ("https://id.example.com", ("strata", "other")) == (rules.issuer, rules.audiences)
    assert (("ES256", "EdDSA"), 0, "sub", "realm_access.roles") == (
        rules.algorithms, rules.leeway_s, rules.principal_claim, rules.groups_claim,
    )  # fmt: skip
    assert {"User:CN=admin,O=x", "Group:platform"} == found.superuser_names
    assert (2, b"x-forwarded-user", None) == (
        len(found.identity.proxies.networks), found.identity.proxies.user_header, found.identity.proxies.groups_header,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["follow", "advertised_url", "cors_origins", "oidc_issuer", "ui_url"])
def test_a_rejected_url_is_shown_without_its_password(name):
    """The message of a start that fails may go to a log that many people read."""
    with pytest.raises(SettingRefused) as caught:
        load_settings(**{"oidc_audience": "a", name: "kafka://u:hunter2@h:9092/t"})

    assert "u:***@h" in str(caught.value)
    assert "hunter2" not in str(caught.value)
