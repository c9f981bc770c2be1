"""JSON Schemas of objects as objects of a contract, and back. Definitions of the same text are put in their place."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from strata.gitops.contracts.shapes import (
    EXACT,
    TAGS,
    Format,
    Made,
    Shape,
    custom_of,
    customs,
    described,
    enum_check,
    enum_values,
    exact,
    is_required,
    labels,
    map_value,
    tagged,
    too_deep,
)
from strata.gitops.errors import GitopsError

__all__ = ["JSON"]

DIALECT, NULL, CLOSED, KNOWN = "$schema", "strata.null", "additionalProperties", "strata.definitions"
KEYWORDS = "strata.keywords"
_DEFINITIONS, _POINTER = ("$defs", "definitions"), '"$ref": "#'
_TIMES = {"date": "date", "time": "time", "date-time": "timestamp"}
_FORMATS = {logical: name for name, logical in _TIMES.items()}
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"), "number": _BOUNDS, "integer": _BOUNDS,
    "object": ("minProperties", "maxProperties"), "array": ("minItems", "maxItems", "uniqueItems"),
}  # fmt: skip
# What a contract says, besides the options of a type.
_SAID = ("type", "description", "title", "properties", "required", "items", "enum", TAGS, CLOSED, "$ref", "$defs",
         "definitions", "$schema", "$id")  # fmt: skip
_BOOLEAN = {True: "true", False: "false"}


def _shape(text: str) -> Shape:
    try:
        tree = json.loads(text)
    except ValueError:
        tree = None
    reader = _Reader(tree)
    if not isinstance(tree, dict) or "properties" not in (root := reader.resolved(tree, ())):
        raise GitopsError("it is not a JSON Schema of an object with properties")
    shape = reader.shape
    shape.name, shape.doc = str(root.get("title") or ""), root.get("description")
    shape.custom = {DIALECT: tree.get("$schema"), "$id": tree.get("$id"), **_closed(root)}
    shape.properties = list(reader.properties(root, (), ("#",)))
    shape.custom |= reader.others(root, "object")
    if KNOWN not in shape.custom:  # with it, they travel
        shape.left_out += (f"the schema: {name}, which are put in their place" for name in _DEFINITIONS if name in tree)
    return shape


class _Reader:
    """Reads the properties of a schema."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self.shape = Shape("", "object")

    def resolved(self, node: Mapping[str, object], seen: tuple[str, ...]) -> Mapping[str, Any]:
        """Return a node with what a `$ref` into the same text leads to."""
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#") or reference in seen:
            return node
        target: object = self._tree
        for part in filter(None, reference.removeprefix("#").split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            return node
        return {**target, **{name: value for name, value in node.items() if name != "$ref"}}

    def properties(
        self, node: Mapping[str, Any], path: tuple[str, ...], seen: tuple[str, ...]
    ) -> Iterator[dict[str, object]]:
        """Yield the properties of an object."""
        needed = node.get("required")
        for name, inner in node["properties"].items():
            required = isinstance(needed, list) and name in needed
            yield self._property(name, inner, (*path, name), seen, required=required)

    def _property(
        self, name: str, node: object, path: tuple[str, ...], seen: tuple[str, ...], *, required: bool
    ) -> dict[str, object]:
        node = node if isinstance(node, dict) else {}
        typed, nullable = self._typed(node, path, seen)
        target = self.resolved(node, seen)
        null = {NULL: "required" if required else "optional"} if nullable else {}
        more = customs(custom_of(typed) | null)
        property_ = {"name": name, **typed, "required": required and not nullable, **more}
        property_ |= {"businessName": target["title"]} if target.get("title") else {}
        return property_ | described(target.get("description")) | tagged(target.get(TAGS))

    def _typed(
        self, schema: Mapping[str, object], path: tuple[str, ...], seen: tuple[str, ...]
    ) -> tuple[dict[str, object], bool]:
        """Return the type of a node, and whether it may be null."""
        too_deep(len(path))
        node = self.resolved(schema, seen)
        if node is not schema:
            seen = (*seen, str(schema["$ref"]))
        plain_type, nullable = _kind(node)
        if plain_type is None:
            what = next((word for word in ("$ref", "oneOf", "anyOf", "allOf") if word in node), "any")
            plain = {name: value for name, value in schema.items() if name not in ("description", "title", TAGS)}
            return {"logicalType": "object", "physicalType": what, **self._kept(plain)}, False
        logical = _TIMES.get(str(node.get("format")), plain_type) if plain_type == "string" else plain_type
        element: dict[str, object] = {"logicalType": logical, "physicalType": plain_type}
        options = {name: node[name] for name in _OPTIONS.get(plain_type, ()) if name in node and logical == plain_type}
        element |= {"logicalTypeOptions": options} if options else {}
        if plain_type == "object" and isinstance(node.get("properties"), dict):
            element |= {"properties": list(self.properties(node, path, seen)), **customs(_closed(node))}
        elif plain_type == "object" and isinstance(node.get(CLOSED), dict):
            element |= {"physicalType": "map", **self._kept({CLOSED: node[CLOSED]})}
        elif plain_type == "object":
            element |= customs(_closed(node))
        elif plain_type == "array" and isinstance(node.get("items"), dict):
            items = self._property("", node["items"], (*path, "[]"), seen, required=False)
            element["items"] = {name: value for name, value in items.items() if name not in ("name", "required")}
        elif _is_of_texts(node, plain_type):
            element |= {"physicalType": "enum", **enum_check(node["enum"])}
        more = self.others({k: v for k, v in node.items() if k != CLOSED or element["physicalType"] != "map"}, logical)
        return element | customs(custom_of(element) | more), nullable

    def _kept(self, node: Mapping[str, object]) -> dict[str, object]:
        return exact(self.with_definitions(node))

    def with_definitions(self, node: Mapping[str, object]) -> Mapping[str, object]:
        """Return a node, with which the definitions that it may refer to must travel."""
        known = {name: self._tree[name] for name in _DEFINITIONS if name in self._tree}
        if known and _POINTER in json.dumps(node):
            self.shape.custom[KNOWN] = json.dumps(known, ensure_ascii=False)
        return node

    def others(self, node: Mapping[str, object], plain_type: str) -> dict[str, str]:
        """Return the keywords that a contract has no words for, as they travel beside the words."""
        more = {name: value for name, value in node.items() if name not in (*_SAID, *_OPTIONS.get(plain_type, ()))}
        if plain_type in _TIMES.values():  # their options have no words either
            more |= {name: node[name] for name in ("minLength", "maxLength", "pattern") if name in node}
        if "enum" in node and not _is_of_texts(node, plain_type):
            more["enum"] = node["enum"]
        if CLOSED in node and not (plain_type == "object" and isinstance(node[CLOSED], bool)):
            more[CLOSED] = node[CLOSED]
        if "items" in node and not isinstance(node["items"], dict):
            more["items"] = node["items"]
        if node.get("properties") == {}:
            more["properties"] = {}
        needed, own = node.get("required"), node.get("properties")
        if needed and not (isinstance(own, dict) and isinstance(needed, list) and set(map(str, needed)) <= own.keys()):
            more["required"] = needed
        if not more:
            return {}
        return {KEYWORDS: json.dumps(self.with_definitions(more), ensure_ascii=False)}


def _is_of_texts(node: Mapping[str, object], plain_type: str) -> bool:
    values = node.get("enum")
    if plain_type != "string" or not isinstance(values, list) or not isinstance(node.get("type"), str):
        return False
    return all(isinstance(value, str) for value in values)


def _kind(node: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Return the one type of a node besides null, None if there is no such type; and whether it may be null."""
    kinds = node.get("type")
    types = [kinds] if isinstance(kinds, str) else [name for name in kinds if name != "null"] if kinds else []
    if "$ref" in node or any(word in node for word in ("oneOf", "anyOf", "allOf")):
        return None, False
    if not types and isinstance(node.get("properties"), dict):
        types = ["object"]
    return (types[0], isinstance(kinds, list) and "null" in kinds) if len(types) == 1 else (None, False)


def _closed(node: Mapping[str, object]) -> dict[str, str]:
    value = node.get(CLOSED)
    return {CLOSED: _BOOLEAN[value]} if isinstance(value, bool) else {}


def _make(schema: Mapping[str, object], custom: Mapping[str, Any], doc: str | None) -> Made:
    tree = {name: custom[name] for name in (DIALECT, "$id") if custom.get(name)}
    has_title = schema["name"] != custom.get("strata.subject")  # an object without a title is named by its subject
    tree |= ({"title": str(schema["name"])} if has_title else {}) | ({"description": doc} if doc else {})
    left_out: list[str] = []
    tree |= _object(schema, custom, (), left_out) | json.loads(custom.get(KEYWORDS) or "{}")
    tree |= json.loads(custom.get(KNOWN) or "{}")
    return Made(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", tuple(left_out))


def _object(
    schema: Mapping[str, Any], custom: Mapping[str, object], path: tuple[str, ...], left_out: list[str]
) -> dict[str, object]:
    inner = schema.get("properties") or ()
    shape: dict[str, object] = {"type": "object"}
    if inner:
        shape["properties"] = {
            str(property_["name"]): _node(property_, (*path, str(property_["name"])), left_out) for property_ in inner
        }
    needed = [
        str(property_["name"])
        for property_ in inner
        if is_required(property_) or custom_of(property_).get(NULL) == "required"
    ]
    shape |= {"required": needed} if needed else {}
    closed = custom.get(CLOSED)
    return shape | ({CLOSED: closed in (True, "true")} if closed not in (None, "") else {})


def _node(element: Mapping[str, object], path: tuple[str, ...], left_out: list[str]) -> dict[str, object]:
    too_deep(len(path))
    custom = custom_of(element)
    schema = _type_of(element, custom, path, left_out)
    schema |= json.loads(custom.get(KEYWORDS) or "{}")
    if custom.get(NULL) and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    for name, value in (("title", element.get("businessName")), ("description", element.get("description"))):
        schema |= {name: value} if value else {}
    tags = labels(element)
    return schema | ({TAGS: tags} if tags else {})


def _type_of(
    element: Mapping[str, Any], custom: Mapping[str, Any], path: tuple[str, ...], left_out: list[str]
) -> dict[str, object]:
    logical, physical = str(element.get("logicalType") or "string"), str(element.get("physicalType") or "")
    kept = json.loads(custom[EXACT]) if custom.get(EXACT) and physical in (*_UNNAMED, "map") else None
    if kept is not None and physical != "map":
        return dict(kept)
    plain_type = "string" if logical in _FORMATS else logical
    options = dict(element.get("logicalTypeOptions") or {})
    schema: dict[str, object] = {"type": plain_type}
    value = map_value(element)
    if value is not None:
        schema = {"type": "object", CLOSED: _node(value, (*path, "value"), left_out)}
    elif plain_type == "object":
        schema = _object(element, custom, path, left_out) | (kept or {})
    elif plain_type == "array" and element.get("items"):
        schema["items"] = _node(element["items"], (*path, "[]"), left_out)
    if logical in _FORMATS:
        schema["format"] = _FORMATS[logical]
        left_out += (f"{'.'.join(path)}: {name} of a {logical}" for name in options)
        return schema
    values = [value if plain_type == "string" else _plain(plain_type, value) for value in enum_values(element)]
    schema |= {"enum": values} if values else {}
    for name, value in options.items():
        if name in _OPTIONS.get(plain_type, ()) and (name != "format" or plain_type == "string"):
            schema[name] = _plain(name, value)
        else:
            left_out.append(f"{'.'.join(path)}: {name}")
    return schema


_UNNAMED = ("$ref", "oneOf", "anyOf", "allOf", "any")


def _plain(name: str, value: object) -> object:
    """Return an option, which the contract's reader gives as a text, as the value that its keyword needs."""
    if name in ("pattern", "format") or not isinstance(value, str):
        return value
    if name in ("uniqueItems", "boolean"):
        return value == "true"
    try:
        return int(value)
    except ValueError:
        return float(value)


JSON = Format("json", _shape, _make, has_options=True, absent="!has({0}) || {0} == null")
