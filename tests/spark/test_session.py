"""The session of the other tests starts: the JVM, a registry, Spark, a query, and a Python worker.

Each of them takes seconds, which would be those of the first test that needs it.
"""

import sys

import pyarrow as pa
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession, functions

from harness.spark_jvm import spark_jvm
from strata.serdes.client import RegistryClient

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # PySpark leaves them to the collector
]


@pytest.mark.usefixtures("started_jvm")
def test_a_small_jvm() -> None:
    """Spark's JVM compiles little, and reads its classes from their archive."""
    jvm = SparkContext._jvm
    assert jvm is not None
    options = {*jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()}

    assert {*spark_jvm(tables=True).split()} <= options


@pytest.mark.usefixtures("started_jvm")
def test_a_registry(registry: RegistryClient) -> None:
    """The registry of the other tests has no schema before them."""
    assert [] == registry.get_subjects()


def test_a_session(spark: SparkSession) -> None:
    """The session interprets its queries, in UTC."""
    settings = ("spark.sql.codegen.factoryMode", "spark.sql.session.timeZone")

    assert ["NO_CODEGEN", "UTC"] == [spark.conf.get(name) for name in settings]


def test_a_query(spark: SparkSession) -> None:
    """It returns the rows that it gets."""
    assert [(b"x",)] == spark.createDataFrame(pa.table({"value": [b"x"]})).coalesce(1).collect()


@pytest.mark.skipif(not hasattr(functions, "arrow_udf"), reason="this Spark has no arrow_udf")
def test_a_worker(spark: SparkSession) -> None:
    """A Python worker has imported the decoders before it gets its first function."""

    @functions.arrow_udf("string")  # type: ignore[attr-defined,untyped-decorator,unused-ignore]
    def names(numbers: pa.Array) -> pa.Array:
        return pa.array([" ".join(sorted(sys.modules))] * len(numbers))

    [row] = spark.range(1).select(names("id").alias("names")).collect()

    assert "strata.serdes.arrow.decode" in row["names"].split()
