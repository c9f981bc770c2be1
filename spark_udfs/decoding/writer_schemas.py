"""Looks up writer schemas in the workers, and says which failures are the record's and which the registry's.

Rules of this file: the same for every format; nothing is decoded here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from strata.serdes.client import RegistryClient, Schema, schema_named
from strata.serdes.errors import ErrorCode, RegistryError, SchemaError, SerdeError
from strata.serdes.framing import SchemaName, label
from strata.serdes.settings import ClientSettings
from strata.spark_udfs.response_cache import SharedResponses, application_folder
from strata.spark_udfs.waits import WaitLog

__all__ = ["RegistryNotUsable", "client_of", "find_schema", "is_unknown", "reading_references"]

_NOT_FOUND = 404


class RegistryNotUsable(RuntimeError):
    """A registry that did not answer, or not as a registry: no record is at fault, and the task may run again."""


@lru_cache(maxsize=8)
def client_of(settings: ClientSettings) -> RegistryClient:
    """Return this process's client of a registry, which shares responses with the other workers of the executor."""
    folder = application_folder()
    transport = None if folder is None else SharedResponses(settings, folder, WaitLog())
    return RegistryClient.from_settings(settings, transport=transport, observer=WaitLog())


def find_schema(client: RegistryClient, name: SchemaName) -> Schema:
    """Return the schema that a frame names.

    Args:
        client: the client of the registry.
        name: the schema id, the GUID or the version in AWS Glue.

    Raises:
        RegistryError: If the registry does not know the schema; see `is_unknown`.
        RegistryNotUsable: If the registry did not answer, or not as a registry.
    """
    try:
        return schema_named(client, name)
    except SerdeError as error:
        if is_unknown(error):
            raise
        raise _not_usable(name, error) from None


def is_unknown(error: SerdeError) -> bool:
    """Return whether the registry said that it does not know a schema."""
    return isinstance(error, RegistryError) and error.error_code == ErrorCode.SCHEMA_NOT_FOUND


@contextmanager
def reading_references(name: SchemaName) -> Iterator[None]:
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


def _not_usable(name: SchemaName, error: SerdeError) -> RegistryNotUsable:
    return RegistryNotUsable(f"{label(name)} could not be looked up: {error}")
