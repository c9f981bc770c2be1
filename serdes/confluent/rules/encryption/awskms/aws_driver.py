"""The driver of AWS KMS."""

from strata.serdes.confluent.rules.built_in import KnownDriver

__all__ = ["AwsKmsDriver"]


class AwsKmsDriver(KnownDriver):
    """The driver of AWS KMS."""

    PREFIX = "aws-kms://"
