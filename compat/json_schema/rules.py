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
from strata.compat.json_schema.comparison import Comparison
from strata.compat.json_schema.content import compare_covered, compare_removed, compare_rests, covering, is_open
from strata.compat.json_schema.findings import (
    Difference,
    Findings,
    TooComplexError,
    change_of_set,
    described,
    value_of,
)
from strata.compat.json_schema.model import ArrayNode, CombinedNode, Criterion, EmptyNode, Node, ObjectNode, follow
from strata.compat.json_schema.wording import TOO_COMPLEX, describe
from strata.compat.levels import Policy
from strata.compat.limits import DEFAULT_LIMITS, Limits
from strata.compat.result import Incompatibility
from strata.compat.schema import SchemaFormat

__all__ = ["check"]

_COST_OF_A_DIVISION: Final = 20
_LARGEST_FOR_DIVISION: Final = 1000  # decimal places
_ROOM: Final = 4  # how often all of two schemas may be written in search of equal parts
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
_SUMS: Final = (Criterion.ANY, Criterion.ONE)


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
    dialect = reader.documents.dialect
    is_one = dialect is not None and dialect is writer.documents.dialect
    room = _ROOM * (len(reader.canonical) + len(writer.canonical)) if is_one else 0
    try:
        differences = Comparison(_judge, policy, limits, room=room).run(reader.root, writer.root)
    except (TooComplexError, RecursionError) as error:
        detail = str(error) if isinstance(error, TooComplexError) else "the schemas are nested too deeply"
        return [Incompatibility(SchemaFormat.JSON, TOO_COMPLEX, "#/", describe(TOO_COMPLEX, detail), detail=detail)]
    return [_finding(difference) for difference in differences[: limits.incompatibilities]]


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
    node_type = type(reader)
    if node_type is not type(writer):
        context.note(into, "TYPE_CHANGED", reader=described(reader), writer=described(writer))
        return
    if isinstance(reader, model.BoundedNode) and isinstance(writer, model.BoundedNode):
        _bounds(context, reader, writer, into)
    if node_type in _RULES:
        _RULES[node_type](context, reader, writer, into)


def _one_sided(context: Comparison, reader: model.Node, writer: model.Node, into: Findings) -> bool:
    """Compare a combined schema with a plain one; return whether that settles the pair."""
    if isinstance(reader, model.CombinedNode):
        several, change_kind = reader.criterion is not model.Criterion.ALL, "SUM_TYPE_EXTENDED"
        pairs = [(branch, writer) for branch in reader.branches]
    elif isinstance(writer, model.CombinedNode):
        several, change_kind = writer.criterion is model.Criterion.ALL, "PRODUCT_TYPE_NARROWED"
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
            context.note(into, change_kind)
            return True
    return False


def _bounds(context: Comparison, reader: model.BoundedNode, writer: model.BoundedNode, into: Findings) -> None:
    """Compare the limits that both schemas, or one of them, set."""
    if not reader.bounds and not writer.bounds:
        return
    for word, keyword_kind in _BOUNDS.items():
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
        context.note(into, f"{keyword_kind}_{change}", word, reader=new, writer=old)


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
        change = "TYPE_NARROWED" if reader.integer else "TYPE_EXTENDED"
        context.note(into, change, reader=described(reader), writer=described(writer))


def _multiples(context: Comparison, reader: model.Number | None, writer: model.Number | None, into: Findings) -> None:
    if reader == writer:
        return
    if reader is None or writer is None:
        difference = "MULTIPLE_OF_ADDED" if writer is None else "MULTIPLE_OF_REMOVED"
        context.note(into, difference, "multipleOf", reader=reader, writer=writer)
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
        change = f"ENUM_ARRAY_{change_of_set(reader.values, writer.values)}"
        context.note(into, change, "enum", reader=reader.values, writer=writer.values)


def _constants(context: Comparison, reader: model.ConstNode, writer: model.ConstNode, into: Findings) -> None:
    if reader.value != writer.value:
        context.note(into, "ENUM_ARRAY_CHANGED", "const", reader=reader, writer=writer)


def _negations(context: Comparison, reader: model.NotNode, writer: model.NotNode, into: Findings) -> None:
    # Swap the sides: values that the new schema refuses must be among those that the old one refused.
    fits = context.compare(writer.inner, reader.inner).compatible
    change = "NOT_TYPE_NARROWED" if fits else "NOT_TYPE_EXTENDED"
    context.note(into, change, "not", reader=described(reader.inner), writer=described(writer.inner))


def compare_arrays(context: Comparison, reader: ArrayNode, writer: ArrayNode, into: Findings) -> None:
    """Compare two array schemas; add the differences to `into`."""
    if reader.unique != writer.unique:
        change = f"UNIQUE_ITEMS_{'ADDED' if reader.unique else 'REMOVED'}"
        context.note(into, change, "uniqueItems", reader=reader.unique, writer=writer.unique)
    context.descend(into, reader.items, writer.items, "items")
    compare_rests(context, reader, writer, into, "ITEMS", "Items")
    new, old = reader.tuple_items or [], writer.tuple_items or []
    for number in range(max(len(new), len(old))):
        steps = ("items", str(number))
        if number >= len(old):
            _item_added(context, writer, new[number], into, *steps)
        elif number >= len(new):
            compare_removed(context, reader, old[number], into, "ITEM", *steps)
        else:
            context.descend(into, new[number], old[number], *steps)


def _item_added(context: Comparison, writer: ArrayNode, new: Node, into: Findings, *steps: str) -> None:
    if is_open(writer):
        empty = isinstance(follow(new), EmptyNode)
        change = "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO" if empty else "ITEM_ADDED_TO"
        context.note(into, f"{change}_OPEN_CONTENT_MODEL", *steps, reader=described(new))
    elif (rest := covering(context, writer, steps[-1])) is not None:
        compare_covered(context, new, rest, into, "ITEM_ADDED", *steps)
    else:
        context.note(into, "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", *steps)


def compare_objects(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    """Compare two object schemas; add the differences to `into`."""
    _required(context, reader, writer, into)
    compare_rests(context, reader, writer, into, "PROPERTIES", "Properties")
    _dependencies(context, reader, writer, into)
    for name in {**writer.properties, **reader.properties}:
        if name not in reader.properties:
            compare_removed(context, reader, writer.properties[name], into, "PROPERTY", "properties", name)
        elif name not in writer.properties:
            _property_added(context, reader, writer, into, "properties", name)
        else:
            context.descend(into, reader.properties[name], writer.properties[name], "properties", name)


def _required(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    for name in reader.properties.keys() & writer.properties.keys():
        if name in reader.required and name not in writer.required:
            by_default = reader.properties[name].default is not None
            change = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if by_default else "REQUIRED_ATTRIBUTE_ADDED"
            context.note(into, change, "required", name, reader=True, writer=False)
        elif name in writer.required and name not in reader.required:
            context.note(into, "REQUIRED_ATTRIBUTE_REMOVED", "required", name, reader=False, writer=True)


def _dependencies(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    for name in reader.property_dependencies.keys() | writer.property_dependencies.keys():
        new, old = reader.property_dependencies.get(name), writer.property_dependencies.get(name)
        if new == old:
            continue
        change = "ADDED" if old is None else "REMOVED" if new is None else change_of_set(new, old)
        needs, needed = (None if names is None else sorted(names) for names in (new, old))
        context.note(into, f"DEPENDENCY_ARRAY_{change}", "dependencies", name, reader=needs, writer=needed)
    for name in reader.schema_dependencies.keys() | writer.schema_dependencies.keys():
        if name not in writer.schema_dependencies:
            demand = described(reader.schema_dependencies[name])
            context.note(into, "DEPENDENCY_SCHEMA_ADDED", "dependencies", name, reader=demand)
        elif name not in reader.schema_dependencies:
            context.note(into, "DEPENDENCY_SCHEMA_REMOVED", "dependencies", name)
        else:
            context.descend(
                into, reader.schema_dependencies[name], writer.schema_dependencies[name], "dependencies", name
            )


def _property_added(context: Comparison, reader: ObjectNode, writer: ObjectNode, into: Findings, *steps: str) -> None:
    name = steps[-1]
    new = reader.properties[name]
    is_writer_open = is_open(writer)
    if is_writer_open and isinstance(follow(new), EmptyNode):
        context.note(into, "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", *steps)
        return
    if not is_writer_open and (rest := covering(context, writer, name)) is not None:
        compare_covered(context, new, rest, into, "PROPERTY_ADDED", *steps)
    demand = "REQUIRED_PROPERTY" if name in reader.required else "OPTIONAL_PROPERTY"
    if name in reader.required and new.default is not None:
        demand += "_WITH_DEFAULT"
    place = "OPEN" if is_writer_open else "UNOPEN"
    context.note(into, f"{demand}_ADDED_TO_{place}_CONTENT_MODEL", *steps, reader=described(new))


def distinct(node: CombinedNode) -> list[Node]:
    """Return the branches without duplicates."""
    kept: dict[tuple[object, str], Node] = {}
    for branch in node.branches:
        kept.setdefault((type(branch), branch.key) if branch.key else (type(branch), str(id(branch))), branch)
    return list(kept.values())


def compare_combined(context: Comparison, reader: CombinedNode, writer: CombinedNode, into: Findings) -> None:
    """Compare two combined schemas; add the differences to `into`."""
    if not _criteria(context, reader, writer, into):
        return
    new, old = distinct(reader), distinct(writer)
    ours, theirs = described(reader), described(writer)
    if len(new) > len(old):
        change = "PRODUCT_TYPE_EXTENDED" if reader.criterion is Criterion.ALL else "SUM_TYPE_EXTENDED"
        context.note(into, change, reader=ours, writer=theirs)
    elif len(new) < len(old):
        change = "SUM_TYPE_NARROWED" if writer.criterion in _SUMS else "PRODUCT_TYPE_NARROWED"
        context.note(into, change, reader=ours, writer=theirs)
    fitting: list[dict[int, Findings]] = []
    for old_branch in old:
        results: dict[int, Findings] = {}
        for number, new_branch in enumerate(new):
            result = context.compare(new_branch, old_branch)
            if result.compatible:
                results[number] = result
        fitting.append(results)
    matched = _matching(context, fitting)
    for old_number, new_number in matched.items():
        context.take(into, fitting[old_number][new_number], writer.criterion.value, str(old_number))
    if len(matched) < min(len(new), len(old)):
        context.note(into, "COMBINED_TYPE_SUBSCHEMAS_CHANGED", reader=ours, writer=theirs)


def _criteria(context: Comparison, reader: CombinedNode, writer: CombinedNode, into: Findings) -> bool:
    if reader.criterion is writer.criterion:
        return True
    new_single, old_single = len(reader.branches) == 1, len(writer.branches) == 1
    extended = (
        reader.criterion is Criterion.ANY
        or (new_single and old_single)
        or (old_single and reader.criterion is Criterion.ONE)
        or (new_single and writer.criterion is Criterion.ALL)
    )
    change = "COMBINED_TYPE_EXTENDED" if extended else "COMBINED_TYPE_CHANGED"
    context.note(into, change, reader=described(reader), writer=described(writer))
    return extended


def _matching(context: Comparison, fitting: list[dict[int, Findings]]) -> dict[int, int]:
    """Return a maximum matching of compatible branches, by augmenting paths that a breadth-first search finds."""
    partner_of_new: dict[int, int] = {}
    partner_of_old: dict[int, int] = {}
    for start in range(len(fitting)):
        came_from: dict[int, int] = {}  # new branch to the old one from which it was reached
        queue = [start]
        end: int | None = None
        for old in queue:
            for new in fitting[old]:
                context.charge()
                if new in came_from:
                    continue
                came_from[new] = old
                if new not in partner_of_new:
                    end = new
                    break
                queue.append(partner_of_new[new])
            if end is not None:
                break
        while end is not None:
            old = came_from[end]
            before = partner_of_old.get(old)
            partner_of_old[old], partner_of_new[end] = end, old
            end = before
    return partner_of_old


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
