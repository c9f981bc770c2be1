"""The routes of the REST API over a registry in memory, as the clients call them.

Rules of this file: a row for each route; decisions belong to `registry.py`.
"""

import json
import re
from collections.abc import Callable, Mapping
from threading import RLock
from typing import TypeVar
from urllib.parse import parse_qsl, unquote, urlencode
from weakref import WeakValueDictionary

from strata.compat.schema import SchemaFormat
from strata.serdes.errors import RegistryError, SerdeError
from strata.serdes.memory.registry import MemoryRegistry

__all__ = ["MemoryTransport", "registry_named"]

_NOT_FOUND = 404

_T = TypeVar("_T")


class _Request:
    """A request with its query and body."""

    def __init__(self, pairs: list[tuple[str, str]], body: Mapping[str, object] | None) -> None:
        self.pairs, self.body = pairs, body or {}
        self._query = dict(pairs)

    def flag(self, name: str) -> bool:
        return self._query.get(name, "").lower() == "true"

    def text(self, name: str) -> str | None:
        return self._query.get(name)

    def page(self, items: list[_T]) -> list[_T]:
        first, most = int(self._query.get("offset", 0)), int(self._query.get("limit", -1))
        return items[first:] if most < 0 else items[first : first + most]


_Route = Callable[..., object]


def _subjects(registry: MemoryRegistry, request: _Request) -> object:
    names = registry.subjects(deleted=request.flag("deleted"), deleted_only=request.flag("deletedOnly"))
    prefix = request.text("subjectPrefix") or ""
    return request.page([name for name in names if name.startswith(prefix)])


def _versions(registry: MemoryRegistry, request: _Request, subject: str) -> object:
    versions = registry.versions(subject, deleted=request.flag("deleted"), deleted_only=request.flag("deletedOnly"))
    return request.page([version_.number for version_ in versions])


def _version(registry: MemoryRegistry, request: _Request, subject: str, number: str) -> object:
    return registry.version(subject, number, deleted=request.flag("deleted")).to_json()


def _with_metadata(registry: MemoryRegistry, request: _Request, subject: str) -> object:
    keys = [value for name, value in request.pairs if name == "key"]
    values = [value for name, value in request.pairs if name == "value"]
    wanted = dict(zip(keys, values, strict=False))
    return registry.with_metadata(subject, wanted, deleted=request.flag("deleted")).to_json()


def _referrers(registry: MemoryRegistry, request: _Request, subject: str, number: str) -> object:
    return request.page(registry.referrers(registry.version(subject, number)))


def _schema(registry: MemoryRegistry, request: _Request, schema_id: str) -> object:
    return registry.content(_integer(schema_id), request.text("subject")).to_json()


def _holders(registry: MemoryRegistry, request: _Request, schema_id: str) -> object:
    versions = registry.holders(_integer(schema_id), request.text("subject"), deleted=request.flag("deleted"))
    return request.page([{"subject": version.subject, "version": version.number} for version in versions])


def _holding_subjects(registry: MemoryRegistry, request: _Request, schema_id: str) -> object:
    versions = registry.holders(_integer(schema_id), request.text("subject"), deleted=request.flag("deleted"))
    return request.page(list(dict.fromkeys(version.subject for version in versions)))


def _register(registry: MemoryRegistry, request: _Request, subject: str) -> object:
    return registry.register(subject, request.body, normalize=request.flag("normalize")).to_json()


def _lookup(registry: MemoryRegistry, request: _Request, subject: str) -> object:
    flags = {name: request.flag(name) for name in ("normalize", "deleted")}
    return registry.lookup(subject, request.body, **flags).to_json()


def _compatibility(registry: MemoryRegistry, request: _Request, subject: str, number: str | None = None) -> object:
    flags = {name: request.flag(name) for name in ("normalize", "verbose")}
    return registry.compatibility(subject, number, request.body, **flags)


def _set_mode(registry: MemoryRegistry, request: _Request, subject: str | None = None) -> object:
    return {"mode": registry.set_mode(subject, request.body.get("mode"), force=request.flag("force"))}


def _mode(registry: MemoryRegistry, request: _Request, subject: str | None = None) -> object:
    return {"mode": registry.mode(subject, in_force=request.flag("defaultToGlobal"))}


def _config(registry: MemoryRegistry, request: _Request, subject: str | None = None) -> object:
    return registry.config(subject, in_force=request.flag("defaultToGlobal"))


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise RegistryError(_NOT_FOUND, _NOT_FOUND, "HTTP 404 Not Found") from None


_S, _V = "/subjects/([^/]+)", "/versions/([^/]+)"
_ROUTES: tuple[tuple[str, str, _Route], ...] = (
    ("GET", "/schemas/types", lambda _, __: [format_.value for format_ in SchemaFormat]),
    ("GET", "/schemas/ids/([^/]+)", _schema),
    ("GET", "/schemas/ids/([^/]+)/versions", _holders),
    ("GET", "/schemas/ids/([^/]+)/subjects", _holding_subjects),
    ("GET", "/schemas/guids/([^/]+)", lambda registry, _, guid: registry.content_by_guid(guid).to_json()),
    ("GET", "/contexts", lambda registry, request: request.page(registry.contexts())),
    ("GET", "/subjects", _subjects),
    ("POST", _S, _lookup),
    ("DELETE", _S, lambda registry, request, name: registry.delete_subject(name, permanent=request.flag("permanent"))),
    ("GET", _S + "/versions", _versions),
    ("POST", _S + "/versions", _register),
    ("GET", _S + "/metadata", _with_metadata),
    ("GET", _S + _V, _version),
    (
        "DELETE",
        _S + _V,
        lambda registry, request, name, number: registry.delete_version(
            name, number, permanent=request.flag("permanent")
        ),
    ),
    ("GET", _S + _V + "/referencedby", _referrers),
    ("POST", "/compatibility" + _S + "/versions", _compatibility),
    ("POST", "/compatibility" + _S + _V, _compatibility),
    ("GET", "/config(?:/([^/]+))?", _config),
    ("PUT", "/config(?:/([^/]+))?", lambda registry, request, name: registry.set_config(name, request.body)),
    ("DELETE", "/config(?:/([^/]+))?", lambda registry, _, name: registry.delete_config(name)),
    ("GET", "/mode(?:/([^/]+))?", _mode),
    ("PUT", "/mode(?:/([^/]+))?", _set_mode),
    ("DELETE", "/mode(?:/([^/]+))?", lambda registry, _, name: {"mode": registry.delete_mode(name)}),
    ("GET", "/associations/resources/.*", lambda *_: []),
)
"""The method, the path and what answers it."""


class MemoryTransport:
    """Answers the requests of a client from a registry in memory, one at a time.

    Args:
        registry: the registry; threads and clients may share it.
    """

    def __init__(self, registry: "SharedRegistry") -> None:
        self._registry = registry

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> object:
        """Return the JSON of the answer.

        Args:
            method: the HTTP method.
            path: the path, with quoted segments, and a query if it has one.
            query: query parameters.
            body: the body.

        Raises:
            RegistryError: If the registry rejects the request, or has no such route.
        """
        bare, _, more = path.partition("?")
        pairs = parse_qsl(more) + parse_qsl(urlencode(query or {}))
        for verb, pattern, answer in _ROUTES:
            match = re.fullmatch(pattern, bare)
            if verb == method and match is not None:
                segments = [None if group is None else unquote(group) for group in match.groups()]
                with self._registry.lock:
                    return json.loads(json.dumps(answer(self._registry.content, _Request(pairs, body), *segments)))
        raise RegistryError(_NOT_FOUND, _NOT_FOUND, f"a registry in memory has no route {method} {bare}")


class SharedRegistry:
    """A registry in memory with its lock."""

    def __init__(self) -> None:
        self.content = MemoryRegistry()
        self.lock = RLock()


_named: "WeakValueDictionary[str, SharedRegistry]" = WeakValueDictionary()
_lock = RLock()


def registry_named(name: str) -> SharedRegistry:
    """Return the registry of a name, the same for all clients that are alive; a new one for an empty name.

    Raises:
        SerdeError: If the name has a slash.
    """
    if "/" in name:
        raise SerdeError(f"expected a URL such as mock://name, got mock://{name[:40]}")
    if not name:
        return SharedRegistry()
    with _lock:
        registry = _named.get(name)
        if registry is None:
            registry = _named[name] = SharedRegistry()
        return registry
