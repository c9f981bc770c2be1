"""The ways in which a plan becomes a column, and which one this session offers.

    jvm          inside Spark's executors, where `install` has been called for the registry
    arrow_udf    Spark 4.1 and later: Arrow arrays in and out, by `serdes.arrow`
    pandas_udf   Spark 4.0: the same arrays, handed through pandas, which must be installed on the executors

All give the same values of the same type. The name of the function in a query's plan tells which one it is.

Rules of this file: no values and no schemas; what happens in a batch is the executor's.
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

from spark_udfs.catalog import NotInstalled, is_installed, is_installed_otherwise, jvm_path
from spark_udfs.headers import active_session
from spark_udfs.plan import Mode, Plan, reader_type

if TYPE_CHECKING:
    from spark_udfs.executor import BatchDecoder
    from spark_udfs.payloads import PayloadDecoder

__all__ = ["ERROR_TYPE", "Path", "Way", "arrow_path", "chosen_path", "output_type", "pandas_path"]

Path = Callable[[Plan, Sequence[Column]], Column]
"""The frames' column and those of their origin become the decoded column."""

ERROR_TYPE = StructType(
    [
        StructField("reason", StringType()),
        StructField("schema_id", IntegerType()),
        StructField("frame", BinaryType()),
    ]
)

_log = logging.getLogger("spark_udfs")


class Way(StrEnum):
    """What a caller can ask for."""

    AUTO = "auto"
    JVM = "jvm"
    PYTHON = "python"


def chosen_path(way: Way, plan: Plan) -> Path:
    """The way asked for, or the fastest that the session and the installed Spark offer.

    Raises:
        NotInstalled: the JVM is asked for, and `install` has not been called for this registry.
        ValueError: the JVM is asked for, and the format is not Avro.
        ImportError: the Python workers would lack what they need.
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
    """What decodes batches by a plan; called in Python workers, which alone need what it imports."""
    if plan.payload is not None:
        from spark_udfs.payloads import payload_decoder

        return payload_decoder(plan)
    from spark_udfs.executor import batch_decoder

    return batch_decoder(plan)


@cache
def _say(where: str) -> None:
    _log.info("decoding %s", where)


@cache
def _warn(what: str) -> None:
    _log.warning("%s", what)


def output_type(plan: Plan) -> DataType:
    """The type of the decoded column."""
    value = reader_type(plan).spark
    if plan.mode is not Mode.DEADLETTER:
        return value
    return StructType([StructField("value", value), StructField("error", ERROR_TYPE)])


def arrow_path(plan: Plan, columns: Sequence[Column]) -> Column:
    """Arrow arrays from and to the JVM."""

    def decode_arrow(frames: pa.Array, *origin: pa.Array) -> pa.Array:
        return _decoder(plan).decode(frames, origin)

    return _once(cast("Any", functions).arrow_udf(decode_arrow, output_type(plan)), columns)


def pandas_path(plan: Plan, columns: Sequence[Column]) -> Column:
    """Arrow arrays in the clothes of pandas.

    A data frame of results cannot say that a whole row is null, hence one more struct around the value.
    """
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    def decode_pandas(frames: pd.Series, *origin: pd.Series) -> pd.DataFrame:
        others = [pa.Array.from_pandas(series) for series in origin]
        return _dressed({"decoded": _decoder(plan).decode(_undressed(frames), others)})

    wrapped = StructType([StructField("decoded", output_type(plan))])
    return _once(cast("Any", functions).pandas_udf(decode_pandas, wrapped), columns)["decoded"]


def _undressed(frames: Any) -> pa.Array:
    """Frames as Arrow has them; records with headers come as a data frame."""
    if frames.ndim > 1:
        return pa.StructArray.from_arrays([_undressed(frames[name]) for name in frames], names=list(frames))
    return pa.Array.from_pandas(frames)


def _once(function: Any, columns: Sequence[Column]) -> Column:
    """The call of a function that is not to be repeated.

    Spark moves filters below what they filter on, and copies a function that always answers the same into both places:
    every record would be decoded twice. What the registry knows changes anyway.
    """
    return cast("Column", function.asNondeterministic()(*columns))


def _dressed(arrays: dict[str, pa.Array]) -> Any:
    """A data frame over Arrow arrays that pyspark turns into those very arrays again.

    Left to itself it would go through Python objects value by value, which loses instants that pandas cannot hold, and
    takes NaN for null. It does so by `Series.apply`, and asks Arrow-backed series for their array.
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
