"""The JVM's encoder: the call of the function that `install` brings into the session.

The name of the function holds the plan, as in `decoding/jvm_function.py`; the driver has found the schema and its id,
so executors ask no registry.

Rules of this file: no values; what only Python workers encode is known from the schema, before the column is.
"""

import json
from collections.abc import Sequence
from functools import lru_cache

from pyspark.sql import Column, functions

from strata.serdes.model import AVRO, JSON
from strata.spark_udfs.decoding.jvm_function import catalog_of, packed
from strata.spark_udfs.decoding.path_choice import PathOption, runs_in_jvm
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.plan import escaped
from strata.spark_udfs.encoding.plan import EncodePlan, Target

__all__ = ["function_name", "jvm_column", "uses_jvm"]


def uses_jvm(option: PathOption, plan: EncodePlan) -> bool:
    """Return whether the path asked for, or the fastest one that the session supports, is the JVM's.

    Args:
        option: what the caller asked for.
        plan: the plan of the encode.

    Raises:
        NotInstalled: If the JVM path is asked for, and `install` was not called for this registry.
        ValueError: If the JVM path is asked for, and it does not support the schema.
    """
    return runs_in_jvm(option, plan.registry, "encode", unsupported=_only_in_python(plan))


def _only_in_python(plan: EncodePlan) -> str:
    """Return what of a plan only Python workers encode, or an empty text."""
    if plan.rules is not None:
        return "with rules"
    try:
        _schema(plan)
        _checks(plan)
    except OnlyInPython as part:
        return str(part)
    return ""


def jvm_column(plan: EncodePlan, columns: Sequence[Column]) -> Column:
    """Return a call of the catalog's function.

    Args:
        plan: the plan of the encode.
        columns: the column of values, then the columns of `plan.origin`.
    """
    values, *origin = columns
    return functions.call_function(
        f"{catalog_of(plan.registry)}_encode", values, functions.lit(function_name(plan)), *origin
    )


def function_name(plan: EncodePlan) -> str:
    """Return the name of a plan's function, which holds all that executors need.

    It begins with what people want to know, as that of a decode does.
    """
    content = {
        "format": plan.target.schema.format,
        "schema": _schema(plan),
        "prefix": plan.prefix.hex(),
        "mode": plan.mode.value,
        "origin": list(plan.origin),
        "checks": _checks(plan),
    }
    label = f"{escaped(plan.subject or '')}?id={plan.target.identity.id}&mode={plan.mode}"
    return f"{label}&plan={packed(content)}"


def _schema(plan: EncodePlan) -> str:
    """Return the schema as the JVM reads it."""
    if plan.target.schema.format in (AVRO, JSON):
        return plan.target.schema.text
    from strata.spark_udfs.encoding.protobuf_jvm import write_message  # needs an extra that Avro does not

    return write_message(plan)


def _checks(plan: EncodePlan) -> str:
    """Return the rules of a JSON Schema as the JVM reads them, or an empty text."""
    return _checks_of(plan.target) if plan.validate and plan.target.schema.format == JSON else ""


@lru_cache(maxsize=32)
def _checks_of(target: Target) -> str:
    try:
        from strata.spark_udfs.encoding.json_checks import checks_of
    except ImportError:
        raise OnlyInPython("JSON with validation without the extra `json` on the driver") from None
    return json.dumps(checks_of(target.schema, dict(target.references)))
