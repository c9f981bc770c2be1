"""The JVM's encoder: the call of the function that `install` brings into the session.

The name of the function holds the plan, as in `decoding/jvm_function.py`; the driver has found the schema and its id,
so executors ask no registry.

Rules of this file: no values; what only Python workers encode is known from the schema, before the column is. Of JSON,
the session's JVM says what it validates, since only there schemas become checks.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from pyspark.sql import Column, SparkSession, functions

from strata.serdes.client import Schema
from strata.serdes.model import AVRO, JSON
from strata.spark_udfs.arguments import active_session
from strata.spark_udfs.decoding.jvm_function import catalog_of, is_installed, packed
from strata.spark_udfs.decoding.path_choice import PathOption, runs_in_jvm
from strata.spark_udfs.decoding.payload_reader import OnlyInPython
from strata.spark_udfs.decoding.plan import escaped
from strata.spark_udfs.encoding.plan import EncodePlan

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
    return runs_in_jvm(option, plan.registry, "encode", unsupported=_only_in_python(option, plan))


def _only_in_python(option: PathOption, plan: EncodePlan) -> str:
    """Return what of a plan only Python workers encode, or an empty text."""
    if plan.rules is not None:
        return "with rules"
    try:
        _inputs(plan)
    except OnlyInPython as part:
        return str(part)
    if option is PathOption.PYTHON or not _validates(plan) or not is_installed(active_session(), plan.registry):
        return ""
    return _not_validated(catalog_of(plan.registry), function_name(plan))


@lru_cache(maxsize=32)
def _not_validated(catalog: str, name: str) -> str:
    """Return what of a JSON Schema only Python workers validate, or an empty text; the session's JVM knows."""
    session = cast("SparkSession", active_session())
    asked = functions.call_function(f"{catalog}_unsupported", functions.lit(name))
    [[part]] = session.sql("VALUES (1)").select(asked).collect()  # a local relation, for which no job runs
    return "" if part is None else f"{part} (validate=False leaves it out)"


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
    content: dict[str, object] = {
        "format": plan.target.schema.format,
        **_inputs(plan),
        "prefix": plan.prefix.hex(),
        "mode": plan.mode.value,
        "origin": list(plan.origin),
    }
    if _validates(plan):
        content |= _references(plan)
    label = f"{escaped(plan.subject or '')}?id={plan.target.identity.id}&mode={plan.mode}"
    return f"{label}&plan={packed(content)}"


def _inputs(plan: EncodePlan) -> dict[str, object]:
    """Return the schema to write with, from which the JVM makes its plan."""
    if plan.target.schema.format in (AVRO, JSON):
        return {"schema": plan.target.schema.text}
    from strata.spark_udfs.encoding.protobuf_jvm import inputs_of  # needs an extra that Avro does not

    return inputs_of(plan)


def _validates(plan: EncodePlan) -> bool:
    return plan.validate and plan.target.schema.format == JSON


def _references(plan: EncodePlan) -> dict[str, object]:
    """Return what a JSON Schema refers to, by name, in the form of a registry's answers."""
    return {
        "validate": True,
        "references": _names(plan.target.schema),
        "named": {
            name: {"schema": schema.text, "references": _names(schema)} for name, schema in plan.target.references
        },
    }


def _names(schema: Schema) -> list[dict[str, str]]:
    return [{"name": reference.name} for reference in schema.references]
