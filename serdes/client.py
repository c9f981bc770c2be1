"""The client of the schema registry's REST API.

Each method calls one route. The client caches what never changes: a schema by its id or GUID, and the answer to a
registration. It also caches an unknown id for a few seconds, so that a topic full of damaged frames does not cause one
request per record.

Rules of this file: sending requests belongs to `strata.serdes.requests`, formats to the serializers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack
from urllib.parse import urlencode
from uuid import UUID

from strata.http.paths import segment
from strata.serdes.conf_types import ClientOptions
from strata.serdes.config_client import ConfigClient
from strata.serdes.errors import ErrorCode, RegistryError
from strata.serdes.framing import GlueVersion, SchemaName
from strata.serdes.glue_service import find_glue_version
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
from strata.serdes.observer import Observer
from strata.serdes.registry_protocol import Registry
from strata.serdes.requests import AnyTransport, context_of, flags_set, numbers, strings
from strata.serdes.settings import ClientSettings
from strata.shared_cache import SharedCache

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
    "schema_named",
]

LATEST: Literal["latest"] = "latest"
_NOT_FOUND = 404


class RegistryClient(ConfigClient):
    """A client of one schema registry, to be shared by all threads of a process.

    It pickles as its settings: an unpickled client opens its own connections.

    Every method that sends a request raises `RegistryError` if the registry rejects it, `RegistryUnavailable` if no
    address gives a usable answer after all retries, `TokenError` if the OAuth token endpoint gives no token, and
    `SerdeError` if the answer is too long or is not that of a schema registry. The methods name the error codes to
    expect.

    Args:
        url: the registry's address, several addresses of the same registry, or `ClientSettings`.
        observer: learns of requests, and of the records and rules of the serializers and deserializers that are made
            with this client; see `strata.serdes.observer`.
        **options: fields of `ClientSettings`, such as username and password, token, timeout, retries, cache_size.

    Raises:
        ValueError: If a setting is out of range or settings contradict each other.
        TypeError: If an option is unknown.
    """

    def __init__(
        self,
        url: str | Sequence[str] | ClientSettings,
        *,
        observer: Observer | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._open(ClientSettings.of(url, **options), time.monotonic, None, observer)

    def _open(
        self,
        settings: ClientSettings,
        clock: Callable[[], float],
        transport: AnyTransport | None,
        observer: Observer | None,
    ) -> None:
        super()._open(settings, clock, transport, observer)
        self._schemas: SharedCache[tuple[str, int | str], Schema | _Missing] = SharedCache(settings.cache_size)
        self._registrations: SharedCache[_Registration, RegisteredSchema] = SharedCache(settings.cache_size)

    def clear_caches(self) -> None:
        """Forget all schemas and registrations, so that the registry is asked again."""
        self._schemas.discard(lambda _: True)
        self._registrations.discard(lambda _: True)

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
        return self._schema(context_of(subject), schema_id, lambda: self._answered(f"/schemas/ids/{schema_id}", query))

    def get_schema_by_guid(self, guid: str | UUID) -> Schema:
        """Return the schema with a GUID, which is the same in every context and registry.

        Raises:
            RegistryError: With error code 40403 if the GUID is unknown; cached for `missing_ttl` seconds.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        return self._schema("guid", str(guid), lambda: self._answered(f"/schemas/guids/{guid}", {}))

    def get_schema_by_glue_version(self, version: str | UUID) -> Schema:
        """Return the schema of a version in AWS Glue, whose UUID is in the frames of Glue's serializers.

        A Strata registry knows the versions migrated into it. With the setting `glue_region`, Glue itself is asked.

        Raises:
            MissingExtra: If Glue is to be asked, and botocore is not installed.
            RegistryError: With error code 40403 if the version is unknown; cached for `missing_ttl` seconds.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        if self.settings.glue_region is not None:
            return self._schema("glue", str(version), lambda: find_glue_version(self.settings, str(version)))
        return self._schema("glue", str(version), lambda: self._migrated(str(version)))

    def _schema(self, context: str, key: int | str, load: Callable[[], Schema]) -> Schema:
        schema = self._schemas.get(
            (context, key),
            lambda: self._found(load),
            is_fresh=lambda value: isinstance(value, Schema) or self._clock() < value.until,
        )
        if isinstance(schema, _Missing):
            raise RegistryError(*schema.error)
        return schema

    def _answered(self, path: str, query: dict[str, str]) -> Schema:
        return self.ask(Schema.from_answer, "GET", path, query=query)

    def _migrated(self, version: str) -> Schema:
        """Return the schema of a version that was migrated from Glue; another registry lacks the route."""
        try:
            schemas = self.ask(
                lambda it: [Schema.from_answer(answer) for answer in it], "GET", f"/v1/glue/{segment(version)}"
            )
        except RegistryError as error:
            if error.status != _NOT_FOUND:
                raise
            schemas = []
        for schema in schemas:  # a version that was migrated into several contexts has the same text in all
            return schema
        message = f"the registry has no schema with the version {version} in AWS Glue"
        raise RegistryError(_NOT_FOUND, ErrorCode.SCHEMA_NOT_FOUND, message)

    def _found(self, load: Callable[[], Schema]) -> "Schema | _Missing":
        try:
            return load()
        except RegistryError as error:
            if error.error_code != ErrorCode.SCHEMA_NOT_FOUND:
                raise
            until = self._clock() + self.settings.missing_ttl
            return _Missing((error.status, error.error_code, error.message), until)

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
            query, body = flags_set(normalize=normalize, deleted=deleted), sent.to_request()
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
            lambda it: [(str(pair["subject"]), int(pair["version"])) for pair in it],
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
        return self.ask(strings, "GET", "/subjects", query=flags_set(deleted=deleted))

    def get_versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject in ascending order; `deleted` adds the soft-deleted ones.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        return self.ask(numbers, "GET", _subject(subject, "versions"), query=flags_set(deleted=deleted))

    def get_version(
        self, subject: str, version: int | Literal["latest"] = LATEST, *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return one version of a subject; `deleted` finds a soft-deleted one too.

        Raises:
            RegistryError: With error code 40401 if the subject is unknown, 40402 if the version is.
            RegistryUnavailable: If there is no usable answer after all retries.
        """
        path = _subject(subject, "versions", str(version))
        query = flags_set(deleted=deleted)
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
        path = f"{_subject(subject, 'metadata')}?{urlencode([*pairs, *flags_set(deleted=deleted).items()])}"
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
            lambda it: [str(pair["subject"]) for pair in it],
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
        versions = self.ask(numbers, "DELETE", _subject(subject), query=flags_set(permanent=permanent))
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
        number = self.ask(int, "DELETE", path, query=flags_set(permanent=permanent))
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
        witness: bool = False,
    ) -> CompatibilityResult:
        """Check whether a schema is compatible with a subject; the result is true or false and carries messages.

        Args:
            subject: the subject.
            schema: the schema; a text is Avro.
            version: the version to compare with; None compares with all versions that a registration would.
            normalize: whether the registry normalizes the schema first.
            verbose: whether the result has messages.
            witness: whether a Strata shows the record behind each finding, and changes of values.

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
            query=flags_set(normalize=normalize, verbose=verbose, witness=witness),
            body=sent.to_request(),
        )


_Registration = tuple[str, str, Schema, bool, bool]


@dataclass(frozen=True, slots=True)
class _Missing:
    """A cached answer for an id that the registry does not know."""

    error: tuple[int, int, str]
    until: float


def schema_named(client: Registry, name: SchemaName, *, subject: str | None = None) -> Schema:
    """Return the schema that a frame names, with the errors of the method for that kind of name.

    Args:
        client: the client.
        name: the id, the GUID or the version in AWS Glue.
        subject: a subject whose context an id belongs to; without it the default context.
    """
    if isinstance(name, int):
        return client.get_schema(name, subject=subject)
    if isinstance(name, GlueVersion):
        return client.get_schema_by_glue_version(name.uuid)
    return client.get_schema_by_guid(name)


def _subject(subject: str, *tail: str) -> str:
    return "/".join(["/subjects", segment(subject), *tail])
