"""Requests to the REST API of a registry: a client's connections and settings, and the paths of its routes.

Rules of this file: it knows no route; retries and JSON text belong to `strata.serdes.transport`.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Self, TypedDict, TypeVar, Unpack

from strata.http.settings import check_files
from strata.serdes.disk_cache import CachingTransport
from strata.serdes.errors import SerdeError
from strata.serdes.observer import Observer
from strata.serdes.settings import ClientSettings
from strata.serdes.transport import Transport

__all__ = [
    "AnyTransport",
    "RequestParts",
    "Requests",
    "context_of",
    "flags_set",
    "numbers",
    "strings",
]

T = TypeVar("T")
_R = TypeVar("_R", bound="Requests")


class RequestParts(TypedDict, total=False):
    """What a request has besides its method and path."""

    query: Mapping[str, str] | None
    body: Mapping[str, object] | None


class AnyTransport(Protocol):
    """What sends the requests of a client."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
        """Return the parsed JSON of an answer; see `Transport.request`."""

    def close(self) -> None:
        """Close the connections."""


def _transport(settings: ClientSettings, observer: Observer | None) -> AnyTransport:
    if settings.mock is None:
        transport = Transport(settings, observer=observer)
        return transport if settings.cache_dir is None else CachingTransport(transport, settings)
    from strata.serdes.memory.routes import MemoryTransport, registry_named

    return MemoryTransport(registry_named(settings.mock))


class Requests:
    """The connections to one registry; it pickles as its settings."""

    @classmethod
    def from_settings(
        cls,
        settings: ClientSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        transport: AnyTransport | None = None,
        observer: Observer | None = None,
    ) -> Self:
        """Return a client for existing settings.

        Args:
            settings: the address, credentials and limits.
            clock: returns seconds that never go back; for the expiry of unknown ids.
            transport: sends the requests instead of HTTP.
            observer: learns of requests, records and rules.
        """
        client = cls.__new__(cls)
        client._open(settings, clock, transport, observer)
        return client

    def _open(
        self,
        settings: ClientSettings,
        clock: Callable[[], float],
        transport: AnyTransport | None,
        observer: Observer | None,
    ) -> None:
        check_files(settings)
        self.settings, self.observer = settings, observer
        self._clock = clock
        self._transport = _transport(settings, observer) if transport is None else transport

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...]]:
        elsewhere = None if self.observer is None else self.observer.elsewhere()
        return _restored, (type(self), self.settings, elsewhere)

    def __repr__(self) -> str:
        mock = self.settings.mock
        return f"RegistryClient({', '.join(self.settings.urls) if mock is None else f'mock://{mock}'})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._transport.close()

    def ask(self, read: Callable[[Any], T], method: str, path: str, **more: Unpack[RequestParts]) -> T:
        """Send one request and return its answer as `read` understands it.

        Args:
            read: turns the parsed JSON of the answer into the result; it raises a built-in exception for unexpected
                JSON.
            method: the HTTP method.
            path: the path after the registry's address, with quoted segments (`strata.http.paths.segment`).
            **more: `query`, a mapping of strings, and `body`, a mapping that is sent as JSON.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If there is no usable answer after all retries.
            TokenError: If the OAuth token endpoint gives no token.
            SerdeError: If the answer is not what `read` expects, is not JSON or is too long.
        """
        answer = self._transport.request(method, path, **more)
        try:
            return read(answer)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            raise SerdeError(f"the answer to {method} {path} is not understood; is it a schema registry?") from None


def flags_set(**flags: bool) -> dict[str, str]:
    """Return the flags that are set: a missing flag means false, and old registries never see the new ones."""
    return {name: "true" for name, value in flags.items() if value}


def strings(answer: Iterable[object]) -> list[str]:
    """Read an answer that lists texts."""
    return [str(text) for text in answer]


def numbers(answer: Iterable[str | int]) -> list[int]:
    """Read an answer that lists numbers, such as versions."""
    return [int(number) for number in answer]


def context_of(subject: str | None) -> str:
    """Return the `:.context:` in front of a qualified subject; empty for the default context or None."""
    if subject is None or not subject.startswith(":.") or ":" not in subject[2:]:
        return ""
    return subject[: subject.index(":", 2) + 1]


def _restored(client_class: type[_R], settings: ClientSettings, observer: Callable[[], Observer] | None) -> _R:
    return client_class.from_settings(settings, observer=None if observer is None else observer())
