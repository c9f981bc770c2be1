"""PySpark columns that decode and encode registry frames."""

from typing import TYPE_CHECKING

from strata.imports import lazy, require

require("pyspark", "strata.spark_udfs", "pyspark")  # a platform has its own, where `spark` is enough
require("spark", "strata.spark_udfs", "pyarrow")

if TYPE_CHECKING:
    from strata.spark_udfs.dead_letters import split_dead_letters as split_dead_letters
    from strata.spark_udfs.decoding.columns import decode as decode
    from strata.spark_udfs.decoding.jvm_function import NotInstalled as NotInstalled
    from strata.spark_udfs.decoding.jvm_function import install as install
    from strata.spark_udfs.encoding.columns import encode as encode
    from strata.spark_udfs.encoding.columns import encoder as encoder
    from strata.spark_udfs.evolution import run_stream as run_stream
    from strata.spark_udfs.observation import observe_dead_letters as observe_dead_letters
    from strata.spark_udfs.outcomes import replay as replay

_MODULES = {
    "dead_letters": ("split_dead_letters",),
    "decoding.columns": ("decode",),
    "decoding.jvm_function": ("NotInstalled", "install"),
    "encoding.columns": ("encode", "encoder"),
    "evolution": ("run_stream",),
    "observation": ("observe_dead_letters",),
    "outcomes": ("replay",),
}
__getattr__ = lazy(__name__, _MODULES)
