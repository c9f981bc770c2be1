"""The JSON Schema compatibility rules: whether a reader schema accepts everything that a writer schema allows.

The rules are the reference's table of differences, and every difference is collected. Work is counted, so a check
always ends. Beyond the limit, or too deep for the stack, its finding is TOO_COMPLEX.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from strata.compat.avro.java_numbers import to_double
from strata.compat.json_schema import model
from strata.compat.json_schema.arrays import compare_arrays
from strata.compat.json_schema.combined import compare_combined
from strata.compat.json_schema.comparison import Comparison
from strata.compat.json_schema.findings import (
    Difference,
    Findings,
    TooComplexError,
    change_of_set,
    described,
    value_of,
)
from strata.compat.json_schema.objects import compare_objects
from strata.compat.json_schema.wording import TOO_COMPLEX, describe
from strata.compat.levels import Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.result import Incompatibility
from strata.compat.schema import SchemaFormat

__all__ = ["check"]

_COST_OF_A_DIVISION: Final = 20
_LARGEST_FOR_DIVISION: Final = 1000  # decimal places
# The keywords that limit values and sizes, in the order of their findings, with the beginnings of the kinds.
_BOUNDS: Final = {
    "maxLength": "MAX_LENGTH",
    "minLength": "MIN_LENGTH",
    "maximum": "MAXIMUM",
    "minimum": "MINIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
    "maxProperties": "MAX_PROPERTIES",
    "minProperties": "MIN_PROPERTIES",
    "maxItems": "MAX_ITEMS",
    "minItems": "MIN_ITEMS",
    "maxContains": "MAX_CONTAINS",
    "minContains": "MIN_CONTAINS",
}


def check(
    reader: model.JsonSchema,
    writer: model.JsonSchema,
    *,
    policy: Policy = Policy.STRICT,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Incompatibility]:
    """Return every reason why the reader schema does not accept everything that the writer schema allows.

    A check that exceeds the comparisons of `limits`, or is nested too deeply, returns the single finding TOO_COMPLEX.

    Args:
        reader: The reader schema.
        writer: The writer schema.
        policy: How strictly to treat differences.
        limits: Bounds on work, findings and time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    try:
        found = Comparison(_judge, policy, limits).run(reader.root, writer.root)
    except (TooComplexError, RecursionError) as error:
        detail = str(error) if isinstance(error, TooComplexError) else "the schemas are nested too deeply"
        return [Incompatibility(SchemaFormat.JSON, TOO_COMPLEX, "#/", describe(TOO_COMPLEX, detail), detail=detail)]
    return [_finding(difference) for difference in found[: limits.incompatibilities]]


def _finding(difference: Difference) -> Incompatibility:
    path = "#/" + "/".join(difference.steps)
    return Incompatibility(
        format=SchemaFormat.JSON,
        kind=difference.kind,
        path=path,
        message=describe(difference.kind, path),
        where=".".join(difference.steps),
        reader_value=value_of(difference.reader),
        writer_value=value_of(difference.writer),
    )


def _judge(context: Comparison, reader: model.Node, writer: model.Node, into: Findings) -> None:
    if reader.connect_type == "bytes" and writer.connect_type == "bytes":
        return
    if isinstance(reader, model.CombinedNode) != isinstance(writer, model.CombinedNode) and _one_sided(
        context, reader, writer, into
    ):
        return
    if isinstance(writer, model.FalseNode) or isinstance(reader, model.EmptyNode):
        return
    kind = type(reader)
    if kind is not type(writer):
        context.note(into, "TYPE_CHANGED", reader=described(reader), writer=described(writer))
        return
    if isinstance(reader, model.BoundedNode) and isinstance(writer, model.BoundedNode):
        _bounds(context, reader, writer, into)
    if kind in _RULES:
        _RULES[kind](context, reader, writer, into)


def _one_sided(context: Comparison, reader: model.Node, writer: model.Node, into: Findings) -> bool:
    """Compare a combined schema with a plain one; return whether that settles the pair."""
    if isinstance(reader, model.CombinedNode):
        several, kind = reader.criterion is not model.Criterion.ALL, "SUM_TYPE_EXTENDED"
        pairs = [(branch, writer) for branch in reader.branches]
    elif isinstance(writer, model.CombinedNode):
        several, kind = writer.criterion is model.Criterion.ALL, "PRODUCT_TYPE_NARROWED"
        pairs = [(reader, branch) for branch in writer.branches]
    else:
        return False
    if len(pairs) == 1:
        context.take(into, context.compare(*pairs[0]))
        return True
    for pair in pairs if several else ():
        findings = context.compare(*pair)
        if findings.compatible:
            context.take(into, findings)
            context.note(into, kind)
            return True
    return False


def _bounds(context: Comparison, reader: model.BoundedNode, writer: model.BoundedNode, into: Findings) -> None:
    """Compare the limits that both schemas, or one of them, set."""
    if not reader.bounds and not writer.bounds:
        return
    for word, kind in _BOUNDS.items():
        new, old = reader.bounds.get(word), writer.bounds.get(word)
        if isinstance(reader, model.NumberNode):
            new, old = _double(new), _double(old)
        if new == old:
            continue
        if old is None:
            change = "ADDED"
        elif new is None:
            change = "REMOVED"
        else:
            change = "INCREASED" if new > old else "DECREASED"
        context.note(into, f"{kind}_{change}", word, reader=new, writer=old)


def _double(value: model.Number | None) -> model.Number | None:
    """Return the exact value of the double nearest to a number, as the reference compares it."""
    return None if value is None else Decimal(to_double(value))


def _strings(context: Comparison, reader: model.StringNode, writer: model.StringNode, into: Findings) -> None:
    if reader.pattern != writer.pattern:
        change = "ADDED" if writer.pattern is None else "REMOVED" if reader.pattern is None else "CHANGED"
        context.note(into, f"PATTERN_{change}", "pattern", reader=reader.pattern, writer=writer.pattern)


def _numbers(context: Comparison, reader: model.NumberNode, writer: model.NumberNode, into: Findings) -> None:
    _multiples(context, reader.multiple_of, writer.multiple_of, into)
    if reader.integer != writer.integer:
        kind = "TYPE_NARROWED" if reader.integer else "TYPE_EXTENDED"
        context.note(into, kind, reader=described(reader), writer=described(writer))


def _multiples(context: Comparison, reader: model.Number | None, writer: model.Number | None, into: Findings) -> None:
    if reader == writer:
        return
    if reader is None or writer is None:
        kind = "MULTIPLE_OF_ADDED" if writer is None else "MULTIPLE_OF_REMOVED"
        context.note(into, kind, "multipleOf", reader=reader, writer=writer)
        return
    context.charge(_COST_OF_A_DIVISION)
    change = "CHANGED"
    if all(number and abs(Decimal(number).adjusted()) <= _LARGEST_FOR_DIVISION for number in (reader, writer)):
        quotient = Fraction(reader) / Fraction(writer)
        if quotient.denominator == 1:
            change = "EXPANDED"
        elif abs(quotient.numerator) == 1:
            change = "REDUCED"
    context.note(into, f"MULTIPLE_OF_{change}", "multipleOf", reader=reader, writer=writer)


def _enums(context: Comparison, reader: model.EnumNode, writer: model.EnumNode, into: Findings) -> None:
    if reader.values != writer.values:
        kind = f"ENUM_ARRAY_{change_of_set(reader.values, writer.values)}"
        context.note(into, kind, "enum", reader=reader.values, writer=writer.values)


def _constants(context: Comparison, reader: model.ConstNode, writer: model.ConstNode, into: Findings) -> None:
    if reader.value != writer.value:
        context.note(into, "ENUM_ARRAY_CHANGED", "const", reader=reader, writer=writer)


def _negations(context: Comparison, reader: model.NotNode, writer: model.NotNode, into: Findings) -> None:
    # Swap the sides: values that the new schema refuses must be among those that the old one refused.
    fits = context.compare(writer.inner, reader.inner).compatible
    kind = "NOT_TYPE_NARROWED" if fits else "NOT_TYPE_EXTENDED"
    context.note(into, kind, "not", reader=described(reader.inner), writer=described(writer.inner))


_RULES: Final[Mapping[type[model.Node], Callable[[Comparison, Any, Any, Findings], None]]] = {
    model.ArrayNode: compare_arrays,
    model.CombinedNode: compare_combined,
    model.ConstNode: _constants,
    model.EnumNode: _enums,
    model.NotNode: _negations,
    model.NumberNode: _numbers,
    model.ObjectNode: compare_objects,
    model.StringNode: _strings,
}
