"""Credentials for a registry as users of commands write them: a text of a flag, a variable or a file.

    ann:secret                              a user and a password
    eyJhbGciOi…                             a bearer token

    token_url=https://id.example/token      OAuth 2.0 client credentials
    client_id=strata
    client_secret=secret
    scope=registry
    proxy=http://proxy.example:3128

A text is of the last form if its first line is NAME=VALUE with the name of a setting. Empty lines and lines that begin
with `#` do not count.
"""

from strata.properties import PropertiesRefused, properties_of

__all__ = ["credentials_in"]

_NAMES = (
    "username",
    "password",
    "token",
    "token_url",
    "client_id",
    "client_secret",
    "scope",
    "token_ca_file",
    "logical_cluster",
    "identity_pool",
    "proxy",
    "ca_file",
    "cert_file",
    "key_file",
    "key_password",
)
"""The settings of `strata.http.HttpSettings` that a text may hold."""


def credentials_in(text: str | None) -> dict[str, str]:
    """Return the settings of `HttpSettings` that a text holds.

    Args:
        text: the text; None or an empty one holds nothing.

    Raises:
        ValueError: if a line is not NAME=VALUE, or a name is unknown or there twice; no message shows a value.
    """
    lines = [line.strip() for line in (text or "").splitlines()]
    first = next((line for line in lines if line and not line.startswith("#")), "")
    if not first:
        return {}
    if first.partition("=")[0].strip() not in _NAMES or "=" not in first:
        username, colon, password = (text or "").strip("\r\n").partition(":")
        return {"username": username, "password": password} if colon else {"token": username}
    try:
        rows = list(properties_of(text or ""))
    except PropertiesRefused as error:
        raise ValueError(f"credentials, {error}") from None
    settings: dict[str, str] = {}
    for number, name, value in rows:
        if name not in _NAMES:
            raise ValueError(f"credentials, line {number}: expected one of {', '.join(_NAMES)}")
        if name in settings:
            raise ValueError(f"credentials, line {number}: {name} is there twice")
        settings[name] = value
    return settings
