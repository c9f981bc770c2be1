"""The driver of Azure Key Vault."""

from strata.serdes.confluent.rules.built_in import KnownDriver

__all__ = ["AzureKmsDriver"]


class AzureKmsDriver(KnownDriver):
    """The driver of Azure Key Vault."""

    PREFIX = "azure-kms://"
