"""The rules for arrays: sizes, the schema of every item, and the content model of tuples."""

from typing import Final

from strata.compat.json_schema.findings import Comparer, Findings, described
from strata.compat.json_schema.model import ArrayNode, EmptyNode, FalseNode, Node, follow
from strata.compat.json_schema.objects import compare_bound, compare_rest

__all__ = ["compare_arrays"]

_BOUNDS: Final = (
    ("max_items", "MAX_ITEMS", "maxItems"),
    ("min_items", "MIN_ITEMS", "minItems"),
    ("max_contains", "MAX_CONTAINS", "maxContains"),
    ("min_contains", "MIN_CONTAINS", "minContains"),
)


def compare_arrays(context: Comparer, reader: ArrayNode, writer: ArrayNode, into: Findings) -> None:
    """Compare two array schemas; add the differences to `into`."""
    for attribute, kind, word in _BOUNDS:
        compare_bound(context, getattr(reader, attribute), getattr(writer, attribute), into, kind, word)
    if reader.unique != writer.unique:
        kind = f"UNIQUE_ITEMS_{'ADDED' if reader.unique else 'REMOVED'}"
        context.note(into, kind, "uniqueItems", reader=reader.unique, writer=writer.unique)
    context.descend(into, reader.items, writer.items, "items")
    compare_rest(
        context,
        (reader.permits_additional, reader.additional),
        (writer.permits_additional, writer.additional),
        into,
        "ADDITIONAL_ITEMS",
        "additionalItems",
    )
    compare_rest(
        context,
        (reader.permits_unevaluated, reader.unevaluated),
        (writer.permits_unevaluated, writer.unevaluated),
        into,
        "UNEVALUATED_ITEMS",
        "unevaluatedItems",
    )
    _tuples(context, reader, writer, into)


def _tuples(context: Comparer, reader: ArrayNode, writer: ArrayNode, into: Findings) -> None:
    new, old = reader.tuple_items or [], writer.tuple_items or []
    for number in range(max(len(new), len(old))):
        steps = ("items", str(number))
        if number >= len(old):
            _added(context, writer, new[number], steps, into)
        elif number >= len(new):
            _removed(context, reader, old[number], steps, into)
        else:
            context.descend(into, new[number], old[number], *steps)


def _added(context: Comparer, writer: ArrayNode, new: Node, steps: tuple[str, str], into: Findings) -> None:
    covering = _covering(writer)
    if _open(writer):
        empty = isinstance(follow(new), EmptyNode)
        kind = "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO" if empty else "ITEM_ADDED_TO"
        context.note(into, f"{kind}_OPEN_CONTENT_MODEL", *steps, reader=described(new))
    elif covering is not None:
        covered = "IS" if context.descend(into, new, covering, *steps) else "NOT"
        kind = f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        context.note(into, kind, *steps, reader=described(new), writer=described(covering))
    else:
        context.note(into, "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", *steps)


def _removed(context: Comparer, reader: ArrayNode, old: Node, steps: tuple[str, str], into: Findings) -> None:
    covering = _covering(reader)
    if _open(reader):
        context.note(into, "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", *steps)
    elif covering is not None:
        covered = "IS" if context.descend(into, covering, old, *steps) else "NOT"
        kind = f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        context.note(into, kind, *steps, reader=described(covering), writer=described(old))
    elif isinstance(follow(old), FalseNode):
        context.note(into, "ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", *steps)
    else:
        context.note(into, "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", *steps, writer=described(old))


def _open(node: ArrayNode) -> bool:
    """Return whether any items may follow the listed ones."""
    return (
        node.permits_additional
        and node.additional is None
        and node.permits_unevaluated
        and (node.unevaluated is None or isinstance(node.unevaluated, EmptyNode))
    )


def _covering(node: ArrayNode) -> Node | None:
    """Return the schema that items after the listed ones must match, or None."""
    if node.additional is not None or not node.permits_additional:
        return node.additional
    return node.unevaluated
