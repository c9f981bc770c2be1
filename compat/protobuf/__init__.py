"""Protobuf schemas as the Confluent Schema Registry reads and compares them."""

from strata.imports import require

require("protobuf", "strata.compat.protobuf", "google.protobuf")
