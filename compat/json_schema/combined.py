"""The rules for `allOf`, `anyOf`, `oneOf`: criteria, numbers of branches, a maximum matching of compatible branches."""

from typing import Final

from strata.compat.json_schema.comparison import Comparison
from strata.compat.json_schema.findings import Findings, described
from strata.compat.json_schema.model import CombinedNode, Criterion, Node

__all__ = ["compare_combined", "distinct"]

_SUMS: Final = (Criterion.ANY, Criterion.ONE)


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
        kind = "PRODUCT_TYPE_EXTENDED" if reader.criterion is Criterion.ALL else "SUM_TYPE_EXTENDED"
        context.note(into, kind, reader=ours, writer=theirs)
    elif len(new) < len(old):
        kind = "SUM_TYPE_NARROWED" if writer.criterion in _SUMS else "PRODUCT_TYPE_NARROWED"
        context.note(into, kind, reader=ours, writer=theirs)
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
    kind = "COMBINED_TYPE_EXTENDED" if extended else "COMBINED_TYPE_CHANGED"
    context.note(into, kind, reader=described(reader), writer=described(writer))
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
