"""Protobuf schemas as the Confluent Schema Registry understands them."""
