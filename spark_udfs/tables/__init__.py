"""Tables that follow their topic: `follow` writes a stream of frames to an Iceberg or Delta table.

`changes` compares two types, `alignment` shapes rows for a table, `formats` knows what each table format can do,
`notes` reads what a schema says beside its types, and `follower` runs the query.
"""

from strata.spark_udfs.tables.changes import ChangeRefused
from strata.spark_udfs.tables.follower import follow

__all__ = ["ChangeRefused", "follow"]
