"""The driver of Google Cloud KMS."""

from strata.serdes.confluent.rules.built_in import KnownDriver

__all__ = ["GcpKmsDriver"]


class GcpKmsDriver(KnownDriver):
    """The driver of Google Cloud KMS."""

    PREFIX = "gcp-kms://"
