"""PySpark columns that decode and encode registry frames."""

from spark_udfs.catalog import NotInstalled, install
from spark_udfs.columns import decode
from spark_udfs.encode import encode, encoder
from spark_udfs.evolution import run_stream
from spark_udfs.streams import split_dead_letters

__all__ = ["NotInstalled", "decode", "encode", "encoder", "install", "run_stream", "split_dead_letters"]
