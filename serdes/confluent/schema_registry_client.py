"""`SchemaRegistryClient` of confluent-kafka, and its form for asyncio, on the engine's client.

    client = SchemaRegistryClient({"url": "http://localhost:8081"})
    client.register_schema("flights-value", Schema(text))

The methods have confluent-kafka's names, parameters and results. They raise `SchemaRegistryError`, and
`SchemaRegistryUnavailable`, which is one, if there is no usable answer after all retries.

Rules of this file: one route for each method; the engine sends, retries and caches.
"""

import weakref
from collections.abc import Callable, Coroutine, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, Protocol, Self, TypeVar
from urllib.parse import urlencode

from strata.http.paths import segment, setting_path
from strata.serdes.aio import call
from strata.serdes.client import RegistryClient
from strata.serdes.confluent.error import SchemaRegistryError, translates
from strata.serdes.confluent.model import (
    Association,
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    AssociationInfo,
    AssociationResponse,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    MetadataTags,
    RegisteredSchema,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaVersion,
    ServerConfig,
)
from strata.serdes.confluent.settings import client_settings, latest_ttl
from strata.serdes.errors import wrong_argument
from strata.serdes.requests import numbers, strings

if TYPE_CHECKING:
    from strata.serdes.model import RegisteredSchema as EngineRegistered
    from strata.serdes.model import Schema as EngineSchema

__all__ = [
    "Association",
    "AssociationCreateOrUpdateInfo",
    "AssociationCreateOrUpdateRequest",
    "AssociationInfo",
    "AssociationResponse",
    "AsyncSchemaRegistryClient",
    "ConfigCompatibilityLevel",
    "Metadata",
    "MetadataProperties",
    "MetadataTags",
    "RegisteredSchema",
    "Rule",
    "RuleKind",
    "RuleMode",
    "RuleParams",
    "RuleSet",
    "Schema",
    "SchemaReference",
    "SchemaRegistryClient",
    "SchemaRegistryError",
    "SchemaVersion",
    "ServerConfig",
]

P = ParamSpec("P")
T = TypeVar("T")


class _Forgetful(Protocol):
    def forget(self) -> None: ...


class SchemaRegistryClient:
    """A client of a schema registry, to be shared by all threads of a process.

    Args:
        conf: the settings, such as `url` and `basic.auth.user.info`; see `docs/guides/porting.md`.

    Raises:
        ValueError: If a setting is unknown, missing or out of range, or settings contradict each other.
        TypeError: If `conf` is not a dict.
    """

    def __init__(self, conf: Mapping[str, object]) -> None:
        settings = client_settings(conf)
        self._conf = dict(conf)
        self.latest_ttl = latest_ttl(conf)
        self.engine: RegistryClient = RegistryClient.from_settings(settings)
        self._serdes: weakref.WeakSet[_Forgetful] = weakref.WeakSet()

    @staticmethod
    def new_client(conf: Mapping[str, object]) -> "SchemaRegistryClient":
        """Return a client; `mock://` as the URL is a registry in this process."""
        return SchemaRegistryClient(conf)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Self], tuple[object]]:
        return type(self), (self._conf,)

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        self.engine.close()

    def config(self) -> dict[str, Any]:
        """Return the settings as given."""
        return self._conf

    def clear_caches(self) -> None:
        """Forget all schemas, also in serializers and deserializers made with this client."""
        self.engine.clear_caches()
        self.clear_latest_caches()

    def clear_latest_caches(self) -> None:
        """Let serializers and deserializers made with this client ask for the latest versions again."""
        for serde in list(self._serdes):
            serde.forget()

    def watch(self, serde: _Forgetful) -> None:
        """Let `clear_caches` reach a serializer or deserializer."""
        self._serdes.add(serde)

    @translates
    def register_schema(self, subject_name: str, schema: Schema, normalize_schemas: bool = False) -> int:
        """Register a schema under a subject, and return its id."""
        return self.engine.register(subject_name, _engine(schema), normalize=normalize_schemas).schema_id

    @translates
    def register_schema_full_response(
        self, subject_name: str, schema: Schema, normalize_schemas: bool = False
    ) -> RegisteredSchema:
        """Register a schema under a subject, and return the version that holds it."""
        return _registered(self.engine.register(subject_name, _engine(schema), normalize=normalize_schemas))

    @translates
    def get_schema(
        self,
        schema_id: int,
        subject_name: str | None = None,
        fmt: str | None = None,
        reference_format: str | None = None,
    ) -> Schema:
        """Return the schema with an id."""
        if fmt is None and reference_format is None:
            return Schema.from_dict(self.engine.get_schema(schema_id, subject=subject_name).to_request())
        query = {"subject": subject_name, "format": fmt, "referenceFormat": reference_format}
        return self.engine.ask(Schema.from_dict, "GET", f"/schemas/ids/{schema_id}{_query(query)}")

    @translates
    def get_schema_by_guid(self, guid: str, fmt: str | None = None) -> Schema:
        """Return the schema with a GUID."""
        if fmt is None:
            return Schema.from_dict(self.engine.get_schema_by_guid(guid).to_request())
        return self.engine.ask(Schema.from_dict, "GET", f"/schemas/guids/{segment(guid)}{_query({'format': fmt})}")

    @translates
    def get_schema_types(self) -> list[str]:
        """Return the formats of schemas that the registry supports."""
        return self.engine.ask(strings, "GET", "/schemas/types")

    @translates
    def lookup_schema(
        self,
        subject_name: str,
        schema: Schema,
        normalize_schemas: bool = False,
        fmt: str | None = None,
        deleted: bool = False,
    ) -> RegisteredSchema:
        """Return the version of a subject that holds a schema."""
        if fmt is None:
            registered = self.engine.lookup(subject_name, _engine(schema), normalize=normalize_schemas, deleted=deleted)
            return _registered(registered)
        query = {"normalize": normalize_schemas, "deleted": deleted, "format": fmt}
        path = f"/subjects/{segment(subject_name)}{_query(query)}"
        return self.engine.ask(RegisteredSchema.from_dict, "POST", path, body=schema.to_dict())

    @translates
    def get_subjects_by_schema_id(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Return the subjects that hold the schema with an id."""
        query = {"subject": subject_name, "deleted": deleted, **_page(offset, limit)}
        return self.engine.ask(strings, "GET", f"/schemas/ids/{schema_id}/subjects{_query(query)}")

    @translates
    def get_schema_versions(
        self,
        schema_id: int,
        subject_name: str | None = None,
        deleted: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[SchemaVersion]:
        """Return the subjects and versions that hold the schema with an id."""
        query = {"subject": subject_name, "deleted": deleted, **_page(offset, limit)}
        path = f"/schemas/ids/{schema_id}/versions{_query(query)}"
        return self.engine.ask(lambda answer: list(map(SchemaVersion.from_dict, answer)), "GET", path)

    @translates
    def get_subjects(
        self,
        subject_prefix: str | None = None,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[str]:
        """Return the names of all subjects."""
        query = {
            "subjectPrefix": subject_prefix,
            "deleted": deleted,
            "deletedOnly": deleted_only,
            **_page(offset, limit),
        }
        return self.engine.ask(strings, "GET", f"/subjects{_query(query)}")

    @translates
    def delete_subject(self, subject_name: str, permanent: bool = False) -> list[int]:
        """Delete a subject, and return the deleted versions; a permanent deletion comes after a soft one."""
        return self.engine.delete_subject(subject_name, permanent=permanent)

    @translates
    def get_latest_version(self, subject_name: str, fmt: str | None = None) -> RegisteredSchema:
        """Return the latest version of a subject, as the registry has it now."""
        return self._version(subject_name, "latest", fmt=fmt)

    @translates
    def get_latest_with_metadata(
        self, subject_name: str, metadata: Mapping[str, str], deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        """Return the newest version of a subject whose metadata has all these properties."""
        pairs = [pair for name, value in metadata.items() for pair in (("key", name), ("value", value))]
        query = _query({"deleted": deleted, "format": fmt}, pairs)
        path = f"/subjects/{segment(subject_name)}/metadata{query}"
        return self.engine.ask(_registered_of(subject_name), "GET", path)

    @translates
    def get_version(
        self,
        subject_name: str,
        version: int | Literal["latest"] = "latest",
        deleted: bool = False,
        fmt: str | None = None,
    ) -> RegisteredSchema:
        """Return a version of a subject."""
        return self._version(subject_name, version, deleted=deleted, fmt=fmt)

    def _version(
        self, subject: str, version: int | str, *, deleted: bool = False, fmt: str | None = None
    ) -> RegisteredSchema:
        query = _query({"deleted": deleted, "format": fmt})
        path = f"/subjects/{segment(subject)}/versions/{segment(str(version))}{query}"
        return self.engine.ask(_registered_of(subject), "GET", path)

    @translates
    def get_referenced_by(
        self, subject_name: str, version: int | Literal["latest"] = "latest", offset: int = 0, limit: int = -1
    ) -> list[int]:
        """Return the ids of the schemas that refer to a version of a subject."""
        path = f"/subjects/{segment(subject_name)}/versions/{segment(str(version))}/referencedby"
        return self.engine.ask(numbers, "GET", path + _query(_page(offset, limit)))

    @translates
    def get_versions(
        self,
        subject_name: str,
        deleted: bool = False,
        deleted_only: bool = False,
        offset: int = 0,
        limit: int = -1,
    ) -> list[int]:
        """Return the versions of a subject."""
        query = {"deleted": deleted, "deletedOnly": deleted_only, **_page(offset, limit)}
        return self.engine.ask(numbers, "GET", f"/subjects/{segment(subject_name)}/versions{_query(query)}")

    @translates
    def delete_version(self, subject_name: str, version: int, permanent: bool = False) -> int:
        """Delete a version of a subject, and return its number; a permanent deletion comes after a soft one."""
        return self.engine.delete_version(subject_name, version, permanent=permanent)

    @translates
    def set_compatibility(self, subject_name: str | None = None, level: str | None = None) -> dict[str, Any]:
        """Set the compatibility level of a subject, or the global one, and return what the registry answers."""
        if level is None:
            raise ValueError("level must be set")
        return self.engine.ask(dict, "PUT", setting_path("config", subject_name), body={"compatibility": level})

    @translates
    def get_compatibility(self, subject_name: str | None = None) -> str:
        """Return the compatibility level of a subject, or the global one."""
        return str(self.engine.get_config(subject_name)["compatibilityLevel"])

    @translates
    def test_compatibility(
        self,
        subject_name: str,
        schema: Schema,
        version: int | str = "latest",
        normalize: bool = False,
        verbose: bool = False,
    ) -> bool:
        """Return whether a schema is compatible with a version of a subject."""
        return self._compatible(subject_name, schema, f"/{segment(str(version))}", normalize, verbose)

    @translates
    def test_compatibility_all_versions(
        self, subject_name: str, schema: Schema, normalize: bool = False, verbose: bool = False
    ) -> bool:
        """Return whether a schema is compatible with all versions that a registration compares it with."""
        return self._compatible(subject_name, schema, "", normalize, verbose)

    def _compatible(self, subject: str, schema: Schema, tail: str, normalize: bool, verbose: bool) -> bool:
        query = _query({"normalize": normalize, "verbose": verbose})
        path = f"/compatibility/subjects/{segment(subject)}/versions{tail}{query}"
        return self.engine.ask(lambda answer: bool(answer["is_compatible"]), "POST", path, body=schema.to_dict())

    @translates
    def set_config(self, subject_name: str | None = None, config: ServerConfig | None = None) -> dict[str, Any]:
        """Set the config of a subject, or the global one, and return what the registry answers."""
        if config is None:
            raise ValueError("config must be set")
        return self.engine.ask(dict, "PUT", setting_path("config", subject_name), body=config.to_dict())

    @translates
    def delete_config(self, subject_name: str | None = None) -> ServerConfig:
        """Delete the config of a subject, or the global one, and return it."""
        return self.engine.ask(ServerConfig.from_dict, "DELETE", setting_path("config", subject_name))

    @translates
    def get_config(self, subject_name: str | None = None) -> ServerConfig:
        """Return the config of a subject, or the global one."""
        return self.engine.ask(ServerConfig.from_dict, "GET", setting_path("config", subject_name))

    @translates
    def get_mode(self, subject_name: str) -> str:
        """Return the mode of a subject."""
        return self.engine.get_mode(subject_name)

    @translates
    def update_mode(self, subject_name: str, mode: str, force: bool = False) -> str:
        """Set the mode of a subject, and return it."""
        return self._set_mode(setting_path("mode", subject_name), mode, force)

    @translates
    def delete_mode(self, subject_name: str) -> str:
        """Delete the mode of a subject, and return it."""
        return str(self.engine.delete_mode(subject_name))

    @translates
    def get_global_mode(self) -> str:
        """Return the global mode."""
        return self.engine.get_mode()

    @translates
    def update_global_mode(self, mode: str, force: bool = False) -> str:
        """Set the global mode, and return it."""
        return self._set_mode("/mode", mode, force)

    def _set_mode(self, path: str, mode: str, force: bool) -> str:
        path += _query({"force": force})
        return self.engine.ask(lambda answer: str(answer["mode"]), "PUT", path, body={"mode": mode})

    @translates
    def get_contexts(self, offset: int = 0, limit: int = -1) -> list[str]:
        """Return the contexts."""
        return self.engine.ask(strings, "GET", f"/contexts{_query(_page(offset, limit))}")

    @translates
    def create_association(self, request: AssociationCreateOrUpdateRequest) -> AssociationResponse:
        """Associate subjects with a resource, such as a topic."""
        return self.engine.ask(AssociationResponse.from_dict, "POST", "/associations", body=request.to_dict())

    @translates
    def get_associations_by_resource_name(
        self,
        resource_name: str,
        resource_namespace: str,
        resource_type: str | None = None,
        association_types: list[str] | None = None,
        offset: int = 0,
        limit: int = -1,
    ) -> list[Association]:
        """Return the associations of a resource."""
        kinds = [("associationType", type_) for type_ in association_types or ()]
        query = _query({"resourceType": resource_type, **_page(offset, limit)}, kinds)
        path = f"/associations/resources/{segment(resource_namespace)}/{segment(resource_name)}{query}"
        return self.engine.ask(lambda answer: list(map(Association.from_dict, answer)), "GET", path)

    @translates
    def delete_associations(
        self,
        resource_id: str,
        resource_type: str | None = None,
        association_types: list[str] | None = None,
        cascade_lifecycle: bool = False,
    ) -> None:
        """Delete the associations of a resource."""
        kinds = [("associationType", type_) for type_ in association_types or ()]
        query = _query({"resourceType": resource_type, "cascadeLifecycle": cascade_lifecycle}, kinds)
        self.engine.ask(lambda _: None, "DELETE", f"/associations/resources/{segment(resource_id)}{query}")


def _async(
    method: Callable[Concatenate[SchemaRegistryClient, P], T],
) -> "Callable[Concatenate[AsyncSchemaRegistryClient, P], Coroutine[Any, Any, T]]":
    """Return an awaitable form of a method, which runs in a thread."""

    async def awaited(self: "AsyncSchemaRegistryClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await call(method, self.plain, *args, **kwargs)

    update_wrapper(awaited, method)
    return awaited


class AsyncSchemaRegistryClient:
    """`SchemaRegistryClient` with awaitable methods.

    Args:
        conf: the settings of `SchemaRegistryClient`.

    Raises:
        ValueError: If a setting is unknown, missing or out of range, or settings contradict each other.
        TypeError: If `conf` is not a dict.
    """

    def __init__(self, conf: Mapping[str, object]) -> None:
        self.plain = SchemaRegistryClient(conf)

    @staticmethod
    def new_client(conf: Mapping[str, object]) -> "AsyncSchemaRegistryClient":
        """Return a client; `mock://` as the URL is a registry in this process."""
        return AsyncSchemaRegistryClient(conf)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *args: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; a later call opens new ones."""
        self.plain.close()

    def config(self) -> dict[str, Any]:
        """Return the settings as given."""
        return self.plain.config()

    async def clear_caches(self) -> None:
        """Forget all schemas, also in serializers and deserializers made with this client."""
        self.plain.clear_caches()

    async def clear_latest_caches(self) -> None:
        """Let serializers and deserializers made with this client ask for the latest versions again."""
        self.plain.clear_latest_caches()

    register_schema = _async(SchemaRegistryClient.register_schema)
    register_schema_full_response = _async(SchemaRegistryClient.register_schema_full_response)
    get_schema = _async(SchemaRegistryClient.get_schema)
    get_schema_by_guid = _async(SchemaRegistryClient.get_schema_by_guid)
    get_schema_types = _async(SchemaRegistryClient.get_schema_types)
    lookup_schema = _async(SchemaRegistryClient.lookup_schema)
    get_subjects_by_schema_id = _async(SchemaRegistryClient.get_subjects_by_schema_id)
    get_schema_versions = _async(SchemaRegistryClient.get_schema_versions)
    get_subjects = _async(SchemaRegistryClient.get_subjects)
    delete_subject = _async(SchemaRegistryClient.delete_subject)
    get_latest_version = _async(SchemaRegistryClient.get_latest_version)
    get_latest_with_metadata = _async(SchemaRegistryClient.get_latest_with_metadata)
    get_version = _async(SchemaRegistryClient.get_version)
    get_referenced_by = _async(SchemaRegistryClient.get_referenced_by)
    get_versions = _async(SchemaRegistryClient.get_versions)
    delete_version = _async(SchemaRegistryClient.delete_version)
    set_compatibility = _async(SchemaRegistryClient.set_compatibility)
    get_compatibility = _async(SchemaRegistryClient.get_compatibility)
    test_compatibility = _async(SchemaRegistryClient.test_compatibility)
    test_compatibility_all_versions = _async(SchemaRegistryClient.test_compatibility_all_versions)
    set_config = _async(SchemaRegistryClient.set_config)
    delete_config = _async(SchemaRegistryClient.delete_config)
    get_config = _async(SchemaRegistryClient.get_config)
    get_mode = _async(SchemaRegistryClient.get_mode)
    update_mode = _async(SchemaRegistryClient.update_mode)
    delete_mode = _async(SchemaRegistryClient.delete_mode)
    get_global_mode = _async(SchemaRegistryClient.get_global_mode)
    update_global_mode = _async(SchemaRegistryClient.update_global_mode)
    get_contexts = _async(SchemaRegistryClient.get_contexts)
    create_association = _async(SchemaRegistryClient.create_association)
    get_associations_by_resource_name = _async(SchemaRegistryClient.get_associations_by_resource_name)
    delete_associations = _async(SchemaRegistryClient.delete_associations)


def _engine(schema: object) -> "EngineSchema":
    if not hasattr(schema, "to_dict"):
        raise wrong_argument(
            "schema", "a Schema", schema, "make one by Schema(text)" if isinstance(schema, str) else ""
        )
    from strata.serdes.model import Schema as EngineSchema

    return EngineSchema.from_answer(schema.to_dict())


def _registered(registered: "EngineRegistered") -> RegisteredSchema:
    schema = Schema.from_dict(registered.schema.to_request())
    return RegisteredSchema(registered.subject, registered.version, registered.schema_id, registered.guid, schema)


def _registered_of(subject: str) -> Callable[[Mapping[str, object]], RegisteredSchema]:
    return lambda answer: RegisteredSchema.from_dict({"subject": subject, **answer})


def _page(offset: int, limit: int) -> dict[str, int | None]:
    return {"offset": offset or None, "limit": limit if limit >= 0 else None}


def _query(options: Mapping[str, object], pairs: list[tuple[str, str]] | None = None) -> str:
    """Return a query string without what is not set; confluent-kafka's flags are off where they are missing."""
    told = [(name, "true" if value is True else value) for name, value in options.items() if value not in (None, False)]
    query = urlencode([*(pairs or ()), *told])
    return f"?{query}" if query else ""
