"""See `strata.serdes.confluent.schema_registry_client`."""

from strata.serdes.confluent.schema_registry_client import AsyncSchemaRegistryClient

__all__ = ["AsyncSchemaRegistryClient"]
