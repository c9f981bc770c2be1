"""What frames without a value become: dead letters, an error that names the record, or a failed task.

Rules of this file: the same for every format; nothing is decoded here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from strata.serdes.arrow.layout import sparse
from strata.serdes.framing import SchemaName, label
from strata.spark_udfs.arguments import Mode, shown_origin
from strata.spark_udfs.decoding.plan import DecodePlan

__all__ = ["FrameRefused", "Refusal", "errors_of", "finish"]

_ERROR_TYPE = pa.struct([("reason", pa.string()), ("schema_id", pa.int32()), ("frame", pa.binary())])


class FrameRefused(ValueError):
    """A frame that cannot be decoded, in mode FAILFAST."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a frame has no value.

    Attributes:
        reason: short; there are few, so they can be counted.
        schema: the schema that the frame names, None if it cannot be read.
        message: the full reason, if it is known already.
    """

    reason: str
    schema: SchemaName | None
    message: str = ""

    @property
    def schema_id(self) -> int | None:
        """Return the schema id, or None if the frame has none."""
        return self.schema if isinstance(self.schema, int) else None


def finish(
    plan: DecodePlan,
    values: Callable[[], pa.Array],
    sent: pa.Array,
    refusals: Mapping[int, Refusal],
    origin: Sequence[pa.Array],
    explain: Callable[[int], str],
) -> pa.Array:
    """Return the result of a batch, by the plan's mode.

    Args:
        plan: the plan.
        values: returns the array of values, in which refused rows are null.
        sent: the bytes as they came.
        refusals: by row, why it has no value.
        origin: the columns that an error shows.
        explain: returns the full reason of a row's refusal.

    Raises:
        FrameRefused: If a row was refused, in mode FAILFAST.
    """
    if refusals and plan.mode is Mode.FAILFAST:
        row = min(refusals)
        place = ", ".join([label(refusals[row].schema), *shown_origin(plan.origin, origin, row)])
        raise FrameRefused(f"a frame cannot be decoded ({place}): {explain(row)}")
    if plan.mode is not Mode.DEADLETTER:
        return values()
    return pa.StructArray.from_arrays([values(), errors_of(sent, refusals)], names=["value", "error"])


def errors_of(sent: pa.Array, refusals: Mapping[int, Refusal]) -> pa.Array:
    """Return the errors of a batch.

    Args:
        sent: the bytes as they came.
        refusals: by row, why it has no value.
    """
    errors = {
        row: {"reason": refusal.reason, "schema_id": refusal.schema_id, "frame": sent[row].as_py()}
        for row, refusal in refusals.items()
    }
    return sparse(len(sent), errors, _ERROR_TYPE)
