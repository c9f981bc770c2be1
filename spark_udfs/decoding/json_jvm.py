"""The types of a JSON decode, written out for the executors in the JVM.

Rules of this file: a reader schema in, JSON out; no registry and no bytes of payloads.
"""

import json

from strata.spark_udfs.decoding.json_reader import root_of
from strata.spark_udfs.decoding.json_types import described
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.payload_schema import PayloadSchema

__all__ = ["write_types"]


def write_types(payload: PayloadSchema) -> str:
    """Return the types to read, as JSON for `strata.spark.json.JsonProgram`.

    Raises:
        OnlyInPython: If the payloads are to be validated.
    """
    if payload.validate:
        raise OnlyInPython("JSON payloads with validate=True")
    return json.dumps(described(root_of(payload), payload.columns))
