"""The rules for arrays: the schema of every item, and the content model of tuples."""

from strata.compat.json_schema.comparison import Comparison
from strata.compat.json_schema.content import compare_covered, compare_removed, compare_rests, covering, is_open
from strata.compat.json_schema.findings import Findings, described
from strata.compat.json_schema.model import ArrayNode, EmptyNode, Node, follow

__all__ = ["compare_arrays"]


def compare_arrays(context: Comparison, reader: ArrayNode, writer: ArrayNode, into: Findings) -> None:
    """Compare two array schemas; add the differences to `into`."""
    if reader.unique != writer.unique:
        kind = f"UNIQUE_ITEMS_{'ADDED' if reader.unique else 'REMOVED'}"
        context.note(into, kind, "uniqueItems", reader=reader.unique, writer=writer.unique)
    context.descend(into, reader.items, writer.items, "items")
    compare_rests(context, reader, writer, into, "ITEMS", "Items")
    new, old = reader.tuple_items or [], writer.tuple_items or []
    for number in range(max(len(new), len(old))):
        steps = ("items", str(number))
        if number >= len(old):
            _added(context, writer, new[number], into, *steps)
        elif number >= len(new):
            compare_removed(context, reader, old[number], into, "ITEM", *steps)
        else:
            context.descend(into, new[number], old[number], *steps)


def _added(context: Comparison, writer: ArrayNode, new: Node, into: Findings, *steps: str) -> None:
    if is_open(writer):
        empty = isinstance(follow(new), EmptyNode)
        kind = "ITEM_WITH_EMPTY_SCHEMA_ADDED_TO" if empty else "ITEM_ADDED_TO"
        context.note(into, f"{kind}_OPEN_CONTENT_MODEL", *steps, reader=described(new))
    elif (rest := covering(context, writer, steps[-1])) is not None:
        compare_covered(context, new, rest, into, "ITEM_ADDED", *steps)
    else:
        context.note(into, "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", *steps)
