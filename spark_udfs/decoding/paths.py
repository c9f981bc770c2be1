"""The paths from a plan to a column, and the choice among them.

    jvm          inside Spark's executors, if `install` was called for the registry
    arrow_udf    Spark 4.1 and later: Arrow arrays in and out, by `strata.serdes.arrow`
    pandas_udf   Spark 4.0: the same arrays, passed through pandas, which the executors need

All give the same values of the same type. The name of the function in a query's plan shows which one it is.

Rules of this file: no values and no schemas; the executor decodes batches.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql import Column, functions
from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructField, StructType

from strata.spark_udfs.arguments import Mode
from strata.spark_udfs.decoding.jvm_function import jvm_path
from strata.spark_udfs.decoding.path_choice import PathOption, runs_in_jvm
from strata.spark_udfs.decoding.payload_formats import inputs_for_jvm
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.payload_schema import PayloadSchema
from strata.spark_udfs.decoding.plan import DecodePlan, reader_type

if TYPE_CHECKING:
    from strata.spark_udfs.decoding.avro_decoder import AvroDecoder
    from strata.spark_udfs.decoding.payload_decoder import PayloadDecoder
    from strata.spark_udfs.decoding.ruled_decoder import RuledDecoder

__all__ = ["ERROR_TYPE", "DecodePath", "arrow_path", "choose_path", "output_type", "pandas_path"]

DecodePath = Callable[[DecodePlan, Sequence[Column]], Column]
"""Turns the column of frames and the origin columns into the decoded column."""

ERROR_TYPE = StructType(
    [
        StructField("reason", StringType()),
        StructField("schema_id", IntegerType()),
        StructField("frame", BinaryType()),
    ]
)


def choose_path(option: PathOption, plan: DecodePlan) -> DecodePath:
    """Return the path asked for, or the fastest one that the session and the installed Spark support.

    Args:
        option: what the caller asked for.
        plan: the plan of the decode.

    Raises:
        NotInstalled: If the JVM path is asked for, and `install` was not called for this registry.
        ValueError: If the JVM path is asked for, and it does not support the reader schema.
    """
    in_python = arrow_path if hasattr(functions, "arrow_udf") else pandas_path
    workers = f"Python workers by {in_python.__name__.replace('_path', '_udf')}"
    unsupported = "with rules" if plan.rules is not None else _unsupported(plan.payload)
    is_jvm = runs_in_jvm(option, plan.registry, "decode", unsupported=unsupported, workers=workers)
    return jvm_path if is_jvm else in_python


def _unsupported(payload: PayloadSchema | None) -> str:
    """Return what of a reader schema only Python workers decode, or an empty text."""
    if payload is None:
        return ""
    try:
        inputs_for_jvm(payload)
    except OnlyInPython as part:
        return str(part)
    return ""


def _decoder(plan: DecodePlan) -> "AvroDecoder | PayloadDecoder | RuledDecoder":
    """Return the batch decoder of a plan; imports run in the Python workers only, which need them."""
    if plan.rules is not None:
        from strata.spark_udfs.decoding.ruled_decoder import ruled_decoder

        return ruled_decoder(plan)
    if plan.payload is not None:
        from strata.spark_udfs.decoding.payload_decoder import payload_decoder

        return payload_decoder(plan)
    from strata.spark_udfs.decoding.avro_decoder import avro_decoder

    return avro_decoder(plan)


def output_type(plan: DecodePlan) -> DataType:
    """Return the type of the decoded column."""
    value = reader_type(plan)
    if plan.mode is not Mode.DEADLETTER:
        return value
    return StructType([StructField("value", value), StructField("error", ERROR_TYPE)])


def arrow_path(plan: DecodePlan, columns: Sequence[Column]) -> Column:
    """Return the decoded column by an `arrow_udf`, which exchanges Arrow arrays with the JVM.

    Args:
        plan: the plan of the decode.
        columns: the column of frames, then the columns of `plan.origin`.
    """

    def decode_arrow(frames: pa.Array, *origin: pa.Array) -> pa.Array:
        return _decoder(plan).decode(frames, origin)

    return _call_once(cast("Any", functions).arrow_udf(decode_arrow, output_type(plan)), columns)


def pandas_path(plan: DecodePlan, columns: Sequence[Column]) -> Column:
    """Return the decoded column by a `pandas_udf` that passes Arrow arrays through pandas.

    The value is wrapped in one more struct, because a data frame of results cannot express that a whole row is null.

    Args:
        plan: the plan of the decode.
        columns: the column of frames, then the columns of `plan.origin`.
    """
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    def decode_pandas(frames: pd.Series, *origin: pd.Series) -> pd.DataFrame:
        others = [pa.Array.from_pandas(series) for series in origin]
        return _to_pandas({"decoded": _decoder(plan).decode(_from_pandas(frames), others)})

    wrapped = StructType([StructField("decoded", output_type(plan))])
    return _call_once(cast("Any", functions).pandas_udf(decode_pandas, wrapped), columns)["decoded"]


def _from_pandas(frames: Any) -> pa.Array:
    """Return frames as an Arrow array; records with headers come as a data frame."""
    if frames.ndim > 1:
        return pa.StructArray.from_arrays([_from_pandas(frames[name]) for name in frames], names=list(frames))
    return pa.Array.from_pandas(frames)


def _call_once(function: Any, columns: Sequence[Column]) -> Column:
    """Return a call of a function that Spark does not duplicate.

    Spark pushes filters down and copies a deterministic function into both places, which would decode every record
    twice. The function is not deterministic anyway, since the registry changes.
    """
    return cast("Column", function.asNondeterministic()(*columns))


def _to_pandas(arrays: dict[str, pa.Array]) -> Any:
    """Return a data frame over Arrow arrays that pyspark turns back into the same arrays.

    By default pyspark would convert value by value to Python objects, by `Series.apply`, which loses timestamps that
    pandas cannot hold and turns NaN into null. It asks Arrow-backed series for their array.
    """
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    class ArrowSeries(pd.Series):  # type: ignore[misc,unused-ignore]
        def apply(self, *_: object, **__: object) -> "ArrowSeries":
            return self

    class ArrowFrame(pd.DataFrame):  # type: ignore[misc,unused-ignore]
        @property
        def _constructor_sliced(self) -> type[ArrowSeries]:
            return ArrowSeries

    return ArrowFrame(
        {name: pd.arrays.ArrowExtensionArray(pa.chunked_array([array])) for name, array in arrays.items()}
    )
