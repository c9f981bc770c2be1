"""The driver of HashiCorp Vault."""

from strata.serdes.confluent.rules.built_in import KnownDriver

__all__ = ["HcVaultKmsDriver"]


class HcVaultKmsDriver(KnownDriver):
    """The driver of HashiCorp Vault."""

    PREFIX = "hcvault://"
