"""The log in a compacted Kafka topic: reading, the pen, and what other writers do to it."""
