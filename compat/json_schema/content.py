"""The rules that objects and arrays share: which properties or items may follow those that a schema names."""

from strata.compat.json_schema.comparison import Comparison
from strata.compat.json_schema.findings import Findings, described
from strata.compat.json_schema.model import ContentNode, EmptyNode, FalseNode, Node, Rest, follow
from strata.compat.result import Value

__all__ = ["compare_covered", "compare_removed", "compare_rests", "covering", "is_open"]


def compare_rests(
    context: Comparison, reader: ContentNode, writer: ContentNode, into: Findings, noun: str, word: str
) -> None:
    """Compare which unnamed properties or items two schemas allow.

    Args:
        context: The comparison.
        reader: The reader schema.
        writer: The writer schema.
        into: The findings to add to.
        noun: PROPERTIES or ITEMS.
        word: The same in keywords.
    """
    new, old = reader.additional, writer.additional
    _compare_rest(context, new, old, into, f"ADDITIONAL_{noun}", f"additional{word}")
    new, old = reader.unevaluated, writer.unevaluated
    word = f"unevaluated{word}"
    is_empty = isinstance(new, EmptyNode)
    if is_empty != isinstance(old, EmptyNode) and new is not False and old is not False:
        accepts_more = new is True or (is_empty and old is not True)
        change = "EXTENDED" if accepts_more else "NARROWED"
        context.note(into, f"UNEVALUATED_{noun}_{change}", word, reader=_allowed(new), writer=_allowed(old))
    else:
        _compare_rest(context, new, old, into, f"UNEVALUATED_{noun}", word)


def _compare_rest(context: Comparison, reader: Rest, writer: Rest, into: Findings, noun: str, word: str) -> None:
    if isinstance(reader, Node) and isinstance(writer, Node):
        context.descend(into, reader, writer, word)
    elif reader is not writer:
        if writer is False or reader is False:
            change = "ADDED" if writer is False else "REMOVED"
        else:
            change = "EXTENDED" if reader is True else "NARROWED"
        context.note(into, f"{noun}_{change}", word, reader=_allowed(reader), writer=_allowed(writer))


def _allowed(rest: Rest) -> Value:
    """Return what a schema allows beyond the names: true, false, or the kind of the schema for it."""
    return described(rest) if isinstance(rest, Node) else rest


def is_open(node: ContentNode) -> bool:
    """Return whether unnamed properties or items may have any value."""
    rest_is_open = node.unevaluated is True or isinstance(node.unevaluated, EmptyNode)
    return not node.patterns and node.additional is True and rest_is_open


def covering(context: Comparison, node: ContentNode, name: str) -> Node | None:
    """Return the schema that an unnamed property or item must match, or None."""
    for pattern, schema in node.patterns.items():
        if context.matches(pattern, name):
            return schema
    rest = node.unevaluated if node.additional is True else node.additional
    return rest if isinstance(rest, Node) else None


def compare_removed(
    context: Comparison, reader: ContentNode, old: Node, into: Findings, noun: str, *steps: str
) -> None:
    """Compare a property or item that only the writer schema names with what the reader schema allows in its place.

    Args:
        context: The comparison.
        reader: The reader schema.
        old: The schema that the writer schema has for it.
        into: The findings to add to.
        noun: PROPERTY or ITEM.
        *steps: The path to it.
    """
    if is_open(reader):
        context.note(into, f"{noun}_REMOVED_FROM_OPEN_CONTENT_MODEL", *steps)
    elif (rest := covering(context, reader, steps[-1])) is not None:
        compare_covered(context, rest, old, into, f"{noun}_REMOVED", *steps)
    elif isinstance(follow(old), FalseNode):
        context.note(into, f"{noun}_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", *steps)
    else:
        context.note(into, f"{noun}_REMOVED_FROM_CLOSED_CONTENT_MODEL", *steps, writer=described(old))


def compare_covered(context: Comparison, reader: Node, writer: Node, into: Findings, noun: str, *steps: str) -> None:
    """Compare two schemas of a property or item of which one is the schema for unnamed ones."""
    covered = "IS" if context.descend(into, reader, writer, *steps) else "NOT"
    noun = f"{noun}_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
    context.note(into, noun, *steps, reader=described(reader), writer=described(writer))
