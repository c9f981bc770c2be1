"""The paths from a plan to a column, and the choice among them.

    jvm          inside Spark's executors, if `install` was called for the registry
    arrow_udf    Spark 4.1 and later: Arrow arrays in and out, by `strata.serdes.arrow`
    pandas_udf   Spark 4.0: the same arrays, passed through pandas, which the executors need

All give the same values of the same type. The name of the function in a query's plan shows which one it is.

Rules of this file: no values and no schemas; the executor decodes batches.
"""

import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql import Column, functions
from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructField, StructType

from strata.spark_udfs.decoding.headers import active_session
from strata.spark_udfs.decoding.jvm_function import NotInstalled, is_installed, is_installed_otherwise, jvm_path
from strata.spark_udfs.decoding.plan import Mode, Plan, reader_type

if TYPE_CHECKING:
    from strata.spark_udfs.decoding.avro_worker import BatchDecoder
    from strata.spark_udfs.decoding.payload_worker import PayloadDecoder

__all__ = ["ERROR_TYPE", "Path", "Way", "arrow_path", "chosen_path", "output_type", "pandas_path"]

Path = Callable[[Plan, Sequence[Column]], Column]
"""Turns the column of frames and the origin columns into the decoded column."""

ERROR_TYPE = StructType(
    [
        StructField("reason", StringType()),
        StructField("schema_id", IntegerType()),
        StructField("frame", BinaryType()),
    ]
)

_log = logging.getLogger("strata.spark_udfs")


class Way(StrEnum):
    """The paths that a caller can ask for."""

    AUTO = "auto"
    JVM = "jvm"
    PYTHON = "python"


def chosen_path(way: Way, plan: Plan) -> Path:
    """Return the path asked for, or the fastest one that the session and the installed Spark support.

    Args:
        way: what the caller asked for.
        plan: the plan of the decode.

    Raises:
        NotInstalled: If the JVM path is asked for, and `install` was not called for this registry.
        ValueError: If the JVM path is asked for, and the format is not Avro.
        ImportError: If the Python path needs numba, which is not installed.
    """
    if plan.payload is not None:
        return _python_path(way, f"the JVM decodes Avro, and the reader schema is {plan.payload.schema.format}")
    session = active_session()
    is_ready = way is not Way.PYTHON and is_installed(session, plan.registry)
    if is_ready:
        _say("inside Spark's executors: install was called for this registry")
        return jvm_path
    if way is Way.JVM:
        raise NotInstalled("call spark_udfs.install(spark, registry=…) with these settings of the registry first")
    if find_spec("numba") is None:
        raise ImportError("decoding in Python workers needs numba: pip install 'strata-registry[spark]'")
    why = "install was not called for this registry in this session"
    if way is Way.AUTO and is_installed_otherwise(session):
        _warn(f"{why}, but for others: give install and decode the same settings, or the job is slow")
    return _python_path(way, why)


def _python_path(way: Way, why: str) -> Path:
    if way is Way.JVM:
        raise ValueError(f"path='jvm' cannot be had: {why}")
    path = arrow_path if hasattr(functions, "arrow_udf") else pandas_path
    reason = "it was asked for" if way is Way.PYTHON else why
    _say(f"in Python workers, by the {path.__name__.replace('_', ' ')}: {reason}")
    return path


def _decoder(plan: Plan) -> "BatchDecoder | PayloadDecoder":
    """Return the batch decoder of a plan; imports run in the Python workers only, which need them."""
    if plan.payload is not None:
        from strata.spark_udfs.decoding.payload_worker import payload_decoder

        return payload_decoder(plan)
    from strata.spark_udfs.decoding.avro_worker import batch_decoder

    return batch_decoder(plan)


@cache
def _say(where: str) -> None:
    _log.info("decoding %s", where)


@cache
def _warn(what: str) -> None:
    _log.warning("%s", what)


def output_type(plan: Plan) -> DataType:
    """Return the type of the decoded column."""
    value = reader_type(plan).spark
    if plan.mode is not Mode.DEADLETTER:
        return value
    return StructType([StructField("value", value), StructField("error", ERROR_TYPE)])


def arrow_path(plan: Plan, columns: Sequence[Column]) -> Column:
    """Return the decoded column by an `arrow_udf`, which exchanges Arrow arrays with the JVM.

    Args:
        plan: the plan of the decode.
        columns: the column of frames, then the columns of `plan.origin`.
    """

    def decode_arrow(frames: pa.Array, *origin: pa.Array) -> pa.Array:
        return _decoder(plan).decode(frames, origin)

    return _once(cast("Any", functions).arrow_udf(decode_arrow, output_type(plan)), columns)


def pandas_path(plan: Plan, columns: Sequence[Column]) -> Column:
    """Return the decoded column by a `pandas_udf` that passes Arrow arrays through pandas.

    The value is wrapped in one more struct, because a data frame of results cannot express that a whole row is null.

    Args:
        plan: the plan of the decode.
        columns: the column of frames, then the columns of `plan.origin`.
    """
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    def decode_pandas(frames: pd.Series, *origin: pd.Series) -> pd.DataFrame:
        others = [pa.Array.from_pandas(series) for series in origin]
        return _dressed({"decoded": _decoder(plan).decode(_undressed(frames), others)})

    wrapped = StructType([StructField("decoded", output_type(plan))])
    return _once(cast("Any", functions).pandas_udf(decode_pandas, wrapped), columns)["decoded"]


def _undressed(frames: Any) -> pa.Array:
    """Return frames as an Arrow array; records with headers come as a data frame."""
    if frames.ndim > 1:
        return pa.StructArray.from_arrays([_undressed(frames[name]) for name in frames], names=list(frames))
    return pa.Array.from_pandas(frames)


def _once(function: Any, columns: Sequence[Column]) -> Column:
    """Return a call of a function that Spark does not repeat.

    Spark pushes filters down and copies a deterministic function into both places, which would decode every record
    twice. The function is not deterministic anyway, since the registry changes.
    """
    return cast("Column", function.asNondeterministic()(*columns))


def _dressed(arrays: dict[str, pa.Array]) -> Any:
    """Return a data frame over Arrow arrays that pyspark turns back into the same arrays.

    By default pyspark would convert value by value to Python objects, by `Series.apply`, which loses timestamps that
    pandas cannot hold and turns NaN into null. It asks Arrow-backed series for their array.
    """
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    class ArrowSeries(pd.Series):  # type: ignore[misc,unused-ignore]
        def apply(self, *_: Any, **__: Any) -> "ArrowSeries":
            return self

    class ArrowFrame(pd.DataFrame):  # type: ignore[misc,unused-ignore]
        @property
        def _constructor_sliced(self) -> type[ArrowSeries]:
            return ArrowSeries

    return ArrowFrame({name: pd.arrays.ArrowExtensionArray(pa.chunked_array([one])) for name, one in arrays.items()})
