"""The engine's client for a deserializer without a registry: every frame has the one schema that it was given.

Rules of this file: nothing is sent.
"""

from typing import NoReturn
from uuid import UUID

from strata.serdes.client import ClientSettings, Schema
from strata.serdes.errors import RegistryError

__all__ = ["OneSchema"]

_NOT_FOUND = 404


class OneSchema:
    """A registry of one schema, under any id.

    Args:
        schema: the schema.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema.bare
        self.settings = ClientSettings(urls=("http://none.invalid",))

    def __reduce__(self) -> tuple[type, tuple[object]]:
        return type(self), (self._schema,)

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:  # noqa: ARG002 - an interface
        """Return the schema."""
        return self._schema

    def get_schema_by_guid(self, guid: str | UUID) -> Schema:  # noqa: ARG002 - an interface
        """Return the schema."""
        return self._schema

    def get_associated_subjects(self, topic: str, field: str = "value", *, cluster: str = "-") -> list[str]:  # noqa: ARG002
        """Return no subjects."""
        return []

    def get_version(self, subject: str, version: int | str = "latest", *, deleted: bool = False) -> NoReturn:  # noqa: ARG002
        """Raise RegistryError: there is no registry."""
        message = f"subject {subject} cannot be asked for: pass schema_registry_client"
        raise RegistryError(_NOT_FOUND, _NOT_FOUND, message)
