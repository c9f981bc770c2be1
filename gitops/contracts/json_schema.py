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
    tagged,
    too_deep,
)
from strata.gitops.errors import GitopsError

__all__ = ["JSON"]

DIALECT, NULL, CLOSED, KNOWN = "$schema", "strata.null", "additionalProperties", "strata.definitions"
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
         "definitions", "$schema", "$id", "$comment", "examples")  # fmt: skip
_BOOLEAN = {True: "true", False: "false"}


def _shape(text: str) -> Shape:
    try:
        tree = json.loads(text)
    except ValueError:
        tree = None
    reader = _Reader(tree)
    if not isinstance(tree, dict) or "properties" not in (root := reader.resolved(tree, ())):
        raise GitopsError("it is no JSON Schema of an object with properties")
    shape = reader.shape
    shape.name, shape.doc = str(root.get("title") or ""), root.get("description")
    shape.custom = {DIALECT: tree.get("$schema"), "$id": tree.get("$id"), **_closed(root)}
    shape.properties = list(reader.properties(root, (), ("#",)))
    reader.note_others(root, (), "object")
    return shape


class _Reader:
    """Reads the properties of a schema."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self.shape = Shape("", "object")

    def resolved(self, node: Mapping[str, Any], seen: tuple[str, ...]) -> Mapping[str, Any]:
        """Return a node with what a `$ref` into the same text leads to."""
        reference = node.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#") or reference in seen:
            return node
        target: Any = self._tree
        for part in filter(None, reference.removeprefix("#").split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            return node
        return {**target, **{name: value for name, value in node.items() if name != "$ref"}}

    def properties(
        self, node: Mapping[str, Any], path: tuple[str, ...], seen: tuple[str, ...]
    ) -> Iterator[dict[str, Any]]:
        """Yield the properties of an object."""
        needed = node.get("required")
        for name, inner in node["properties"].items():
            required = isinstance(needed, list) and name in needed
            yield self._property(name, inner, (*path, name), seen, required=required)

    def _property(
        self, name: str, node: Any, path: tuple[str, ...], seen: tuple[str, ...], *, required: bool
    ) -> dict[str, Any]:
        node = node if isinstance(node, dict) else {}
        typed, nullable = self._typed(node, path, seen)
        target = self.resolved(node, seen)
        null = {NULL: "required" if required else "optional"} if nullable else {}
        more = customs(custom_of(typed) | null)
        found = {"name": name, **typed, "required": required and not nullable, **more}
        found |= {"businessName": target["title"]} if target.get("title") else {}
        return found | described(target.get("description")) | tagged(target.get(TAGS))

    def _typed(
        self, given: Mapping[str, Any], path: tuple[str, ...], seen: tuple[str, ...]
    ) -> tuple[dict[str, Any], bool]:
        """Return the type of a node, and whether it may be null."""
        too_deep(len(path))
        node = self.resolved(given, seen)
        if node is not given:
            seen = (*seen, str(given["$ref"]))
        kind, nullable = _kind(node)
        if kind is None:
            what = next((word for word in ("$ref", "oneOf", "anyOf", "allOf") if word in node), "any")
            plain = {name: value for name, value in given.items() if name not in ("description", "title", TAGS)}
            return {"logicalType": "object", "physicalType": what, **self._kept(plain)}, False
        logical = _TIMES.get(str(node.get("format")), kind) if kind == "string" else kind
        found: dict[str, Any] = {"logicalType": logical, "physicalType": kind}
        options = {name: node[name] for name in _OPTIONS.get(kind, ()) if name in node and logical == kind}
        found |= {"logicalTypeOptions": options} if options else {}
        if kind == "object" and isinstance(node.get("properties"), dict):
            found |= {"properties": list(self.properties(node, path, seen)), **customs(_closed(node))}
        elif kind == "object" and isinstance(node.get(CLOSED), dict):
            found |= {"physicalType": "map", **self._kept({CLOSED: node[CLOSED]})}
        elif kind == "object":
            found |= customs(_closed(node))
        elif kind == "array" and isinstance(node.get("items"), dict):
            items = self._property("", node["items"], (*path, "[]"), seen, required=False)
            found["items"] = {name: value for name, value in items.items() if name not in ("name", "required")}
        elif kind == "string" and isinstance(node.get("enum"), list) and all(isinstance(x, str) for x in node["enum"]):
            found |= {"physicalType": "enum", **enum_check(node["enum"])}
        self.note_others(node, path, kind)
        return found, nullable

    def _kept(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """Return a node as text, with which the definitions that it may refer to must travel."""
        known = {name: self._tree[name] for name in _DEFINITIONS if name in self._tree}
        if known and _POINTER in json.dumps(node):
            self.shape.custom[KNOWN] = json.dumps(known, ensure_ascii=False)
        return exact(node)

    def note_others(self, node: Mapping[str, Any], path: tuple[str, ...], kind: str) -> None:
        """Note the keywords that a contract does not say."""
        for name in node:
            if name not in _SAID and name not in _OPTIONS.get(kind, ()):
                self.shape.left_out.append(f"{'.'.join(path) or 'the schema'}: {name}")


def _kind(node: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Return the one type of a node besides null, None if there is no such type; and whether it may be null."""
    kinds = node.get("type")
    found = [kinds] if isinstance(kinds, str) else [one for one in kinds if one != "null"] if kinds else []
    if "$ref" in node or any(word in node for word in ("oneOf", "anyOf", "allOf")):
        return None, False
    if not found and isinstance(node.get("properties"), dict):
        found = ["object"]
    return (found[0], isinstance(kinds, list) and "null" in kinds) if len(found) == 1 else (None, False)


def _closed(node: Mapping[str, Any]) -> dict[str, str]:
    value = node.get(CLOSED)
    return {CLOSED: _BOOLEAN[value]} if isinstance(value, bool) else {}


def _make(schema: Mapping[str, Any], custom: Mapping[str, Any], doc: str | None) -> Made:
    tree = {name: custom[name] for name in (DIALECT, "$id") if custom.get(name)}
    tree |= {"title": str(schema["name"])} | ({"description": doc} if doc else {})
    left_out: list[str] = []
    tree |= _object(schema, custom, (), left_out) | json.loads(custom.get(KNOWN) or "{}")
    return Made(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", tuple(left_out))


def _object(
    schema: Mapping[str, Any], custom: Mapping[str, Any], path: tuple[str, ...], left_out: list[str]
) -> dict[str, Any]:
    inner = schema.get("properties") or ()
    found: dict[str, Any] = {"type": "object"}
    if inner:
        found["properties"] = {str(one["name"]): _node(one, (*path, str(one["name"])), left_out) for one in inner}
    needed = [str(one["name"]) for one in inner if is_required(one) or custom_of(one).get(NULL) == "required"]
    found |= {"required": needed} if needed else {}
    closed = custom.get(CLOSED)
    return found | ({CLOSED: closed in (True, "true")} if closed not in (None, "") else {})


def _node(one: Mapping[str, Any], path: tuple[str, ...], left_out: list[str]) -> dict[str, Any]:
    too_deep(len(path))
    custom = custom_of(one)
    found = _type_of(one, custom, path, left_out)
    if custom.get(NULL) and "type" in found:
        found["type"] = [found["type"], "null"]
    for name, value in (("title", one.get("businessName")), ("description", one.get("description"))):
        found |= {name: value} if value else {}
    tags = labels(one)
    return found | ({TAGS: tags} if tags else {})


def _type_of(
    one: Mapping[str, Any], custom: Mapping[str, Any], path: tuple[str, ...], left_out: list[str]
) -> dict[str, Any]:
    logical, physical = str(one.get("logicalType") or "string"), str(one.get("physicalType") or "")
    kept = json.loads(custom[EXACT]) if custom.get(EXACT) and physical in (*_UNNAMED, "map") else None
    if kept is not None and physical != "map":
        return dict(kept)
    kind = "string" if logical in _FORMATS else logical
    options = dict(one.get("logicalTypeOptions") or {})
    found: dict[str, Any] = {"type": kind}
    if kind == "object":
        found = _object(one, custom, path, left_out) | (kept or {})
    elif kind == "array" and one.get("items"):
        found["items"] = _node(one["items"], (*path, "[]"), left_out)
    if logical in _FORMATS:
        found["format"] = _FORMATS[logical]
        left_out += (f"{'.'.join(path)}: {name} of a {logical}" for name in options)
        return found
    values = enum_values(one) if kind == "string" else []
    found |= {"enum": values} if values else {}
    for name, value in options.items():
        if name in _OPTIONS.get(kind, ()) and (name != "format" or kind == "string"):
            found[name] = _plain(name, value)
        else:
            left_out.append(f"{'.'.join(path)}: {name}")
    return found


_UNNAMED = ("$ref", "oneOf", "anyOf", "allOf", "any")


def _plain(name: str, value: Any) -> Any:
    """Return an option, which the contract's reader gives as a text, as the value that its keyword needs."""
    if name in ("pattern", "format") or not isinstance(value, str):
        return value
    if name == "uniqueItems":
        return value == "true"
    try:
        return int(value)
    except ValueError:
        return float(value)


JSON = Format("json", _shape, _make, has_options=True, absent="!has({0}) || {0} == null")
