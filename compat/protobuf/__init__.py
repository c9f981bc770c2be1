"""Protobuf schemas as the Confluent Schema Registry reads and compares them.

Needs the extra `protobuf`, or `server`.
"""

from strata.imports import require

require("protobuf", "strata.compat.protobuf", "google.protobuf", "google.type")
