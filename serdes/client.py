"""The registry as Python calls.

Each call is one route. What never changes is remembered: a schema by its id, the answer to a registration. An id that
the registry does not know is remembered for a few seconds too, or a topic full of damaged frames would become as many
requests.

Rules of this file: no retry and no JSON text here, that is the transport's; no Avro here, that is `serdes.avro`'s.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID

from serdes.cache import SharedCache
from serdes.errors import RegistryError, SerdeError
from serdes.model import (
    CompatibilityResult,
    Metadata,
    Reference,
    RegisteredSchema,
    Rule,
    RuleSet,
    Schema,
    schema_given,
)
from serdes.settings import ClientSettings
from serdes.transport import Transport

__all__ = [
    "ClientSettings",
    "CompatibilityResult",
    "Metadata",
    "Reference",
    "RegisteredSchema",
    "RegistryClient",
    "Rule",
    "RuleSet",
    "Schema",
    "context_of",
    "segment",
]

T = TypeVar("T")

LATEST: Literal["latest"] = "latest"
_UNKNOWN_SCHEMA = 40403


class RegistryClient:
    """A client of one schema registry, to be shared by all threads of a process.

    Args:
        url: the registry's address, or several addresses of the same registry.
        **options: see `ClientSettings`: username and password or token, timeout, retries, cache_size …

    It pickles as its settings: a client that arrives in another process opens its own connections.
    """

    def __init__(self, url: str | Sequence[str], **options: Any) -> None:
        self._open(ClientSettings.of(url, **options))

    @classmethod
    def from_settings(
        cls,
        settings: ClientSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        transport: Transport | None = None,
    ) -> "RegistryClient":
        """A client from settings made elsewhere; `transport` asks in a way of its own."""
        client = cls.__new__(cls)
        client._open(settings, clock=clock, transport=transport)
        return client

    def _open(
        self,
        settings: ClientSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        transport: Transport | None = None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._transport = Transport(settings) if transport is None else transport
        self._schemas: SharedCache[tuple[str, int | str], Schema | _Missing] = SharedCache(settings.cache_size)
        self._registrations: SharedCache[_Registration, RegisteredSchema] = SharedCache(settings.cache_size)

    def __reduce__(self) -> tuple[Callable[[ClientSettings], "RegistryClient"], tuple[ClientSettings]]:
        return type(self).from_settings, (self.settings,)

    def __repr__(self) -> str:
        return f"RegistryClient({', '.join(self.settings.urls)})"

    def __enter__(self) -> "RegistryClient":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self._transport.close()

    def ask(self, read: Callable[[Any], T], method: str, path: str, **more: Any) -> T:
        """One request, its answer read by a function that may trip over what it did not expect.

        Args:
            read: the JSON of an answer → what the caller wants; raises where it is not as it should be.
            method: of HTTP.
            path: after the registry's address, its segments quoted (`segment`).
            **more: `query` and `body`.
        """
        answer = self._transport.request(method, path, **more)
        try:
            return read(answer)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            raise SerdeError(f"the answer to {method} {path} is not understood; is it a schema registry?") from None

    # Schemas

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """The schema with an id; `subject` only says in which context the id counts."""
        query = {} if subject is None else {"subject": subject}
        return self._schema(context_of(subject), schema_id, f"/schemas/ids/{schema_id}", query)

    def get_schema_by_guid(self, guid: str | UUID) -> Schema:
        """The schema with a GUID, which is the same in every context and registry."""
        return self._schema("guid", str(guid), f"/schemas/guids/{guid}", {})

    def _schema(self, context: str, key: int | str, path: str, query: dict[str, str]) -> Schema:
        found = self._schemas.get(
            (context, key),
            lambda: self._fetch(path, query),
            is_fresh=lambda value: isinstance(value, Schema) or self._clock() < value.until,
        )
        if isinstance(found, _Missing):
            raise RegistryError(found.status, found.error_code, found.message)
        return found

    def _fetch(self, path: str, query: dict[str, str]) -> "Schema | _Missing":
        try:
            return self.ask(Schema.from_answer, "GET", path, query=query)
        except RegistryError as error:
            if error.error_code != _UNKNOWN_SCHEMA:
                raise
            until = self._clock() + self.settings.missing_ttl
            return _Missing(error.status, error.error_code, error.message, until)

    def register(self, subject: str, schema: Schema | str, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema under a subject, or find it there; an incompatible one raises with status 409."""
        return self._registered("register", subject, schema, normalize)

    def lookup(
        self, subject: str, schema: Schema | str, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """Find a schema under a subject without registering it; `deleted` finds soft-deleted versions too."""
        return self._registered("lookup", subject, schema, normalize, deleted=deleted)

    def _registered(
        self, verb: str, subject: str, schema: Schema | str, normalize: bool, *, deleted: bool = False
    ) -> RegisteredSchema:
        sent = schema_given(schema)
        path = _subject(subject, "versions") if verb == "register" else _subject(subject)

        def ask() -> RegisteredSchema:
            query, body = _flags(normalize=normalize, deleted=deleted), sent.to_request()
            return self.ask(
                lambda it: RegisteredSchema.from_answer(it, subject, sent), "POST", path, query=query, body=body
            )

        return self._registrations.get((verb, subject, sent, normalize, deleted), ask)

    def get_schema_versions(self, schema_id: int) -> list[tuple[str, int]]:
        """The subjects and versions that hold the schema with an id."""
        return self.ask(
            lambda it: [(str(one["subject"]), int(one["version"])) for one in it],
            "GET",
            f"/schemas/ids/{schema_id}/versions",
        )

    # Subjects and versions

    def get_subjects(self, *, deleted: bool = False) -> list[str]:
        """The names of all subjects; `deleted` adds the soft-deleted ones."""
        return self.ask(_strings, "GET", "/subjects", query=_flags(deleted=deleted))

    def get_versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """The versions of a subject, ascending."""
        return self.ask(_numbers, "GET", _subject(subject, "versions"), query=_flags(deleted=deleted))

    def get_version(
        self, subject: str, version: int | Literal["latest"] = LATEST, *, deleted: bool = False
    ) -> RegisteredSchema:
        """One version of a subject."""
        path = _subject(subject, "versions", str(version))
        query = _flags(deleted=deleted)
        return self.ask(lambda it: RegisteredSchema.from_answer(it, subject), "GET", path, query=query)

    def get_latest_with_metadata(
        self, subject: str, metadata: Mapping[str, str], *, deleted: bool = False
    ) -> RegisteredSchema:
        """The newest version whose metadata has every one of these properties."""
        pairs = [pair for name, value in metadata.items() for pair in (("key", name), ("value", value))]
        path = f"{_subject(subject, 'metadata')}?{urlencode([*pairs, *_flags(deleted=deleted).items()])}"
        return self.ask(lambda it: RegisteredSchema.from_answer(it, subject), "GET", path)

    def get_associated_subjects(self, topic: str, field: str = "value", *, cluster: str = "-") -> list[str]:
        """The subjects associated with the keys or values of a topic; `cluster` is its Kafka cluster, `-` any."""
        return self.ask(
            lambda it: [str(one["subject"]) for one in it],
            "GET",
            f"/associations/resources/{segment(cluster)}/{segment(topic)}",
            query={"resourceType": "topic", "associationType": field},
        )

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete a subject, softly first; answers the versions that went."""
        versions = self.ask(_numbers, "DELETE", _subject(subject), query=_flags(permanent=permanent))
        self._registrations.discard(lambda key: key[1] == subject)
        return versions

    def delete_version(self, subject: str, version: int | Literal["latest"], *, permanent: bool = False) -> int:
        """Delete one version, softly first; answers its number."""
        path = _subject(subject, "versions", str(version))
        number = self.ask(int, "DELETE", path, query=_flags(permanent=permanent))
        self._registrations.discard(lambda key: key[1] == subject)
        return number

    def test_compatibility(
        self,
        subject: str,
        schema: Schema | str,
        version: int | Literal["latest"] | None = LATEST,
        *,
        normalize: bool = False,
        verbose: bool = True,
    ) -> CompatibilityResult:
        """Whether a schema fits one version, or with None all that a registration would be held against."""
        sent = schema_given(schema)
        tail = ["versions"] if version is None else ["versions", str(version)]
        return self.ask(
            CompatibilityResult.from_answer,
            "POST",
            "/compatibility" + _subject(subject, *tail),
            query=_flags(normalize=normalize, verbose=verbose),
            body=sent.to_request(),
        )

    # Config and mode

    def get_config(self, subject: str | None = None, *, default_to_global: bool = False) -> dict[str, Any]:
        """The config of a subject, or the global one; its level is under `compatibilityLevel`."""
        query = _flags(defaultToGlobal=default_to_global)
        return self.ask(_properties, "GET", _scope("config", subject), query=query)

    def set_config(self, compatibility: str | None = None, subject: str | None = None, **others: Any) -> dict[str, Any]:
        """Set the compatibility level, and other properties under their names on the wire; the rest is kept."""
        body = others if compatibility is None else {"compatibility": compatibility, **others}
        return self.ask(_properties, "PUT", _scope("config", subject), body=body)

    def delete_config(self, subject: str | None = None) -> dict[str, Any]:
        """Forget the config of a subject, or the global one; answers what it was."""
        return self.ask(_properties, "DELETE", _scope("config", subject))

    def get_mode(self, subject: str | None = None, *, default_to_global: bool = False) -> str:
        """The mode of a subject, or the global one."""
        query = _flags(defaultToGlobal=default_to_global)
        return self.ask(lambda it: str(it["mode"]), "GET", _scope("mode", subject), query=query)

    def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> str:
        """Set the mode of a subject, or the global one."""
        query = _flags(force=force)
        return self.ask(lambda it: str(it["mode"]), "PUT", _scope("mode", subject), query=query, body={"mode": mode})

    def delete_mode(self, subject: str | None = None) -> str | None:
        """Forget the mode of a subject, or the global one; answers what it was."""
        mode = self.ask(lambda it: it.get("mode"), "DELETE", _scope("mode", subject))
        return None if mode is None else str(mode)


_Registration = tuple[str, str, Schema, bool, bool]


@dataclass(frozen=True, slots=True)
class _Missing:
    """How the registry said that it does not know an id, and until when that is believed."""

    status: int
    error_code: int
    message: str
    until: float


def _strings(answer: Any) -> list[str]:
    return [str(one) for one in answer]


def _numbers(answer: Any) -> list[int]:
    return [int(one) for one in answer]


def _properties(answer: Any) -> dict[str, Any]:
    return dict(answer)


def _flags(**flags: bool) -> dict[str, str]:
    """Only what is set: absence means false, and old registries refuse nothing they do not see."""
    return {name: "true" for name, value in flags.items() if value}


def segment(text: str) -> str:
    """A path segment; dots alone would be taken for directories on the way."""
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def _subject(subject: str, *tail: str) -> str:
    return "/".join(["/subjects", segment(subject), *tail])


def _scope(kind: str, subject: str | None) -> str:
    return f"/{kind}" if subject is None else f"/{kind}/{segment(subject)}"


def context_of(subject: str | None) -> str:
    """The `:.context:` in front of a qualified subject, empty for the default context."""
    if subject is None or not subject.startswith(":.") or ":" not in subject[2:]:
        return ""
    return subject[: subject.index(":", 2) + 1]
