"""Which keys of a KMS a client may use: the allow-list of its settings, and hosts that its credentials are for.

A key id comes from the registry, with a rule or a KEK. A client that may write there could name another host, which
would get this client's token and data keys, or another key, which could unwrap them. So:

- With the setting `kms.allowed`, only the key ids that it names are used, the alternate ones of a KEK included.
- Without it, a host is used only if the credentials were given for it: that of VAULT_ADDR for `hcvault`, and those of
  the user's cloud of Azure for `azure-kms`. AWS and Google have no host in their key ids.
- `http:` is for loopback only, whatever the settings say.

`kms.allowed` holds key ids with commas between them, with or without the type in front (`hcvault://`). `*` stands for
any characters but a slash, and at the end of an id for any characters. An entry without a slash is a host, with its
port unless it is the usual one.

Rules of this file: no I/O; nothing here looks at a secret.
"""

import os
import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from strata.serdes.encryption.ciphers import CipherError

__all__ = ["ALLOWED", "AZURE_DOMAINS", "azure_domain", "check_endpoint", "check_key_id", "vault_of"]

ALLOWED = "kms.allowed"
"""The setting with the key ids and hosts that may be used."""

AZURE_DOMAINS: Mapping[str, str] = {
    "login.microsoftonline.com": "azure.net",
    "login.microsoftonline.us": "usgovcloudapi.net",
    "login.chinacloudapi.cn": "azure.cn",
}
"""The clouds of Azure: who gives tokens, and the domain of vaults and managed HSMs."""

_AUTHORITY = "login.microsoftonline.com"
_URL_ID = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?((/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)+)")
"""What a key id with a host looks like: no user, no query, no escapes, and no segment that begins with a dot."""

_PORTS = {"http": 80, "https": 443}


def check_key_id(kms_type: str, key_id: str, settings: Mapping[str, object]) -> None:
    """Check that a client may use a key.

    Args:
        kms_type: the type of the KMS.
        key_id: the id of the key there.
        settings: the executor's settings, from the user.

    Raises:
        CipherError: If it may not; the message says which setting would allow it.
    """
    parts = _url(kms_type, key_id) if kms_type in _HOSTS else None
    allowed = [entry.strip() for entry in _entries(settings) if entry.strip()]
    if allowed:
        if not any(_fits(entry.removeprefix(f"{kms_type}://"), key_id, parts) for entry in allowed):
            raise CipherError(f"the key {key_id} is not in the setting {ALLOWED}; the registry must not choose it")
    elif parts is not None and not _HOSTS[kms_type](parts):
        raise CipherError(
            f"the key {key_id} is at a host for which no credentials were given; to use it, add it to the setting "
            f"rule.executors._default_.param.{ALLOWED}"
        )


def check_endpoint(url: str, setting: str) -> str:
    """Return the base URL of a service that a setting names.

    Raises:
        CipherError: If it is not one, or is `http:` beyond loopback.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise CipherError(f"{setting}: expected a URL such as https://kms.example")
    _check_scheme(parts)
    return url.rstrip("/")


def azure_domain() -> str:
    """Return the domain of the user's cloud of Azure: the public one, or that of AZURE_AUTHORITY_HOST."""
    authority = os.environ.get("AZURE_AUTHORITY_HOST", _AUTHORITY)
    return AZURE_DOMAINS.get(urlsplit(authority).hostname or authority.strip("/"), AZURE_DOMAINS[_AUTHORITY])


def vault_of(key_id: str) -> tuple[str, str, str]:
    """Split the id of a key of Vault or OpenBao into the base URL, the mount and the name.

    Raises:
        CipherError: If it is not such an id.
    """
    parts = _url("hcvault", key_id)
    mount, _, name = parts.path[1:].rpartition("/keys/")
    if not mount or not name or "/" in name:
        raise CipherError(f"the key {key_id}: expected https://HOST:PORT/MOUNT/keys/NAME")
    return f"{parts.scheme}://{parts.netloc}", mount, name


def _entries(settings: Mapping[str, object]) -> list[str]:
    value = settings.get(ALLOWED)
    return [str(entry) for entry in value] if isinstance(value, list | tuple | set) else str(value or "").split(",")


def _url(kms_type: str, key_id: str) -> SplitResult:
    if not _URL_ID.fullmatch(key_id):
        raise CipherError(f"the key {key_id} is not a key id of {kms_type}: expected a URL")
    parts = urlsplit(key_id)
    _check_scheme(parts)
    return parts


def _check_scheme(parts: SplitResult) -> None:
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise CipherError(f"http://{parts.netloc} would get keys and tokens in clear text; expected https")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fits(entry: str, key_id: str, parts: SplitResult | None) -> bool:
    if "/" not in entry and not entry.startswith("arn:"):
        return parts is not None and entry.lower() in (_place(parts), parts.netloc.lower())
    start = entry.removesuffix("*")
    pattern = "[^/]*".join(map(re.escape, start.split("*"))) + (".*" if start != entry else "")
    return re.fullmatch(pattern, key_id, re.DOTALL) is not None


def _place(parts: SplitResult) -> str:
    """Return host and port, without the usual port of the scheme."""
    host = (parts.hostname or "").lower()
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


def _is_of_vault(parts: SplitResult) -> bool:
    address = urlsplit(os.environ.get("VAULT_ADDR", ""))
    return bool(address.hostname) and (parts.scheme, _place(parts)) == (address.scheme, _place(address))


def _is_of_azure(parts: SplitResult) -> bool:
    host, domain = parts.hostname or "", azure_domain()
    is_public = parts.scheme == "https" and parts.port in (None, 443)
    return is_public and host.endswith((f".vault.{domain}", f".managedhsm.{domain}"))


_HOSTS: Mapping[str, Callable[[SplitResult], bool]] = {"hcvault": _is_of_vault, "azure-kms": _is_of_azure}
"""The KMS whose key ids hold a host, and whether the credentials were given for it."""
