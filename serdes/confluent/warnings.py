"""The warning of a value that did not fit its schema and was changed."""

from strata.serdes.serializer import BentValueWarning

__all__ = ["BentValueWarning"]
