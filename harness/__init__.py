"""Real services for tests, demo and benchmarks: a Kafka broker, a PostgreSQL server, and the jars they need.

Nothing here is shipped. Every service listens on loopback only, keeps its data in a temporary folder that it removes,
and ends with the process that started it.
"""
