"""What serializers and deserializers have in common: the client, the settings, the subject and the rules.

Rules of this file: no format and no frame.
"""

import math
import time
from abc import ABC
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from strata.serdes.errors import wrong_argument
from strata.serdes.model import RegisteredSchema
from strata.serdes.registry_protocol import Registry
from strata.serdes.serde_settings import SerdeSettings

if TYPE_CHECKING:
    from strata.serdes.rules.running import Runner

__all__ = ["Serde", "T", "is_fresh"]

S = TypeVar("S", bound=SerdeSettings)
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # what type checkers know without installing it

    T = TypeVarWithDefault("T", default=Any)
else:
    T = TypeVar("T")

_FROM_CONF = "make one by RegistryClient.from_settings(ClientSettings.from_conf(conf))"


class Serde(ABC, Generic[S]):
    """The base class of serializers and deserializers."""

    format: str
    _given: tuple[object, ...]
    """The positional arguments; with `_options` what a serde pickles as."""
    _options: Mapping[str, Any] = {}

    def __init__(
        self, client: Registry, settings: type[S], conf: Mapping[str, object] | None, **functions: object
    ) -> None:
        _check_arguments(client, conf, functions)
        self._client = client
        self._settings = settings.parse(conf, self.format)
        self._strategy = self._settings.strategy(client)

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...]]:
        return partial(type(self), **self._options), self._given

    @cached_property
    def _runner(self) -> "Runner":
        from strata.serdes.rules.running import Runner

        return Runner(self._client, self._settings)

    def _latest(self, subject: str, *, deleted: bool = False) -> RegisteredSchema:
        """Return the version that `use.latest.with.metadata` selects, of `deleted` ones too, else the latest one."""
        wanted = self._settings.use_latest_with_metadata
        if wanted is None:
            return self._client.get_version(subject, "latest")
        return self._client.get_latest_with_metadata(subject, wanted, deleted=deleted)


def _check_arguments(client: object, conf: object, functions: Mapping[str, object]) -> None:
    """Raise TypeError for arguments of other types, such as those of another library in its own order."""
    is_another_librarys = hasattr(client, "register_schema")
    if is_another_librarys or not any(hasattr(client, name) for name in ("get_schema", "register", "lookup")):
        advice = "make one by RegistryClient(url)" if isinstance(client, str) else _FROM_CONF
        raise wrong_argument("client", "a strata.serdes.client.RegistryClient", client, advice)
    if conf is not None and not isinstance(conf, Mapping):
        raise wrong_argument("conf", "a dict of settings", conf)
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise wrong_argument(
                name, "a function", function, "settings are given as conf" if isinstance(function, dict) else ""
            )


class Expiring(Protocol):
    """A cache entry that is fresh until `until`, in seconds of `time.monotonic`."""

    @property
    def until(self) -> float: ...


def is_fresh(entry: Expiring) -> bool:
    """Return whether a cache entry has not expired."""
    return entry.until == math.inf or time.monotonic() < entry.until
