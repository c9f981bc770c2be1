"""The entities of a JSON Schema: an object is a record, a property a field.

A path leads from the root: `object`, then a property's name; `array` for items; `allof.0`, `anyof.1`, `oneof.2` for
branches, `not`, `conditional.if`. A schema with several of these is an `allof` of them, and a list of types is an
`anyof`. Branches are numbered in the order of the text. A `$ref` into the document is followed unless it leads back to
a schema on the path.
"""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from strata.compat.entities import Entity, EntityType
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError

__all__ = ["entities"]

_Nodes = Iterator[tuple[Entity, dict[str, object]]]
_Step = tuple[str, object]  # the extension of the path, and the schema there

_OBJECT: Final = frozenset({"properties", "required", "additionalProperties", "patternProperties", "minProperties",
                            "maxProperties", "dependencies", "propertyNames"})  # fmt: skip
_ARRAY: Final = frozenset({"items", "additionalItems", "prefixItems", "minItems", "maxItems", "uniqueItems"})
_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONAL: Final = ("if", "then", "else")


def entities(tree: object, limits: Limits) -> _Nodes:
    """Yield the objects and properties of a schema, with the JSON objects that hold their attributes.

    Args:
        tree: The schema as JSON values.
        limits: Bounds; the number of paths is bounded like that of fields.

    Raises:
        SchemaParseError: There are too many paths, since references multiply them.
    """
    return _Walk(tree, limits.fields).entities(tree, "", frozenset())


class _Walk:
    """A walk through one document, with a bound on its length."""

    def __init__(self, root: object, bound: int) -> None:
        self._root = root
        self._bound = self._left = bound

    def entities(self, node: object, path: str, around: frozenset[int]) -> _Nodes:
        """Yield the entities of a schema; `around` has the object ids of the schemas on the path."""
        self._left -= 1
        if self._left < 0:
            raise SchemaParseError(f"The schema has more than {self._bound} paths to taggable fields")
        node = _target(self._root, node)
        if not isinstance(node, dict) or id(node) in around:
            return
        around |= {id(node)}
        facets = _facets(node)
        for index, facet in enumerate(facets):
            prefix = f"{path}allof.{index}." if len(facets) > 1 else path
            for step, schema in facet:
                if schema is node:
                    yield from self._typed(node, prefix + step, around)
                else:
                    yield from self.entities(schema, f"{prefix}{step}.", around)

    def _typed(self, node: dict[str, object], path: str, around: frozenset[int]) -> _Nodes:
        kind = path.rpartition(".")[2]
        if kind == "array":
            for step, items in _items(node):
                yield from self.entities(items, f"{path}.{step}", around)
        if kind != "object":
            return
        yield Entity(path, EntityType.RECORD), node
        properties = node.get("properties")
        for name, schema in properties.items() if isinstance(properties, dict) else ():
            if isinstance(schema, dict):
                yield Entity(f"{path}.{name}", EntityType.FIELD), schema
                yield from self.entities(schema, f"{path}.{name}.", around)


def _facets(node: dict[str, Any]) -> list[list[_Step]]:
    """Return the parts of a schema, each as steps to schemas in it; a step to the schema itself is one of its types."""
    facets: list[list[_Step]] = [[]] if "enum" in node else []
    facets += (
        [(f"{keyword.lower()}.{i}", branch) for i, branch in enumerate(node[keyword])]
        for keyword in _COMBINED
        if isinstance(node.get(keyword), list)
    )
    if "not" in node:
        facets.append([("not", node["not"])])
    if "const" in node:
        facets.append([])
    if "if" in node:
        facets.append([(f"conditional.{keyword}", node[keyword]) for keyword in _CONDITIONAL if keyword in node])
    return facets + _types(node)


def _types(node: dict[str, object]) -> list[list[_Step]]:
    types = node.get("type")
    if isinstance(types, list):
        return [[(f"anyof.{i}.{name}" if len(types) > 1 else str(name), node) for i, name in enumerate(types)]]
    if isinstance(types, str):
        return [[(types, node)]]
    guessed = [name for name, keywords in (("object", _OBJECT), ("array", _ARRAY)) if keywords & node.keys()]
    return [[(name, node)] for name in guessed]


def _items(node: dict[str, object]) -> Iterator[_Step]:
    for keyword in ("items", "prefixItems"):
        items = node.get(keyword)
        if isinstance(items, dict):
            yield "", items
        elif isinstance(items, list):
            yield from ((f"{i}.", item) for i, item in enumerate(items))


def _target(root: object, node: object) -> object:
    """Return the target of a `$ref` into the document, or the node itself; a reference is followed only once."""
    reference = node.get("$ref") if isinstance(node, dict) else None
    if not isinstance(reference, str) or not reference.startswith("#"):
        return node
    target = root
    for part in unquote(reference).removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        target = target.get(name) if isinstance(target, dict) else None
    return target
