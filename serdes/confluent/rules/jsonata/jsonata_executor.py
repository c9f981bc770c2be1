"""The executor of JSONata."""

from strata.serdes.confluent.rules.built_in import KnownExecutor

__all__ = ["JsonataExecutor"]


class JsonataExecutor(KnownExecutor):
    """The executor of rules of type JSONATA."""

    TYPE = "JSONATA"
