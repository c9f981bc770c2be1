"""The executors of client-side encryption (CSFLE)."""

from strata.serdes.confluent.rules.built_in import KnownExecutor, KnownFieldExecutor

__all__ = ["EncryptionExecutor", "FieldEncryptionExecutor"]


class EncryptionExecutor(KnownExecutor):
    """The executor of rules of type ENCRYPT_PAYLOAD."""

    TYPE = "ENCRYPT_PAYLOAD"


class FieldEncryptionExecutor(KnownFieldExecutor):
    """The executor of rules of type ENCRYPT."""

    TYPE = "ENCRYPT"
