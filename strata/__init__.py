"""Strata, a schema registry: the service, its client serializers, and Spark columns."""

__all__ = ["__version__"]

__version__ = "0.1.0"
