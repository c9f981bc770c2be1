"""Reads a whole registry over REST into the records that its log would hold.

REST does not show the configuration and mode of a subject without any version, live or deleted, except Strata's, nor
whether the registry-wide configuration is set or the service's default. The latter is treated as set, so that the same
configuration remains in force.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Required, TypedDict, TypeVar

from strata.http.paths import setting_path
from strata.registry.core.subject_names import GLOBAL_SCOPE
from strata.registry.transfer.copies import Copy, TransferError, copy_of_records
from strata.registry.transfer.progress import track
from strata.registry.transfer.rest import (
    THREADS,
    Answer,
    AnswerTooLong,
    Connection,
    Forbidden,
    is_list,
    is_names,
    is_object,
)
from strata.registry.transfer.rest_associations import read_associations
from strata.registry.transfer.rest_keys import read_keys
from strata.storage.log import Record
from strata.storage.record_json import RecordError, encode, from_properties
from strata.storage.records import (
    CONFIG_FIELDS,
    DEFAULT_CONTEXT,
    ConfigKey,
    ConfigValue,
    ContextKey,
    HighWaterKey,
    ModeKey,
    SchemaKey,
    SchemaValue,
    Subject,
    context_of,
)

__all__ = ["listed_versions", "read_schemas", "read_service"]

_PAGE = 1000
_EVERYWHERE = ":*:"
_READWRITE = "READWRITE"
Scope = str | None


class ServedVersion(TypedDict, total=False):
    """A version as `GET /schemas` shows it, of which only subject and version have been checked."""

    subject: Required[str]
    version: Required[int]
    id: int
    guid: str
    deleted: bool
    ts: object
    schema: str


class _NameSettings(TypedDict, total=False):
    """The settings of a name, as `GET /v1/settings` lists them."""

    name: Required[str]
    config: dict[str, object] | None
    mode: str | None


_T = TypeVar("_T")


def read_service(connection: Connection) -> Copy:
    """Read everything that a registry shows over REST.

    Raises:
        TransferError: if the registry does not respond, is too old to list its schemas, or changed during the read.
    """
    served = listed_versions(connection)
    subjects = sorted({item["subject"] for item in served})
    names = connection.get("/subjects", is_names, deleted="true", subjectPrefix=_EVERYWHERE)
    if sorted({_plain(name) for name in names}) != subjects:
        raise TransferError(
            f"{connection.name} changed while it was read; put it into mode READONLY and run the command again"
        )
    records = _recorded(connection, served)
    in_use = {*map(context_of, subjects)}
    contexts = sorted({*_contexts(connection), *in_use} - {DEFAULT_CONTEXT})
    listed = _listed_settings(connection)
    records += _settings(connection, [*(f":{name}:" for name in contexts), *subjects], listed)
    records += track(f"reading {connection.name}, encryption keys", read_keys(connection))
    associations = read_associations(connection, subjects, at_once=listed is not None)
    records += associations or ()
    copy = copy_of_records(connection.name, records)
    guids = {(item["subject"], item["version"]): item["guid"] for item in served if item.get("guid")}
    notes = tuple(f"left out a version: {entry.reason}" for entry in copy.state.set_aside)
    if exporters := _exporters(connection):
        notes += (f"left out the exporters {', '.join(exporters)}; an export of the log holds them",)
    unlisted = {"record", "rule of access", "exporter"} | ({"association"} if associations is None else set())
    return replace(copy, served_guids=guids, over_rest=True, unlisted=frozenset(unlisted), notes=notes)


def read_schemas(connection: Connection) -> list[Record]:
    """Read the schemas of a registry alone: their versions, the contexts of these, and the highest ids.

    Raises:
        TransferError: if the registry does not respond, or changed during the read.
    """
    return _recorded(connection, listed_versions(connection))


def _recorded(connection: Connection, served: Sequence[ServedVersion]) -> list[Record]:
    in_use = sorted({context_of(item["subject"]) for item in served} - {DEFAULT_CONTEXT})
    records = [encode(ContextKey(name), name) for name in in_use]
    records += [_schema(item, connection) for item in sorted(served, key=_age)]
    return [*records, *_highest_ids(connection, served)]


def listed_versions(connection: Connection, context: str | None = None) -> list[ServedVersion]:
    """Return the versions of a registry as `GET /schemas` shows them, with `deleted`.

    Args:
        connection: the connection to the registry.
        context: the only context to list, other than the default; None for all.

    Raises:
        TransferError: if the registry does not respond, or changed during the read.
    """
    prefix = _EVERYWHERE if context is None else f":{context}:"
    return _marked(connection, list(_listed(connection, deleted=True, prefix=prefix)), prefix)


def _listed(connection: Connection, *, deleted: bool, prefix: str = _EVERYWHERE) -> Iterator[ServedVersion]:
    """Yield all versions page by page, because a service limits the length of a list."""
    seen: set[tuple[str, int]] = set()

    def pages() -> Iterator[list[ServedVersion]]:
        offset, limit = 0, _PAGE
        query = {"subjectPrefix": prefix, "deleted": str(deleted).lower()}
        while True:
            try:
                page = connection.get("/schemas", is_list, **query, offset=offset, limit=limit)
            except AnswerTooLong:
                if limit == 1:
                    raise
                limit = max(1, limit // 10)  # of large schemas fewer fit into an answer
                continue
            if not page:
                return
            yield page
            offset += len(page)

    for page in track(f"reading {connection.name}, pages of schemas", pages()):
        for item in page:
            try:
                item["subject"] = _plain(item["subject"])
                place = item["subject"], int(item["version"])
            except (AttributeError, KeyError, TypeError, ValueError):
                raise TransferError(f"{connection.name} listed an invalid schema: {item}") from None
            if place in seen:
                raise TransferError(
                    f"{connection.name} changed while it was read; put it into mode READONLY and run the command again"
                )
            seen.add(place)
            yield item


def _marked(connection: Connection, served: list[ServedVersion], prefix: str = _EVERYWHERE) -> list[ServedVersion]:
    """Mark soft-deleted versions: older services do not mark them, but can list the live ones alone."""
    if not any("deleted" in item for item in served):
        live = {(item["subject"], item["version"]) for item in _listed(connection, deleted=False, prefix=prefix)}
        for item in served:
            item["deleted"] = (item["subject"], item["version"]) not in live
    return served


def _plain(subject: str) -> str:
    return subject.removeprefix(":.:")


def _contexts(connection: Connection) -> list[str]:
    answer = connection.ask("GET", "/contexts", None, is_names)
    return list(answer.body) if answer.good else []


def _listed_settings(connection: Connection) -> list[_NameSettings] | None:
    """Return the settings of all names, with versions or without; None if they are not listed: only Strata does so."""
    settings: list[_NameSettings] = []
    try:
        while (answer := _page(connection, "/v1/settings", len(settings))).good and answer.body:
            settings += answer.body
    except Forbidden:
        return None  # what a gateway in front of another registry may say to a path that it does not know
    return settings if answer.good else None


def _exporters(connection: Connection) -> list[str]:
    """Return the names of the exporters, as far as they may be listed; their settings are not for other registries."""
    try:
        answer = connection.ask("GET", "/exporters", None, is_names)
    except Forbidden:
        return []
    return sorted(answer.body) if answer.good else []


def _page(connection: Connection, path: str, offset: int) -> Answer:
    return connection.ask("GET", path, None, _is_objects, offset=offset, limit=_PAGE)


def _is_objects(body: object) -> bool:
    return is_list(body) and all(map(is_object, body))


def _age(item: ServedVersion) -> tuple[int, str, int]:
    return item["id"], item["subject"], item["version"]


def _schema(item: ServedVersion, connection: Connection) -> Record:
    try:
        value = from_properties(SchemaValue, item)
    except RecordError as error:
        raise TransferError(f"{connection.name} listed an invalid schema: {error}; {item}") from None
    written = item.get("ts")
    known = written if type(written) is int and written > 0 else None
    return replace(encode(SchemaKey(value.subject, value.version), value), timestamp=known)


def _highest_ids(connection: Connection, served: Sequence[ServedVersion]) -> Iterator[Record]:
    """Yield a high-water record for each context that has given a higher id than it still holds."""
    highest: dict[str, ServedVersion] = {}
    for item in sorted(served, key=_age):
        highest[context_of(item["subject"])] = item
    for name, item in sorted(highest.items()):
        path = f"/schemas/ids/{item['id']}"
        shown = connection.get(path, is_object, subject=item["subject"], fetchMaxId="true")
        highest_id = shown.get("maxId")
        if isinstance(highest_id, int) and highest_id > item["id"]:
            yield encode(HighWaterKey(name), highest_id)


def _settings(connection: Connection, names: Sequence[str], listed: Sequence[_NameSettings] | None) -> Iterator[Record]:
    """Yield the settings of the registry and of names.

    Args:
        connection: the connection to the registry.
        names: the names to ask for one by one, if the registry does not list settings.
        listed: the settings that it lists; None if it does not.

    Raises:
        TransferError: if the registry does not respond, or with something other than settings.
    """
    scopes: list[Scope] = [GLOBAL_SCOPE, None, *(sorted({*names}) if listed is None else ())]
    configs = _of_each(connection, "config", scopes, _config)
    modes = _of_each(connection, "mode", scopes, _mode)
    try:
        configs |= {
            item["name"]: _config(config) for item in listed or () if (config := item.get("config")) is not None
        }
        modes |= {item["name"]: mode for item in listed or () if (mode := item.get("mode")) is not None}
    except (KeyError, TypeError) as error:
        raise TransferError(f"{connection.name} listed invalid settings ({error!r})") from None
    # The registry's own answer is never empty: without a setting it shows the wider scope's, or the default.
    if configs.get(GLOBAL_SCOPE) == configs.get(None):
        configs.pop(None, None)
    if modes.get(None) == modes.get(GLOBAL_SCOPE, _READWRITE):
        modes.pop(None, None)
    for scope, config in configs.items():
        yield encode(ConfigKey(_scope(scope)), ConfigValue(config))
    for scope, mode in modes.items():
        yield encode(ModeKey(_scope(scope)), mode)


def _mode(body: Mapping[str, object]) -> str | None:
    mode = body.get("mode")
    return None if mode is None else str(mode)


def _config(body: Mapping[str, object]) -> dict[str, object]:
    return {name: body[name] for name in CONFIG_FIELDS if name in body}


def _of_each(
    connection: Connection, setting: str, scopes: Sequence[Scope], taken: Callable[[dict[str, object]], _T | None]
) -> dict[Scope, _T]:
    """Return a setting by scope, without the scopes that have no setting of their own."""

    def read(scope: Scope) -> _T | None:
        answer = connection.ask("GET", setting_path(setting, scope), None, is_object)
        if not answer.good and not answer.missing:
            raise TransferError(f"{connection.name} did not return the {setting} of {scope!r} (error {answer.code})")
        return taken(answer.body) if answer.good else None

    with ThreadPoolExecutor(THREADS) as pool:
        values = track(f"reading {connection.name}, {setting}", pool.map(read, scopes), len(scopes))
        return {scope: value for scope, value in zip(scopes, values, strict=True) if value is not None}


def _scope(scope: Scope) -> Subject | None:
    return None if scope is None else Subject(scope)
