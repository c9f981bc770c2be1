"""PySpark columns that decode registry frames."""

from spark_udfs.columns import decode
from spark_udfs.streams import split_dead_letters

__all__ = ["decode", "split_dead_letters"]
