"""The settings of confluent-kafka's classes, as the engine's.

Rules of this file: names and checks; an unknown setting is an error with the nearest known name.
"""

from collections.abc import Mapping
from typing import Any

from strata.serdes.confluent.error import refuse_unknown
from strata.serdes.errors import wrong_argument
from strata.serdes.settings import ClientSettings

__all__ = ["CLIENT_SETTINGS", "client_settings", "latest_ttl"]

_DEFAULTS = {"max.retries": 2, "retries.wait.ms": 1000, "retries.max.wait.ms": 20_000, "cache.capacity": 1000}
"""confluent-kafka's defaults, where they differ from ours."""

_USER_SOURCES = ("USER_INFO", "URL", "SASL_INHERIT")
_OWN = frozenset(
    {
        "basic.auth.credentials.source",
        "sasl.mechanism",
        "sasl.mechanisms",
        "sasl.username",
        "sasl.password",
        "cache.latest.ttl.sec",
    }
)
CLIENT_SETTINGS = _OWN | ClientSettings.conf_names()
"""The settings of `SchemaRegistryClient`."""


def client_settings(conf: Mapping[str, object]) -> ClientSettings:
    """Return the settings of the engine's client.

    Args:
        conf: the settings of a `SchemaRegistryClient`.

    Raises:
        ValueError: If a setting is unknown, missing or contradicts another one.
        TypeError: If `conf` is not a mapping.
    """
    if not isinstance(conf, Mapping):
        advice = "make it {'url': url}" if isinstance(conf, str) else ""
        raise wrong_argument("conf", "a dict of settings", conf, advice)
    refuse_unknown(conf, CLIENT_SETTINGS)
    if conf.get("url") is None:
        raise ValueError("Missing required configuration property url")
    settings = {name: value for name, value in (_DEFAULTS | dict(conf)).items() if name not in _OWN}
    source = conf.get("basic.auth.credentials.source")
    if source not in (None, *_USER_SOURCES):
        raise ValueError(f"basic.auth.credentials.source: expected {', '.join(_USER_SOURCES)}, got {source!r}")
    if source == "SASL_INHERIT":
        settings["basic.auth.user.info"] = _inherited(conf)
    elif source == "URL" and "basic.auth.user.info" in settings:
        raise ValueError("basic.auth.user.info needs basic.auth.credentials.source=USER_INFO, got URL")
    elif source == "USER_INFO" and not settings.get("basic.auth.user.info"):
        raise ValueError("basic.auth.credentials.source=USER_INFO needs basic.auth.user.info")
    checked: Any = settings
    return ClientSettings.from_conf(checked)


def _inherited(conf: Mapping[str, object]) -> str:
    """Return the credentials of Kafka's SASL settings."""
    mechanism = conf.get("sasl.mechanism") or conf.get("sasl.mechanisms")
    if mechanism is not None and str(mechanism).upper() == "GSSAPI":
        raise ValueError("basic.auth.credentials.source=SASL_INHERIT cannot use the SASL mechanism GSSAPI")
    names = ("sasl.username", "sasl.password")
    missing = [name for name in names if not isinstance(conf.get(name), str)]
    if missing:
        raise ValueError(f"basic.auth.credentials.source=SASL_INHERIT needs {' and '.join(missing)}")
    return ":".join(str(conf[name]) for name in names)


def latest_ttl(conf: Mapping[str, object]) -> float | None:
    """Return the seconds for which the latest version of a subject is cached; None is for ever.

    Raises:
        ValueError: If it is not a number.
    """
    seconds = conf.get("cache.latest.ttl.sec")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0):
        raise ValueError("cache.latest.ttl.sec: expected seconds, 0 or more")
    return seconds
