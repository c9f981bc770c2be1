"""Protobuf schemas as the Confluent Schema Registry reads and compares them."""
