"""Connections to registries: from options, from the environment, or from a profile.

Profiles are in `~/.config/strata/profiles.yaml` (or the file that STRATA_PROFILES names):

    production:
      url: https://registry.example.com
      auth: ${REGISTRY_AUTH}          # an environment variable
    staging:
      url: https://staging.example.com
      keyring: strata/staging         # service and user of the system's keyring
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata.gitops.errors import GitopsError
from strata.gitops.fields import Fields
from strata.gitops.service import Service
from strata.http.credentials import credentials_in
from strata.serdes.client import RegistryClient
from strata.strict_yaml import InvalidText, read_text

__all__ = ["connect"]

_KEYS = dict.fromkeys(("auth", "ca_file", "cert_file", "key_file", "keyring", "url"))
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def connect(connection: Mapping[str, Any], planned: str | None = None) -> Service:
    """Return a registry.

    Args:
        connection: url, profile, auth and the files of TLS; the profile completes them, and takes precedence over those
            that `weak` names: variables of the environment that a profile of the command line must not be mixed with.
        planned: the URL of a plan, if nothing else has one.

    Raises:
        GitopsError: If there is no URL, the profile is missing, or a setting is wrong.
    """
    profile = _profile(connection["profile"]) if connection.get("profile") else {}
    known, weak = {name: value for name, value in connection.items() if value is not None}, connection.get("weak", ())
    merged = {**{name: known[name] for name in weak if name in known}, **profile}
    merged |= {name: value for name, value in known.items() if name not in weak}
    url = merged.get("url") or planned
    if not url:
        raise GitopsError("no registry: give --url, or set STRATA_URL, or name a --profile")
    tls: dict[str, Any] = {name: str(merged[name]) for name in ("ca_file", "cert_file", "key_file") if merged.get(name)}
    try:
        return Service(RegistryClient(url, **{**tls, **credentials_in(_text_of(merged.get("auth")))}))
    except ValueError as error:
        raise GitopsError(str(error)) from None


def _text_of(auth: str | None) -> str | None:
    """Return credentials, read from the file that `@FILE` names."""
    if auth is None or not auth.startswith("@"):
        return auth
    try:
        return Path(auth[1:]).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise GitopsError(f"{auth[1:]} cannot be read; expected a text file with the credentials") from None


def _profile(name: str) -> dict[str, Any]:
    path = Path(os.environ.get("STRATA_PROFILES") or Path.home() / ".config" / "strata" / "profiles.yaml")
    try:
        profiles = Fields(str(path), read_text(path.read_text("utf-8")))
    except OSError as error:
        raise GitopsError(f"cannot read the profiles in {path}: {error.strerror}") from None
    except (InvalidText, UnicodeDecodeError) as error:
        raise GitopsError(f"{path}: {error}") from None
    if name not in profiles:
        raise GitopsError(f"{path}: no profile {name!r}; expected one of {', '.join(profiles.names())}")
    profile = profiles.inner(name).only(_KEYS)
    settings = {key: _expanded(f"{path}.{name}.{key}", profile.text(key) or "") for key in profile.names()}
    if "keyring" in settings:
        settings["auth"] = _from_keyring(settings.pop("keyring"))
    return settings


def _expanded(where: str, text: str) -> str:
    def variable(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            raise GitopsError(f"{where}: the environment variable {match[1]} is not set")
        return os.environ[match[1]]

    return _VARIABLE.sub(variable, text)


def _from_keyring(entry: str) -> str:
    """Return `USER:PASSWORD` from the system's keyring."""
    service, _, user = entry.partition("/")
    try:
        import keyring
    except ModuleNotFoundError:
        raise GitopsError("a profile with `keyring` needs the package keyring: pip install keyring") from None
    password = keyring.get_password(service, user)
    if password is None:
        raise GitopsError(f"the keyring has no password of {user!r} for {service!r}")
    return f"{user}:{password}"
