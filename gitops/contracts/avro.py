"""Avro records as objects of a contract, and back."""

import json
import re
from collections.abc import Mapping
from typing import Any

from strata.gitops.contracts.shapes import (
    EXACT,
    NAMED,
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
    identifier,
    is_required,
    labels,
    map_value,
    tagged,
    too_deep,
    type_name,
)
from strata.gitops.errors import GitopsError

__all__ = ["AVRO"]

NAMESPACE = "namespace"
OF_FIELD, OF_TYPE = "strata.avroField", "strata.avroType"
_TIMES = ("date", "time", "timestamp")
_NO_MORE = object()
_NO_DEFAULT = "strata.noDefault"
_OF_FIELDS = ("name", "type", "doc", TAGS)
_OF_TYPES = ("type", "name", "namespace", "fields", "items", "symbols")
_BUILT = ("record", "array", "enum")
_SYMBOL = re.compile("[A-Za-z_][A-Za-z0-9_]*")

# Avro type, or logical type -> logical type of ODCS.
_TO_LOGICAL = {
    "boolean": "boolean", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "bytes": "string", "string": "string", "enum": "string", "fixed": "string", "record": "object", "map": "object",
    "array": "array", "date": "date", "decimal": "number", "uuid": "string", "time-millis": "time",
    "time-micros": "time", "timestamp-millis": "timestamp", "timestamp-micros": "timestamp",
    "timestamp-nanos": "timestamp", "local-timestamp-millis": "timestamp", "local-timestamp-micros": "timestamp",
}  # fmt: skip
_PRIMITIVE = ("boolean", "int", "long", "float", "double", "bytes", "string")
_FROM_LOGICAL: Mapping[str, object] = {
    "string": "string", "integer": "long", "number": "double", "boolean": "boolean",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "int", "logicalType": "time-millis"},
    "timestamp": {"type": "long", "logicalType": "timestamp-millis"},
}  # fmt: skip


def _shape(text: str) -> Shape:
    try:
        tree = json.loads(text)
    except ValueError:
        tree = None
    if not isinstance(tree, dict) or tree.get("type") != "record":
        raise GitopsError("it is not an Avro record")
    shape = Shape(tree["name"].rpartition(".")[2], "record", tree.get("doc"))
    more = {name: value for name, value in tree.items() if name not in (*_OF_TYPES, "doc")}
    shape.custom = {NAMESPACE: tree["name"].rpartition(".")[0] or tree.get("namespace"),
                    OF_TYPE: json.dumps(more, ensure_ascii=False) if more else None}  # fmt: skip
    reader = _Reader(shape)
    shape.properties = [reader.field(field, (), 0) for field in tree["fields"]]
    return shape


class _Reader:
    """Reads the fields of a record. What a contract has no words for travels beside the words."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def field(self, node: Mapping[str, Any], path: tuple[str, ...], depth: int) -> dict[str, object]:
        here = (*path, node["name"])
        schema, required = node["type"], True
        more = {name: value for name, value in node.items() if name not in _OF_FIELDS}
        if isinstance(schema, list) and schema[0] == "null" and len(schema) == 2:
            schema, required = schema[1], False
            more = more if more.pop("default", _NO_MORE) is None else {**more, _NO_DEFAULT: True}
        typed = self._typed(schema, here, depth)
        property_ = {"name": node["name"], **typed, "required": required}
        property_ |= customs(custom_of(typed) | ({OF_FIELD: json.dumps(more, ensure_ascii=False)} if more else {}))
        return property_ | described(node.get("doc")) | tagged(node.get(TAGS))

    def _typed(self, schema: Any, path: tuple[str, ...], depth: int) -> dict[str, Any]:
        too_deep(depth)
        if isinstance(schema, list):
            return {"logicalType": "object", "physicalType": "union", **exact(schema)}
        if isinstance(schema, str):
            plain = {"logicalType": _TO_LOGICAL.get(schema, "object"), "physicalType": schema}
            return plain if schema in _PRIMITIVE else plain | exact(schema)
        plain, logical = schema.get("type"), schema.get("logicalType")
        if isinstance(plain, dict | list):
            return self._typed(plain, path, depth + 1) | exact(schema)
        element: dict[str, object] = {"logicalType": _TO_LOGICAL.get(logical) or _TO_LOGICAL.get(plain, "object"),
                                 "physicalType": logical or plain}  # fmt: skip
        if plain == "record":
            element["properties"] = [self.field(field, path, depth + 1) for field in schema["fields"]]
        elif plain == "array":
            items = self._typed(schema["items"], path, depth + 1)
            name = custom_of(items).get(NAMED)
            element["items"] = {"name": name, **items} if name else items
        elif plain == "enum":
            element |= enum_check(schema["symbols"])
        if plain not in _BUILT and (set(schema) != {"type", "logicalType"} or _made_alone(element) != schema):
            return element | exact(schema)
        more = {name: value for name, value in schema.items() if name not in _OF_TYPES}
        name = f"{schema['namespace']}.{schema['name']}" if schema.get("namespace") else schema.get("name")
        return element | customs({NAMED: name, OF_TYPE: json.dumps(more, ensure_ascii=False) if more else None})


def _made_alone(element: Mapping[str, object]) -> object:
    """Return the type that words alone make, to see whether they are enough."""
    return _avro(element, "", 0, [])


def _make(schema: Mapping[str, Any], custom: Mapping[str, object], doc: str | None) -> Made:
    left_out: list[str] = []
    tree: dict[str, Any] = {"type": "record", "name": identifier(schema["name"])}
    tree |= {"namespace": custom[NAMESPACE]} if custom.get(NAMESPACE) else {}
    tree |= {"doc": doc} if doc else {}
    tree |= _kept(custom, OF_TYPE)
    tree["fields"] = [_field(property_, tree["name"], 0, left_out) for property_ in schema.get("properties") or ()]
    return Made(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", tuple(left_out))


def _kept(custom: Mapping[str, Any], name: str) -> dict[str, object]:
    return dict(json.loads(custom[name])) if custom.get(name) else {}


def _field(element: Mapping[str, object], parent: str, depth: int, left_out: list[str]) -> dict[str, object]:
    name = identifier(element["name"])
    schema = _avro(element, f"{parent}_{name}", depth, left_out)
    more = _kept(custom_of(element), OF_FIELD)
    has_default = not more.pop(_NO_DEFAULT, False)
    field: dict[str, object] = {"name": name, "type": schema}
    if not is_required(element):
        more.pop("default", None)  # it was that of a required field
        field |= {"type": ["null", schema]} | ({"default": None} if has_default else {})
    if element.get("description"):
        field["doc"] = element["description"]
    tags = labels(element)
    return field | more | ({TAGS: tags} if tags else {})


def _avro(element: Mapping[str, object], name: str, depth: int, left_out: list[str]) -> object:
    """Return the Avro type of a property: its physical type if that is one of Avro, else by its logical type."""
    too_deep(depth)
    custom = custom_of(element)
    physical, logical = str(element.get("physicalType") or ""), str(element.get("logicalType") or "string")
    if custom.get(EXACT) and (kept := json.loads(custom[EXACT])) is not None and _words(kept) == (logical, physical):
        return kept
    return _by_words(element, type_name(element) or name, depth, left_out)


def _by_words(element: Mapping[str, Any], name: str, depth: int, left_out: list[str]) -> object:
    physical, logical = str(element.get("physicalType") or ""), str(element.get("logicalType") or "string")
    more = _kept(custom_of(element), OF_TYPE)
    value = map_value(element)
    if value is not None:
        return {"type": "map", "values": _avro(value, f"{name}_value", depth + 1, left_out)}
    if element.get("properties") or physical == "record":
        inner = [_field(each, name.rpartition(".")[2], depth + 1, left_out) for each in element.get("properties") or ()]
        return {"type": "record", "name": name, "fields": inner} | more
    if logical == "array":
        if not element.get("items"):
            left_out.append(f"{name}: its items, which have no type (they become strings)")
        return {"type": "array", "items": _avro(element.get("items") or {}, name, depth + 1, left_out)} | more
    if physical == "enum":
        symbols = enum_values(element)
        if symbols and all(isinstance(each, str) and _SYMBOL.fullmatch(each) for each in symbols):
            return {"type": "enum", "name": name, "symbols": symbols} | more
        left_out.append(f"{name}: its values, which are not symbols of Avro (it becomes a string)")
    if logical == "object" and physical not in _PRIMITIVE:
        left_out.append(f"{name}: its object, which has no properties (it becomes a record without fields)")
        return {"type": "record", "name": name, "fields": []}
    return _plain(physical, logical, name, left_out)


def _plain(physical: str, logical: str, name: str, left_out: list[str]) -> object:
    if physical in _PRIMITIVE and logical not in _TIMES:
        return physical
    if physical.startswith(("timestamp-", "local-timestamp-")) or physical == "time-micros":
        return {"type": "long", "logicalType": physical}
    if logical not in _FROM_LOGICAL:
        left_out.append(f"{name}: its logicalType {logical} (it becomes a string)")
    return _FROM_LOGICAL.get(logical, "string")


def _words(schema: Any) -> tuple[str, str]:
    """Return the logical and the physical type by which an export names an Avro type."""
    plain = schema
    while isinstance(plain, dict) and isinstance(plain.get("type"), dict | list):
        plain = plain["type"]
    if isinstance(plain, list):
        return "object", "union"
    if isinstance(plain, str):
        return _TO_LOGICAL.get(plain, "object"), plain
    logical, inner = plain.get("logicalType"), plain["type"]
    return _TO_LOGICAL.get(logical) or _TO_LOGICAL.get(inner, "object"), logical or inner


AVRO = Format("avsc", _shape, _make, has_options=False, absent="{} == null")
