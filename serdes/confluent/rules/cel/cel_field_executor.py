"""The executor of CEL over fields."""

from strata.serdes.confluent.rules.built_in import KnownFieldExecutor

__all__ = ["CelFieldExecutor"]


class CelFieldExecutor(KnownFieldExecutor):
    """The executor of rules of type CEL_FIELD."""

    TYPE = "CEL_FIELD"
