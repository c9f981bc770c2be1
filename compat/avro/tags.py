"""The entities of an Avro schema: a record by its full name, a field by its record's full name and its name."""

from collections.abc import Iterator
from typing import Any

from strata.compat.entities import Entity, EntityType

__all__ = ["entities"]


def entities(tree: object, namespace: str = "") -> Iterator[tuple[Entity, dict[str, Any]]]:
    """Yield the records and fields of a schema, with the JSON objects that hold their attributes.

    Args:
        tree: The canonical text of the schema as JSON values.
        namespace: The enclosing namespace.
    """
    if isinstance(tree, list):
        for branch in tree:
            yield from entities(branch, namespace)
    if not isinstance(tree, dict):
        return
    if tree.get("type") in ("record", "error"):
        yield from _record(tree, namespace)
        return
    for inner in ("type", "items", "values"):
        if isinstance(tree.get(inner), dict | list):
            yield from entities(tree[inner], namespace)


def _record(tree: dict[str, Any], enclosing: str) -> Iterator[tuple[Entity, dict[str, Any]]]:
    name = tree["name"]
    namespace = name.rpartition(".")[0] if "." in name else tree.get("namespace", enclosing)
    full = name if "." in name or not namespace else f"{namespace}.{name}"
    yield Entity(full, EntityType.RECORD), tree
    for field in tree["fields"]:
        yield Entity(f"{full}.{field['name']}", EntityType.FIELD), field
        yield from entities(field["type"], namespace)
