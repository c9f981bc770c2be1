"""Counts rows and dead letters while a query runs, as Spark's observed metrics.

Rules of this file: one more node in the plan; nothing runs here, and no row is read again.
"""

from pyspark.sql import Column, DataFrame, Observation, functions

from strata.serdes.errors import DecodeReason
from strata.spark_udfs.dead_letters import column_named, good_part_of
from strata.spark_udfs.decoding.jvm_function import a_catalog_of

__all__ = ["observe_dead_letters"]

_KINDS = ("unknown schema", "rule", *(reason.value for reason in DecodeReason))
"""The beginnings of the reasons of dead letters that have metrics of their own."""

_WAITS = {"registry_wait_ms": "milliseconds", "registry_retries": "retries"}
"""The metrics of waits, and the JVM's functions for them, see jvm/strata/spark/StrataCatalog.java."""


def observe_dead_letters(df: DataFrame, column: str = "decoded", name: str | Observation = "strata") -> DataFrame:
    """Count the rows and dead letters of a data frame that was decoded or encoded in mode DEADLETTER.

    A streaming query has the numbers of each batch in its progress: `query.lastProgress["observedMetrics"]["strata"]`,
    and a `StreamingQueryListener` gets them. For a batch query pass an `Observation`, and read its `get` afterwards.

    Args:
        df: a data frame, batch or stream, with the result of `decode` or `encode` as one of its columns. Apply this
            before `split_dead_letters`, or to one of its two results, which are separate queries.
        column: the name of that column.
        name: the name of the metrics, or the `Observation` that gets them.

    Returns:
        The same data frame with the metrics `rows`, `values` (or `frames`) and `dead_letters`; for a decode also the
        dead letters by reason: `dead_unknown_schema`, `dead_rule`, `dead_truncated` and so on for each `DecodeReason`,
        and `dead_other`, such as bytes that are not a frame. A null that was decoded to null is a row only. After
        `install` there are `registry_wait_ms`, how long tasks waited for look-ups in the registry, and
        `registry_retries`, how many of these requests were sent again; both are None if Python workers decoded.

    Raises:
        ValueError: If there is no such column, or it is not the result of mode DEADLETTER.
    """
    part = good_part_of(df, column)
    result = column_named(column)
    reason = result["error"]["reason"]
    metrics = [
        functions.count(functions.lit(1)).alias("rows"),
        functions.count(result[part]).alias(f"{part}s"),
        functions.count(result["error"]).alias("dead_letters"),
    ]
    if part == "value":
        metrics += [
            _number(reason.startswith(reason_)).alias(f"dead_{reason_.replace(' ', '_')}") for reason_ in _KINDS
        ]
        known = functions.lit(False)
        for reason_ in _KINDS:
            known = known | reason.startswith(reason_)
        metrics.append(_number(~known).alias("dead_other"))
    catalog = a_catalog_of(df.sparkSession)
    if part != "value" or catalog is None:
        return df.observe(name, *metrics)
    # A projection of its own calls the functions: in a metric they would come back to the driver, which lacks the jar.
    waits = {
        f"strata {metric}": functions.call_function(f"{catalog}.waits.{function}", result["error"].isNull())
        for metric, function in _WAITS.items()
    }
    sums = [functions.sum(f"strata {metric}").alias(metric) for metric in _WAITS]
    return df.withColumns(waits).observe(name, *metrics, *sums).drop(*waits)


def _number(condition: Column) -> Column:
    """Return the number of rows for which a condition holds; a null does not hold."""
    return functions.count(functions.when(condition, 1))
