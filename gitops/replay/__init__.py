"""The records of a topic, read with a schema that is not registered yet.

`topic` reads the records without a consumer group, `judges` reads each with the candidate, `outcome` counts what it
finds, and `reports` prints it.
"""
