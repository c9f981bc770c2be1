"""Avro records as objects of a contract, and back."""

import json
from collections.abc import Mapping
from typing import Any

from strata.gitops.contracts.shapes import (
    EXACT,
    TAGS,
    TYPE_NAME,
    Format,
    Made,
    Shape,
    custom_of,
    described,
    enum_check,
    enum_values,
    exact,
    identifier,
    is_required,
    labels,
    tagged,
    too_deep,
)
from strata.gitops.errors import GitopsError

__all__ = ["AVRO"]

NAMESPACE = "namespace"
_TIMES = ("date", "time", "timestamp")
_NO_MORE = object()

# Avro type, or logical type -> logical type of ODCS.
_TO_LOGICAL = {
    "boolean": "boolean", "int": "integer", "long": "integer", "float": "number", "double": "number",
    "bytes": "string", "string": "string", "enum": "string", "fixed": "string", "record": "object", "map": "object",
    "array": "array", "date": "date", "decimal": "number", "uuid": "string", "time-millis": "time",
    "time-micros": "time", "timestamp-millis": "timestamp", "timestamp-micros": "timestamp",
    "timestamp-nanos": "timestamp", "local-timestamp-millis": "timestamp", "local-timestamp-micros": "timestamp",
}  # fmt: skip
_PRIMITIVE = ("boolean", "int", "long", "float", "double", "bytes", "string")
_FROM_LOGICAL: Mapping[str, Any] = {
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
        raise GitopsError("it is no Avro record")
    shape = Shape(tree["name"].rpartition(".")[2], "record", tree.get("doc"))
    shape.custom = {NAMESPACE: tree.get("namespace") or tree["name"].rpartition(".")[0]}
    reader = _Reader(shape)
    shape.properties = [reader.field(one, (), 0) for one in tree["fields"]]
    return shape


class _Reader:
    """Reads the fields of a record; a type that is named again is named in the contract, too."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._named: dict[str, dict[str, Any]] = {}

    def field(self, node: Mapping[str, Any], path: tuple[str, ...], depth: int) -> dict[str, Any]:
        here = (*path, node["name"])
        kind, required = node["type"], True
        if isinstance(kind, list) and "null" in kind and len(kind) == 2:
            kind, required = next(one for one in kind if one != "null"), False
        if node.get("default", _NO_MORE) not in (_NO_MORE, None):
            self._leave_out(here, "default")
        for name in ("aliases", "order"):
            if node.get(name):
                self._leave_out(here, name)
        found = {"name": node["name"], **self._typed(kind, here, depth), "required": required}
        return found | described(node.get("doc")) | tagged(node.get(TAGS))

    def _typed(self, kind: Any, path: tuple[str, ...], depth: int) -> dict[str, Any]:
        too_deep(depth)
        if isinstance(kind, list):
            return {"logicalType": "object", "physicalType": "union", **exact(kind)}
        if isinstance(kind, str):
            return self._named.get(kind) or {"logicalType": _TO_LOGICAL.get(kind, "object"), "physicalType": kind}
        plain = kind.get("type")
        if isinstance(plain, dict | list):
            return self._typed(plain, path, depth + 1)
        logical = kind.get("logicalType")
        found: dict[str, Any] = {"logicalType": _TO_LOGICAL.get(logical) or _TO_LOGICAL.get(plain, "object"),
                                 "physicalType": logical or plain}  # fmt: skip
        if plain in ("record", "enum"):
            found["physicalName"] = kind["name"]
        if plain == "record":
            self._named[kind["name"]] = {"logicalType": "object", "physicalType": kind["name"]}
            found["properties"] = [self.field(one, path, depth + 1) for one in kind["fields"]]
        elif plain == "array":
            items = self._typed(kind["items"], path, depth + 1)
            found["items"] = {"name": items["physicalName"], **items} if "physicalName" in items else items
        elif plain == "enum":
            found |= enum_check(kind["symbols"])
        elif plain in ("map", "fixed") or logical in ("decimal", "uuid"):
            found |= exact(kind)
        return found

    def _leave_out(self, path: tuple[str, ...], what: str) -> None:
        self._shape.left_out.append(f"{'.'.join(path)}: {what}")


def _make(schema: Mapping[str, Any], custom: Mapping[str, Any], doc: str | None) -> Made:
    tree: dict[str, Any] = {"type": "record", "name": identifier(schema["name"])}
    tree |= {"namespace": custom[NAMESPACE]} if custom.get(NAMESPACE) else {}
    tree |= {"doc": doc} if doc else {}
    tree["fields"] = [_field(one, tree["name"], 0) for one in schema.get("properties") or ()]
    return Made(json.dumps(tree, indent=2, ensure_ascii=False) + "\n")


def _field(one: Mapping[str, Any], parent: str, depth: int) -> dict[str, Any]:
    name = identifier(one["name"])
    kind = _avro(one, f"{parent}_{name}", depth)
    found: dict[str, Any] = {"name": name, "type": kind}
    if not is_required(one):
        found |= {"type": ["null", kind], "default": None}
    if one.get("description"):
        found["doc"] = one["description"]
    tags = labels(one)
    return found | ({TAGS: tags} if tags else {})


def _avro(one: Mapping[str, Any], name: str, depth: int) -> Any:
    """Return the Avro type of a property: its physical type if that is one of Avro, else by its logical type."""
    too_deep(depth)
    kept = custom_of(one).get(EXACT)
    if kept and one.get("physicalType") in ("union", "map", "fixed", "decimal", "uuid"):
        return json.loads(kept)
    physical, logical = str(one.get("physicalType") or ""), str(one.get("logicalType") or "string")
    given = str(one.get("physicalName") or "")
    name = given if TYPE_NAME.fullmatch(given) else name
    if one.get("properties"):
        return {"type": "record", "name": name, "fields": [_field(each, name, depth + 1) for each in one["properties"]]}
    if logical == "array":
        return {"type": "array", "items": _avro(one.get("items") or {}, name, depth + 1)}
    if physical in _PRIMITIVE and logical not in _TIMES:
        return physical
    if physical == "enum":
        symbols = enum_values(one)
        return {"type": "enum", "name": name, "symbols": symbols} if symbols else "string"
    if physical.startswith(("timestamp-", "local-timestamp-")):
        return {"type": "long", "logicalType": physical}
    if physical == "time-micros":
        return {"type": "long", "logicalType": physical}
    return _FROM_LOGICAL.get(logical, "string")


AVRO = Format("avsc", _shape, _make, has_options=False, absent="{} == null")
