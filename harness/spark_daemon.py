"""The daemon that forks Spark's Python workers, with what they need imported before it forks.

`spark.python.daemon.module` names it. A worker ends with each task that fails, and the next one would spend a second of
CPU time on imports.
"""

# ruff: noqa: E402, F401 - imported for the workers
import gc
import sys

# For each task, Python would read the directories of these archives again, once for each package: 0.15 s of CPU time.
sys.path[:] = [place for place in sys.path if not place.endswith((".zip", ".jar"))]
sys.path_importer_cache.clear()

if __name__ == "__main__":
    gc.disable()  # or it would search what is imported again and again, a fifth of the time

import pandas  # type: ignore[import-untyped]
import pyarrow.compute
from pyspark.daemon import manager
from pyspark.sql.pandas import serializers

import strata.serdes.arrow.decode
import strata.serdes.arrow.encode
import strata.spark_udfs
import strata.spark_udfs.decoding.columns
import strata.spark_udfs.decoding.json_reader
import strata.spark_udfs.decoding.protobuf_reader
import strata.spark_udfs.encoding.columns
from strata.serdes.arrow import entry_points

__all__: list[str] = []

if __name__ == "__main__":
    # or each worker would read the compiled code from its file
    entry_points.run(0)
    entry_points.run_writer(0)
    gc.freeze()
    gc.enable()
    manager()  # type: ignore[no-untyped-call]
