"""What serializers and deserializers need of a registry client.

`RegistryClient` has these methods, and so may a stand-in in a test: no class of ours is asked for, and a stand-in needs
only the methods that its program reaches.
"""

from collections.abc import Mapping
from typing import Literal, Protocol
from uuid import UUID

from strata.serdes.model import RegisteredSchema, Schema
from strata.serdes.settings import ClientSettings

__all__ = ["Registry", "settings_of"]

_DEFAULTS = ClientSettings(urls=("http://none.invalid",))


class Registry(Protocol):
    """A registry, as serializers and deserializers ask it; see `RegistryClient` for arguments, results and errors."""

    def get_schema(self, schema_id: int, *, subject: str | None = None) -> Schema:
        """Return the schema with an id."""

    def get_schema_by_guid(self, guid: str | UUID) -> Schema:
        """Return the schema with a GUID."""

    def get_schema_by_glue_version(self, version: str | UUID) -> Schema:
        """Return the schema of a version in AWS Glue."""

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Register a schema under a subject."""

    def lookup(
        self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False
    ) -> RegisteredSchema:
        """Return the version of a subject that holds a schema."""

    def get_versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject."""

    def get_version(
        self, subject: str, version: int | Literal["latest"] = "latest", *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return a version of a subject."""

    def get_latest_with_metadata(
        self, subject: str, metadata: Mapping[str, str], *, deleted: bool = False
    ) -> RegisteredSchema:
        """Return the newest version of a subject whose metadata has all these properties."""

    def get_associated_subjects(self, topic: str, field: str = "value", *, cluster: str = "-") -> list[str]:
        """Return the subjects that the registry associates with a topic."""


def settings_of(client: object) -> ClientSettings:
    """Return the settings of a client; a stand-in without any has the defaults."""
    settings = getattr(client, "settings", None)
    return settings if isinstance(settings, ClientSettings) else _DEFAULTS
