"""A JSON reader schema for the session's JVM, which makes the plan.

Rules of this file: texts in, texts out; no registry and no bytes of payloads.
"""

from strata.spark_udfs.decoding.json_reader import parsed
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.payload_schema import PayloadSchema

__all__ = ["inputs_of"]


def inputs_of(payload: PayloadSchema) -> dict[str, object]:
    """Return what the JVM plans the decode of a JSON Schema from.

    Raises:
        OnlyInPython: If the payloads are to be validated.
    """
    if payload.validate:
        raise OnlyInPython("JSON payloads with validate=True")
    references = {name: schema.text for name, schema in payload.references}
    return {"text": parsed(payload).canonical, "references": references, "columns": payload.columns}
