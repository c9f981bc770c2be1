"""The rules for objects: sizes, required names, dependencies, content models and properties."""

from typing import Final, TypeAlias

from strata.compat.json_schema.findings import Comparer, Findings, described
from strata.compat.json_schema.model import EmptyNode, FalseNode, Node, Number, ObjectNode, follow
from strata.compat.result import Value

__all__ = ["compare_bound", "compare_objects", "compare_rest"]

_Rest: TypeAlias = tuple[bool, Node | None]

_BOUNDS: Final = (
    ("max_properties", "MAX_PROPERTIES", "maxProperties"),
    ("min_properties", "MIN_PROPERTIES", "minProperties"),
)


def compare_objects(context: Comparer, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    """Compare two object schemas; add the differences to `into`."""
    for attribute, kind, word in _BOUNDS:
        compare_bound(context, getattr(reader, attribute), getattr(writer, attribute), into, kind, word)
    _required(context, reader, writer, into)
    compare_rest(
        context,
        (reader.permits_additional, reader.additional),
        (writer.permits_additional, writer.additional),
        into,
        "ADDITIONAL_PROPERTIES",
        "additionalProperties",
    )
    compare_rest(
        context,
        (reader.permits_unevaluated, reader.unevaluated),
        (writer.permits_unevaluated, writer.unevaluated),
        into,
        "UNEVALUATED_PROPERTIES",
        "unevaluatedProperties",
    )
    _dependencies(context, reader, writer, into)
    for name in {**writer.properties, **reader.properties}:
        if name not in reader.properties:
            _removed(context, reader, writer, name, into)
        elif name not in writer.properties:
            _added(context, reader, writer, name, into)
        else:
            context.descend(into, reader.properties[name], writer.properties[name], "properties", name)


def compare_bound(
    context: Comparer, reader: Number | None, writer: Number | None, into: Findings, kind: str, word: str
) -> None:
    """Compare a limit that both schemas, one or neither of them sets.

    Args:
        context: The comparison.
        reader: The limit of the reader schema.
        writer: The limit of the writer schema.
        into: The findings to add to.
        kind: The beginning of the name of the difference.
        word: The keyword.
    """
    if reader == writer:
        return
    if writer is None:
        change = "ADDED"
    elif reader is None:
        change = "REMOVED"
    else:
        change = "INCREASED" if reader > writer else "DECREASED"
    context.note(into, f"{kind}_{change}", word, reader=reader, writer=writer)


def compare_rest(context: Comparer, reader: _Rest, writer: _Rest, into: Findings, kind: str, word: str) -> None:
    """Compare which unnamed properties or items two schemas allow; see `compare_bound` for the arguments."""
    new, old = _rest(reader), _rest(writer)
    if reader[0] != writer[0]:
        context.note(into, f"{kind}_{'ADDED' if reader[0] else 'REMOVED'}", word, reader=new, writer=old)
    elif kind.startswith("UNEVALUATED") and isinstance(reader[1], EmptyNode) != isinstance(writer[1], EmptyNode):
        accepts_more = reader[1] is None or (isinstance(reader[1], EmptyNode) and writer[1] is not None)
        context.note(into, f"{kind}_{'EXTENDED' if accepts_more else 'NARROWED'}", word, reader=new, writer=old)
    elif reader[1] is None and writer[1] is not None:
        context.note(into, f"{kind}_EXTENDED", word, reader=new, writer=old)
    elif reader[1] is not None and writer[1] is None:
        context.note(into, f"{kind}_NARROWED", word, reader=new, writer=old)
    else:
        context.descend(into, reader[1], writer[1], word)


def _rest(rest: _Rest) -> Value:
    """Return what a schema allows beyond the names: true, false, or the kind of the schema for it."""
    permits, schema = rest
    return described(schema) if permits and schema is not None else permits


def _required(context: Comparer, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    for name in reader.properties.keys() & writer.properties.keys():
        if name in reader.required and name not in writer.required:
            by_default = reader.properties[name].default is not None
            kind = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED" if by_default else "REQUIRED_ATTRIBUTE_ADDED"
            context.note(into, kind, "required", name, reader=True, writer=False)
        elif name in writer.required and name not in reader.required:
            context.note(into, "REQUIRED_ATTRIBUTE_REMOVED", "required", name, reader=False, writer=True)


def _dependencies(context: Comparer, reader: ObjectNode, writer: ObjectNode, into: Findings) -> None:
    for name in reader.property_dependencies.keys() | writer.property_dependencies.keys():
        new, old = reader.property_dependencies.get(name), writer.property_dependencies.get(name)
        if new == old:
            continue
        if old is None:
            change = "ADDED"
        elif new is None:
            change = "REMOVED"
        elif new > old:
            change = "EXTENDED"
        else:
            change = "NARROWED" if new < old else "CHANGED"
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


def _added(context: Comparer, reader: ObjectNode, writer: ObjectNode, name: str, into: Findings) -> None:
    new = reader.properties[name]
    steps = ("properties", name)
    if _open(writer):
        if isinstance(follow(new), EmptyNode):
            context.note(into, "PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", *steps)
        else:
            context.note(into, f"{_demand(reader, name)}_ADDED_TO_OPEN_CONTENT_MODEL", *steps, reader=described(new))
        return
    covering = _covering(context, writer, name)
    if covering is not None:
        covered = "IS" if context.descend(into, new, covering, *steps) else "NOT"
        kind = f"PROPERTY_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        context.note(into, kind, *steps, reader=described(new), writer=described(covering))
    context.note(into, f"{_demand(reader, name)}_ADDED_TO_UNOPEN_CONTENT_MODEL", *steps, reader=described(new))


def _removed(context: Comparer, reader: ObjectNode, writer: ObjectNode, name: str, into: Findings) -> None:
    old = writer.properties[name]
    steps = ("properties", name)
    if _open(reader):
        context.note(into, "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", *steps)
        return
    covering = _covering(context, reader, name)
    if covering is not None:
        covered = "IS" if context.descend(into, covering, old, *steps) else "NOT"
        kind = f"PROPERTY_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        context.note(into, kind, *steps, reader=described(covering), writer=described(old))
    elif isinstance(follow(old), FalseNode):
        context.note(into, "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", *steps)
    else:
        context.note(into, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", *steps, writer=described(old))


def _demand(reader: ObjectNode, name: str) -> str:
    if name not in reader.required:
        return "OPTIONAL_PROPERTY"
    return "REQUIRED_PROPERTY" if reader.properties[name].default is None else "REQUIRED_PROPERTY_WITH_DEFAULT"


def _open(node: ObjectNode) -> bool:
    """Return whether other properties may have any value."""
    return (
        not node.patterns
        and node.permits_additional
        and node.additional is None
        and node.permits_unevaluated
        and (node.unevaluated is None or isinstance(node.unevaluated, EmptyNode))
    )


def _covering(context: Comparer, node: ObjectNode, name: str) -> Node | None:
    """Return the schema that an unnamed property must match, or None."""
    for pattern, schema in node.patterns.items():
        if context.matches(pattern, name):
            return schema
    if node.additional is not None or not node.permits_additional:
        return node.additional
    return node.unevaluated
