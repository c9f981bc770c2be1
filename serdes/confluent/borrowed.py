"""The engine over a client that is not ours: confluent-kafka's own, a subclass with methods of its own, or a stand-in.

Rules of this file: it calls the client by confluent-kafka's names and converts values and errors; it caches nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal
from uuid import UUID

from strata.serdes.client import ClientSettings, RegisteredSchema, RegistryClient, Schema
from strata.serdes.confluent import model
from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient, SchemaRegistryClient
from strata.serdes.errors import ErrorCode, RegistryError, wrong_argument

__all__ = ["BorrowedClient", "engine_client"]

_NOT_FOUND = 404


def engine_client(registry_client: object) -> Any:
    """Return the engine's client for a registry client.

    Args:
        registry_client: a client of this package, of `strata.serdes`, or any object with confluent-kafka's methods.

    Raises:
        TypeError: If it is something else.
    """
    client = registry_client.plain if isinstance(registry_client, AsyncSchemaRegistryClient) else registry_client
    if type(client) is SchemaRegistryClient:
        return client.engine
    if isinstance(client, RegistryClient):
        return client
    if hasattr(client, "get_latest_version") or hasattr(client, "register_schema"):
        return BorrowedClient(client)
    what = "a SchemaRegistryClient"
    raise wrong_argument(
        "schema_registry_client", what, registry_client, "make one by SchemaRegistryClient({'url': url})"
    )


class BorrowedClient:
    """The methods of the engine's client, by the methods of another one."""

    def __init__(self, client: object) -> None:
        self._given = client
        self.settings = ClientSettings(urls=("http://borrowed.invalid",))

    def __reduce__(self) -> tuple[type, tuple[object]]:
        return type(self), (self._given,)

    def _ask(self, name: str, *args: object, **kwargs: object) -> Any:
        method: Callable[..., object] | None = getattr(self._given, name, None)
        if method is None:
            raise RegistryError(_NOT_FOUND, _NOT_FOUND, f"{type(self._given).__name__} has no method {name}")
        try:
            return method(*args, **kwargs)
        except RegistryError:
            raise
        except Exception as error:
            if not hasattr(error, "http_status_code"):
                raise
            message = getattr(error, "error_message", str(error))
            raise RegistryError(error.http_status_code, getattr(error, "error_code", -1), message) from error

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """Return the schema with an id."""
        return _schema(self._ask("get_schema", *((schema_id,) if subject is None else (schema_id, subject))))

    def get_schema_by_guid(self, guid: str | UUID) -> Schema:
        """Return the schema with a GUID."""
        return _schema(self._ask("get_schema_by_guid", str(guid)))

    def get_schema_by_glue_version(self, version: str | UUID) -> Schema:
        """Raise RegistryError: the client does not know versions of AWS Glue."""
        message = f"{type(self._given).__name__} knows no schema versions of AWS Glue, such as {version}"
        raise RegistryError(_NOT_FOUND, ErrorCode.SCHEMA_NOT_FOUND, message)

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema under a subject."""
        sent = model.Schema.from_dict(schema.to_request())
        if hasattr(self._given, "register_schema_full_response"):
            return _registered(self._ask("register_schema_full_response", subject, sent, normalize), subject, schema)
        return RegisteredSchema(subject, None, self._ask("register_schema", subject, sent, normalize), None, schema)

    def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """Return the version of a subject that holds a schema."""
        more = {"deleted": True} if deleted else {}
        sent = model.Schema.from_dict(schema.to_request())
        return _registered(self._ask("lookup_schema", subject, sent, normalize, **more), subject, schema)

    def get_version(
        self, subject: str, version: int | Literal["latest"] = "latest", *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return a version of a subject."""
        if version == "latest":
            return _registered(self._ask("get_latest_version", subject), subject)
        more = {"deleted": True} if deleted else {}
        return _registered(self._ask("get_version", subject, version, **more), subject)

    def get_latest_with_metadata(
        self, subject: str, metadata: Mapping[str, str], *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return the newest version of a subject whose metadata has all these properties."""
        return _registered(self._ask("get_latest_with_metadata", subject, dict(metadata), deleted), subject)

    def get_versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject."""
        return list(self._ask("get_versions", subject, **({"deleted": True} if deleted else {})))

    def get_associated_subjects(self, topic: str, field: str = "value", *, cluster: str = "-") -> list[str]:
        """Return the subjects associated with the keys or values of a topic; none if the client cannot tell."""
        answer = self._ask("get_associations_by_resource_name", topic, cluster, "topic", [field])
        return [association.subject for association in answer] if isinstance(answer, list) else []


def _schema(schema: Any) -> Schema:
    return Schema.from_answer(schema.to_dict())


def _registered(answer: Any, subject: str, sent: Schema | None = None) -> RegisteredSchema:
    schema = sent if answer.schema is None and sent is not None else _schema(answer.schema)
    return RegisteredSchema(answer.subject or subject, answer.version, answer.schema_id, answer.guid, schema)
