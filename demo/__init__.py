"""The main use case as a demo: flights through Kafka, an evolving schema, Spark, and a comparison at the end.

Nothing here is shipped. `python -m demo` runs it; the pure parts (flights, damage, summary) have their own tests.
"""
