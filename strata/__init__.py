"""Strata, a schema registry: the service, its client serializers, and Spark columns."""
