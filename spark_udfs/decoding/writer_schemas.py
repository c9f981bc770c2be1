"""Looks up writer schemas in the workers, and says which failures are the record's and which the registry's.

Rules of this file: the same for every format; nothing is decoded here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from uuid import UUID

from strata.serdes.client import RegistryClient, Schema
from strata.serdes.errors import ErrorCode, RegistryError, SchemaError, SerdeError
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.decoding.schema_names import Name, label
from strata.spark_udfs.response_cache import SharedResponses, application_folder

__all__ = ["UNKNOWN_GUID", "UNKNOWN_ID", "RegistryNotUsable", "client_of", "find_schema", "is_unknown"]
__all__ += ["reading_references"]

UNKNOWN_GUID = "unknown schema guid"
UNKNOWN_ID = "unknown schema id"

_NOT_FOUND = 404


class RegistryNotUsable(RuntimeError):
    """A registry that did not answer, or not as a registry: no record is at fault, and the task may run again."""


@lru_cache(maxsize=8)
def client_of(settings: ClientSettings) -> RegistryClient:
    """Return this process's client of a registry, which shares responses with the other workers of the executor."""
    folder = application_folder()
    transport = None if folder is None else SharedResponses(settings, folder)
    return RegistryClient.from_settings(settings, transport=transport)


def find_schema(client: RegistryClient, name: Name) -> Schema:
    """Return the schema of an id or GUID.

    Args:
        client: the client of the registry.
        name: the schema id or GUID.

    Raises:
        RegistryError: If the registry does not know the schema; see `is_unknown`.
        RegistryNotUsable: If the registry did not answer, or not as a registry.
    """
    try:
        return client.get_schema_by_guid(name) if isinstance(name, UUID) else client.get_schema(name)
    except SerdeError as error:
        if is_unknown(error):
            raise
        raise _not_usable(name, error) from None


def is_unknown(error: SerdeError) -> bool:
    """Return whether the registry said that it does not know a schema."""
    return isinstance(error, RegistryError) and error.error_code == ErrorCode.SCHEMA_NOT_FOUND


@contextmanager
def reading_references(name: Name) -> Iterator[None]:
    """Convert errors that occur while the references of a schema are read.

    Raises:
        SchemaError: If the schema cannot be used, or the registry does not have a reference.
        RegistryNotUsable: If the registry did not answer, or not as a registry.
    """
    try:
        yield
    except SchemaError:
        raise
    except SerdeError as error:
        if isinstance(error, RegistryError) and error.status == _NOT_FOUND:
            raise SchemaError(f"the registry does not have a reference: {error}") from None
        raise _not_usable(name, error) from None


def _not_usable(name: Name, error: SerdeError) -> RegistryNotUsable:
    return RegistryNotUsable(f"{label(name)} could not be looked up: {error}")
