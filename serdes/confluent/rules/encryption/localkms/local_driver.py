"""The driver of keys from a shared secret."""

from strata.serdes.confluent.rules.built_in import KnownDriver

__all__ = ["LocalKmsDriver"]


class LocalKmsDriver(KnownDriver):
    """The driver of keys from a shared secret."""

    PREFIX = "local-kms://"
