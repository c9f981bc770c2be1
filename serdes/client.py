"""The client of the schema registry's REST API.

Each method calls one route. The client caches what never changes: a schema by its id or GUID, and the answer to a
registration. It also caches an unknown id for a few seconds, so that a topic full of damaged frames does not cause one
request per record.

Rules of this file: retries and JSON text belong to `strata.serdes.transport`, formats to the serializers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode
from uuid import UUID

from strata.serdes.cache import SharedCache
from strata.serdes.errors import RegistryError, SerdeError
from strata.serdes.model import (
    CompatibilityResult,
    Metadata,
    Reference,
    RegisteredSchema,
    Rule,
    RuleSet,
    Schema,
    schema_given,
)
from strata.serdes.settings import ClientSettings
from strata.serdes.transport import Transport

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

    It pickles as its settings: an unpickled client opens its own connections.

    Every method that sends a request raises `RegistryError` if the registry rejects it, `RegistryUnavailable` if there
    is no usable answer after all retries, `TokenError` if the OAuth token endpoint gives no token, and `SerdeError` if
    the answer is too long or is not that of a schema registry. The methods name the error codes to expect.

    Args:
        url: the registry's address, or several addresses of the same registry.
        **options: fields of `ClientSettings`, such as username and password, token, timeout, retries, cache_size.

    Raises:
        ValueError: If a setting is out of range or settings contradict each other.
        TypeError: If an option is unknown.
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
        """Return a client for existing settings.

        Args:
            settings: the address, credentials and limits.
            clock: returns seconds that never go back; for the expiry of unknown ids.
            transport: sends the requests instead of HTTP.
        """
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
        """Send one request and return its answer as `read` understands it.

        Args:
            read: turns the parsed JSON of the answer into the result; it raises a built-in exception for unexpected
                JSON.
            method: the HTTP method.
            path: the path after the registry's address, with quoted segments (`segment`).
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

    # Schemas

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """Return the schema with an id.

        Args:
            schema_id: the id, as in a frame.
            subject: a subject whose context the id belongs to; without it the default context.

        Raises:
            RegistryError: With error code 40403 if the id is unknown; cached for `missing_ttl` seconds.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        query = {} if subject is None else {"subject": subject}
        return self._schema(context_of(subject), schema_id, f"/schemas/ids/{schema_id}", query)

    def get_schema_by_guid(self, guid: str | UUID) -> Schema:
        """Return the schema with a GUID, which is the same in every context and registry.

        Raises:
            RegistryError: With error code 40403 if the GUID is unknown; cached for `missing_ttl` seconds.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
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
        """Register a schema under a subject, or return the version that already holds it.

        Args:
            subject: the subject, with its context if it is not in the default one.
            schema: the schema; a text is Avro.
            normalize: whether the registry compares and stores the normalized text.

        Raises:
            RegistryError: With status 409 if the schema is incompatible, error code 42201 if it is invalid, 42205 if
                the subject is read-only.
            RegistryUnavailable: If there is no usable answer after all retries.
            TypeError: If `schema` is neither a text nor a `Schema`.
        """
        return self._registered("register", subject, schema, normalize)

    def lookup(
        self, subject: str, schema: Schema | str, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """Return the version of a subject that holds a schema, without registering it.

        Args:
            subject: the subject, with its context if it is not in the default one.
            schema: the schema; a text is Avro.
            normalize: whether the registry compares normalized texts.
            deleted: whether to find soft-deleted versions too.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown, 40403 if it does not hold the schema.
            RegistryUnavailable: If there is no usable answer after all retries.
            TypeError: If `schema` is neither a text nor a `Schema`.
        """
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
        """Return the (subject, version) pairs that hold the schema with an id.

        Raises:
            RegistryError: With error code 40403 if the id is unknown.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        return self.ask(
            lambda it: [(str(one["subject"]), int(one["version"])) for one in it],
            "GET",
            f"/schemas/ids/{schema_id}/versions",
        )

    # Subjects and versions

    def get_subjects(self, *, deleted: bool = False) -> list[str]:
        """Return the names of all subjects; `deleted` adds the soft-deleted ones.

        Raises:
            RegistryError: If the registry rejects the request.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        return self.ask(_strings, "GET", "/subjects", query=_flags(deleted=deleted))

    def get_versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject in ascending order; `deleted` adds the soft-deleted ones.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        return self.ask(_numbers, "GET", _subject(subject, "versions"), query=_flags(deleted=deleted))

    def get_version(
        self, subject: str, version: int | Literal["latest"] = LATEST, *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return one version of a subject; `deleted` finds a soft-deleted one too.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown, 40402 if the version is.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        path = _subject(subject, "versions", str(version))
        query = _flags(deleted=deleted)
        return self.ask(lambda it: RegisteredSchema.from_answer(it, subject), "GET", path, query=query)

    def get_latest_with_metadata(
        self, subject: str, metadata: Mapping[str, str], *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return the newest version of a subject whose metadata has all these properties.

        Args:
            subject: the subject.
            metadata: property names and the values that they must have.
            deleted: whether to find soft-deleted versions too.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown, 40403 if no version has the properties.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        pairs = [pair for name, value in metadata.items() for pair in (("key", name), ("value", value))]
        path = f"{_subject(subject, 'metadata')}?{urlencode([*pairs, *_flags(deleted=deleted).items()])}"
        return self.ask(lambda it: RegisteredSchema.from_answer(it, subject), "GET", path)

    def get_associated_subjects(self, topic: str, field: str = "value", *, cluster: str = "-") -> list[str]:
        """Return the subjects that the registry associates with the keys or values of a topic.

        Args:
            topic: the Kafka topic.
            field: `key` or `value`.
            cluster: the id of the Kafka cluster; `-` is any.

        Raises:
            RegistryError: With status 404 if the registry lacks this route.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        return self.ask(
            lambda it: [str(one["subject"]) for one in it],
            "GET",
            f"/associations/resources/{segment(cluster)}/{segment(topic)}",
            query={"resourceType": "topic", "associationType": field},
        )

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete a subject and return the deleted versions.

        Args:
            subject: the subject.
            permanent: hard-delete it; it must be soft-deleted first.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown, 40404 if it is soft-deleted already, 40405
                if `permanent` comes first, 42206 if other schemas refer to it.
            RegistryUnavailable: If there is no usable answer; the deletion may or may not have happened.
        """
        versions = self.ask(_numbers, "DELETE", _subject(subject), query=_flags(permanent=permanent))
        self._registrations.discard(lambda key: key[1] == subject)
        return versions

    def delete_version(self, subject: str, version: int | Literal["latest"], *, permanent: bool = False) -> int:
        """Delete one version of a subject and return its number.

        Args:
            subject: the subject.
            version: the version.
            permanent: hard-delete it; it must be soft-deleted first.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown, 40402 if the version is, 40406 if it is
                soft-deleted already, 40407 if `permanent` comes first, 42206 if other schemas refer to it.
            RegistryUnavailable: If there is no usable answer; the deletion may or may not have happened.
        """
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
        """Check whether a schema is compatible with a subject; the result is true or false and carries messages.

        Args:
            subject: the subject.
            schema: the schema; a text is Avro.
            version: the version to compare with; None compares with all versions that a registration would.
            normalize: whether the registry normalizes the schema first.
            verbose: whether the result has messages.

        Raises:
            RegistryError: With error code 40402 if the version is unknown, 42201 if the schema is invalid and `verbose`
                is false.
            RegistryUnavailable: If there is no usable answer after all retries.
            TypeError: If `schema` is neither a text nor a `Schema`.
        """
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
        """Return the config of a subject, or the global one; its level is under `compatibilityLevel`.

        Args:
            subject: the subject; None is the global config.
            default_to_global: whether a subject without a config gets the one in force.

        Raises:
            RegistryError: With error code 40408 if the subject has no config.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        query = _flags(defaultToGlobal=default_to_global)
        return self.ask(_properties, "GET", _scope("config", subject), query=query)

    def set_config(self, compatibility: str | None = None, subject: str | None = None, **others: Any) -> dict[str, Any]:
        """Merge properties into the config of a subject, or the global one, and return the result.

        Args:
            compatibility: the level, such as `BACKWARD`.
            subject: the subject; None is the global config.
            **others: other properties under their names on the wire; None clears one, the absent ones are kept.

        Raises:
            RegistryError: With error code 42203 if the level is unknown, 42205 if the subject is read-only.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        body = others if compatibility is None else {"compatibility": compatibility, **others}
        return self.ask(_properties, "PUT", _scope("config", subject), body=body)

    def delete_config(self, subject: str | None = None) -> dict[str, Any]:
        """Delete the config of a subject, or the global one, and return the deleted config.

        Raises:
            RegistryError: With error code 40401 if the subject has no config.
            RegistryUnavailable: If there is no usable answer; the deletion may or may not have happened.
        """
        return self.ask(_properties, "DELETE", _scope("config", subject))

    def get_mode(self, subject: str | None = None, *, default_to_global: bool = False) -> str:
        """Return the mode of a subject, or the global one.

        Args:
            subject: the subject; None is the global mode.
            default_to_global: whether a subject without a mode gets the one in force.

        Raises:
            RegistryError: With error code 40409 if the subject has no mode.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        query = _flags(defaultToGlobal=default_to_global)
        return self.ask(lambda it: str(it["mode"]), "GET", _scope("mode", subject), query=query)

    def set_mode(self, mode: str, subject: str | None = None, *, force: bool = False) -> str:
        """Set the mode of a subject, or the global one, and return it.

        Args:
            mode: READWRITE, READONLY, IMPORT or, globally, FORWARD.
            subject: the subject; None is the global mode.
            force: whether to enter IMPORT although there are schemas.

        Raises:
            RegistryError: With error code 42204 if the mode is unknown, 42205 if the registry does not allow the
                change.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        query = _flags(force=force)
        return self.ask(lambda it: str(it["mode"]), "PUT", _scope("mode", subject), query=query, body={"mode": mode})

    def delete_mode(self, subject: str | None = None) -> str | None:
        """Delete the mode of a subject, or the global one, and return the deleted mode.

        Raises:
            RegistryError: With error code 40401 if the subject has no mode.
            RegistryUnavailable: If there is no usable answer; the deletion may or may not have happened.
        """
        mode = self.ask(lambda it: it.get("mode"), "DELETE", _scope("mode", subject))
        return None if mode is None else str(mode)


_Registration = tuple[str, str, Schema, bool, bool]


@dataclass(frozen=True, slots=True)
class _Missing:
    """A cached answer for an id that the registry does not know."""

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
    """Return the flags that are set: a missing flag means false, and old registries never see the new ones."""
    return {name: "true" for name, value in flags.items() if value}


def segment(text: str) -> str:
    """Return a text as a quoted path segment; proxies would resolve a segment of dots alone as a directory."""
    return text.replace(".", "%2E") if text in (".", "..") else quote(text, safe="")


def _subject(subject: str, *tail: str) -> str:
    return "/".join(["/subjects", segment(subject), *tail])


def _scope(kind: str, subject: str | None) -> str:
    return f"/{kind}" if subject is None else f"/{kind}/{segment(subject)}"


def context_of(subject: str | None) -> str:
    """Return the `:.context:` in front of a qualified subject; empty for the default context or None."""
    if subject is None or not subject.startswith(":.") or ":" not in subject[2:]:
        return ""
    return subject[: subject.index(":", 2) + 1]
