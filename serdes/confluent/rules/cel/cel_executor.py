"""The executor of CEL over whole values."""

from strata.serdes.confluent.rules.built_in import KnownExecutor

__all__ = ["CelExecutor"]


class CelExecutor(KnownExecutor):
    """The executor of rules of type CEL."""

    TYPE = "CEL"
