"""The settings of a registry client, as one picklable value.

Rules of this file: a bad setting is an error when the settings are made, and the error says what is allowed; secrets
never show in a repr.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Unpack

from strata.http.errors import TokenRefused
from strata.http.settings import HttpSettings, check_numbers, split_userinfo
from strata.serdes.conf_types import ClientConf, ClientOptions
from strata.serdes.errors import did_you_mean

__all__ = ["ClientSettings"]

_MOCK = "mock://"
_NOWHERE = ("http://mock.invalid",)
"""The address beside a registry in this process; no host is named `.invalid`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings(HttpSettings):
    """All that a process needs to build a client: how to reach the registry (see `HttpSettings`), and caches.

    Attributes:
        cache_size: how many schemas, and how many registrations, are cached.
        missing_ttl: seconds for which an unknown id is cached.
        glue_region: the AWS region whose Glue is asked for schema versions in frames of AWS Glue, with the credentials
            of the AWS tools; without it the registry is asked, into which they were migrated.
        mock: the name of a registry in this process, in place of one behind the URL; see `strata.serdes.memory`.
        cache_dir: a folder in which answers are kept, for starts while the registry is down; see
            `strata.serdes.disk_cache`.

    Raises:
        ValueError: If a setting is out of range or settings contradict each other.
        TypeError: If a number is expected and something else given.
    """

    cache_size: int = 1000
    missing_ttl: float = 10.0
    glue_region: str | None = None
    mock: str | None = None
    cache_dir: str | None = None

    def __post_init__(self) -> None:
        HttpSettings.__post_init__(self)  # super() does not work in a class with slots
        check_numbers(self, from_zero=("missing_ttl",), positive=("cache_size",))

    @classmethod
    def of(cls, url: "str | Sequence[str] | ClientSettings", **options: Unpack[ClientOptions]) -> "ClientSettings":
        """Return settings from one URL, several URLs, one string of URLs with commas between them, or other settings.

        Args:
            url: the registry's address or addresses; credentials in them become `username` and `password`.
            **options: further fields of the settings; they replace those of other settings.

        Raises:
            ValueError: If a URL cannot be parsed, a setting is out of range or settings contradict each other.
            TypeError: If an option is unknown, or a number is expected and something else given.
        """
        known = {setting.name for setting in fields(cls)}
        settings: dict[str, Any] = dict(options)
        for name in sorted(settings.keys() - known):
            known.discard("urls")
            raise TypeError(f"unknown option {name!r} of a client{did_you_mean(name, known)}")
        if isinstance(url, ClientSettings):
            return replace(url, **settings)
        if isinstance(url, str) and url.startswith(_MOCK):
            return cls(urls=_NOWHERE, **{"mock": url.removeprefix(_MOCK), **settings})
        addresses = url.split(",") if isinstance(url, str) else url
        urls = []
        for address in addresses:
            base, userinfo = split_userinfo(address.strip())
            urls.append(base)
            if userinfo is not None and settings.get("username") is None:
                settings["username"], settings["password"] = userinfo
        return cls(urls=tuple(urls), **settings)

    @classmethod
    def conf_names(cls) -> frozenset[str]:
        """Return the names that `from_conf` knows."""
        return frozenset({*_CONF, *_CUSTOM, _QUERY, "bearer.auth.credentials.source"})

    @classmethod
    def from_conf(cls, conf: ClientConf) -> "ClientSettings":
        """Return settings from a dict with the names of confluent-kafka's `SchemaRegistryClient`.

        Args:
            conf: such as `url`, `basic.auth.user.info` and `ssl.ca.location`; a value of None counts as missing.

        Raises:
            ValueError: If a setting is unknown, missing or of the wrong type; the message does not show its value.
        """
        settings: dict[str, Any] = dict(conf)
        source = settings.pop("bearer.auth.credentials.source", None)
        needed = _BEARER_SOURCES.get(source)
        if needed is None:
            allowed = " or ".join(name for name in _BEARER_SOURCES if name)
            raise ValueError(f"unknown bearer.auth.credentials.source; expected {allowed}")
        if source is None and any(name.startswith("bearer.") for name in settings):
            raise ValueError("bearer.auth settings need bearer.auth.credentials.source")
        missing = [name for name in ("url", *needed) if settings.get(name) is None]
        for name in sorted(settings.keys() - _CONF.keys() - {*_CUSTOM, _QUERY}):
            advice = did_you_mean(name, _CONF) or f"; expected {', '.join(_CONF)}"
            raise ValueError(f"unknown setting {name!r}{advice}")
        if missing:
            raise ValueError(f"missing settings {', '.join(missing)}")
        options: dict[str, Any] = {}
        custom = [settings.pop(name, None) for name in _CUSTOM]
        if source == "CUSTOM":
            options["authorize"] = CustomProvider(*custom)
        query = settings.pop(_QUERY, None)
        if source == _MANAGED_IDENTITY:
            from strata.serdes.managed_identity import ManagedIdentity

            options["authorize"] = ManagedIdentity(settings.pop(_ENDPOINT, None), query)
        elif query is not None:
            raise ValueError(f"{_QUERY} needs bearer.auth.credentials.source={_MANAGED_IDENTITY}")
        for name, value in settings.items():
            if value is not None:
                options |= _read(name, value)
        return cls.of(options.pop("url"), **options)


class CustomProvider:
    """The headers with the credentials that a function of the caller returns.

    Args:
        function: returns `bearer.auth.token` and, if they are needed, `bearer.auth.logical.cluster` and
            `bearer.auth.identity.pool.id`, in a dict.
        config: its argument.

    Raises:
        ValueError: If the function cannot be called, or its argument is not a dict; the message shows neither.
    """

    def __init__(self, function: Callable[[Mapping[str, Any]], Mapping[str, Any]], config: Mapping[str, Any]) -> None:
        if not callable(function):
            raise ValueError(f"{_CUSTOM[0]}: expected a function")  # noqa: TRY004 - a setting
        if not isinstance(config, Mapping):
            raise ValueError(f"{_CUSTOM[1]}: expected a dict")  # noqa: TRY004 - a setting
        self._function, self._config = function, config

    def __call__(self) -> dict[str, str]:
        """Return the headers of one attempt.

        Raises:
            TokenRefused: If the function fails, or returns something else.
        """
        try:
            answer = self._function(self._config)
            token = answer["bearer.auth.token"]
        except Exception as error:
            raise TokenRefused(
                f"{_CUSTOM[0]} failed with {type(error).__name__}: expected bearer.auth.token"
            ) from error
        pools = answer.get("bearer.auth.identity.pool.id")
        headers = {
            "Authorization": f"Bearer {token}",
            "target-sr-cluster": answer.get("bearer.auth.logical.cluster"),
            "Confluent-Identity-Pool-Id": ",".join(map(str, pools)) if isinstance(pools, list) else pools,
        }
        known = {name: value for name, value in headers.items() if value is not None}
        for value in (token, *known.values()):
            if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
                raise TokenRefused(f"{_CUSTOM[0]} returned a value that no HTTP header may contain")
        return known


_CUSTOM = ("bearer.auth.custom.provider.function", "bearer.auth.custom.provider.config")
_ENDPOINT, _QUERY = "bearer.auth.issuer.endpoint.url", "bearer.auth.issuer.endpoint.query"
_MANAGED_IDENTITY = "OAUTHBEARER_AZURE_IMDS"
_HEADER_VALUE = re.compile(r"[!-~]+( [!-~]+)*")

_Reader = Callable[[object], dict[str, object]]
"""Turns a value into fields of the settings; raises TypeError with the expected type."""


def _text(field_name: str) -> _Reader:
    def read(value: object) -> dict[str, object]:
        if not isinstance(value, str):
            raise TypeError("a string")
        return {field_name: value}

    return read


def _number(field_name: str, kind: Callable[[float], float]) -> _Reader:
    def read(value: object) -> dict[str, object]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError("a number")
        return {field_name: kind(value)}

    return read


def _seconds(milliseconds: float) -> float:
    return milliseconds / 1000


def _user_info(value: object) -> dict[str, object]:
    if not isinstance(value, str) or ":" not in value:
        raise TypeError("username:password")
    username, _, password = value.partition(":")
    return {"username": username, "password": password}


def _identity_pool(value: object) -> dict[str, object]:
    pools = [value] if isinstance(value, str) else value
    if not isinstance(pools, list) or not all(isinstance(pool, str) for pool in pools):
        raise TypeError("a string or a list of strings")
    return {"identity_pool": ",".join(pools)}


_CONF: Mapping[str, _Reader] = {
    "url": _text("url"),
    "basic.auth.user.info": _user_info,
    "bearer.auth.token": _text("token"),
    "bearer.auth.issuer.endpoint.url": _text("token_url"),
    "bearer.auth.client.id": _text("client_id"),
    "bearer.auth.client.secret": _text("client_secret"),
    "bearer.auth.scope": _text("scope"),
    "bearer.auth.logical.cluster": _text("logical_cluster"),
    "bearer.auth.identity.pool.id": _identity_pool,
    "ssl.ca.location": _text("ca_file"),
    "ssl.certificate.location": _text("cert_file"),
    "ssl.key.location": _text("key_file"),
    "ssl.key.password": _text("key_password"),
    "proxy": _text("proxy"),
    "timeout": _number("timeout", float),
    "cache.capacity": _number("cache_size", int),
    "max.retries": _number("retries", int),
    "retries.wait.ms": _number("backoff", _seconds),
    "retries.max.wait.ms": _number("max_backoff", _seconds),
}
"""The names of confluent-kafka's client (2.16) and what each sets."""


def _read(name: str, value: object) -> dict[str, object]:
    try:
        return _CONF[name](value)
    except TypeError as error:
        raise ValueError(f"{name}: expected {error}") from None  # without the value, which may be a secret


_BEARER_SOURCES: Mapping[str | None, tuple[str, ...]] = {
    None: (),
    "STATIC_TOKEN": ("bearer.auth.token",),
    _MANAGED_IDENTITY: (),
    "CUSTOM": ("bearer.auth.custom.provider.function", "bearer.auth.custom.provider.config"),
    "OAUTHBEARER": ("bearer.auth.issuer.endpoint.url", "bearer.auth.client.id", "bearer.auth.client.secret"),
}
"""Where a token comes from, and the settings that this needs."""
