"""A JSON Schema as a shape, for the source of its classes.

Bounds such as `minimum` and `pattern` are not in a class. A property that is neither required nor has a default is
None in the class where it is absent.

Rules of this file: a parsed document in, a shape out; only references inside the document are followed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from strata.serdes.classes.shapes import Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import SchemaError

__all__ = ["json_shape"]

_TYPES: Final[Mapping[str, str]] = {
    "null": "null",
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "string": "str",
}
_FORMATS: Final[Mapping[str, str]] = {"date-time": "datetime", "date": "date", "uuid": "uuid"}
_INT32: Final = (-(2**31), 2**31 - 1)
_DEEPEST: Final = 60
_DEFINITION: Final = re.compile(r"#/(?:definitions|\$defs)/([^/%~]+)")


def json_shape(document: object, name: str) -> Shape:
    """Return a JSON Schema as a shape.

    Args:
        document: the schema.
        name: the name of its class, if the schema has no title.

    Raises:
        SchemaError: If a part of it has no class; the error names the place.
    """
    return _Reader(document).shape(document, _title(document) or name, "", 0)


def _title(node: object) -> str:
    title = node.get("title") if isinstance(node, dict) else None
    return title if isinstance(title, str) and re.fullmatch(r"[A-Za-z_][\w.]*", title, re.ASCII) else ""


class _Reader:
    def __init__(self, document: object) -> None:
        self._document = document
        self._known: dict[int, Object | Symbols] = {}
        self._names: set[str] = set()

    def shape(self, node: object, name: str, where: str, depth: int) -> Shape:
        if depth > _DEEPEST:
            raise SchemaError(f"{where}: the types are nested too deeply")
        if not isinstance(node, dict):
            raise SchemaError(f"{where or 'the schema'}: a schema for any value has no class")
        if "$ref" in node:
            return self._referenced(node["$ref"], where, depth)
        if isinstance(node.get("allOf"), list):
            if len(node["allOf"]) != 1:
                raise SchemaError(f"{where or 'the schema'}: allOf of several schemas has no class")
            return self.shape(node["allOf"][0], name, where, depth + 1)
        if "enum" in node:
            return self._enum(node, name, where)
        choice = next((node[word] for word in ("oneOf", "anyOf") if isinstance(node.get(word), list)), None)
        if choice is None and isinstance(node.get("type"), list):
            choice = [node | {"type": type_} for type_ in node["type"]]
        if choice is not None:
            return self._choice(choice, name, where, depth)
        return self._typed(node, name, where, depth)

    def _typed(self, node: Mapping[str, object], name: str, where: str, depth: int) -> Shape:
        match node.get("type"):
            case "object":
                return self._object(node, name, where, depth)
            case "array":
                item = self.shape(node.get("items"), f"{name}Item", f"{where}[]", depth + 1)
                is_set = node.get("uniqueItems") is True and isinstance(item, Scalar)
                return Items(item, set if is_set else list)
            case str() as type_ if type_ in _TYPES:
                return _scalar(node, type_)
        raise SchemaError(f"{where or 'the schema'}: a schema without a known type has no class")

    def _referenced(self, reference: object, where: str, depth: int) -> Shape:
        if reference == "#":
            return self.shape(self._document, _title(self._document) or "Root", where, depth + 1)
        match = _DEFINITION.fullmatch(reference) if isinstance(reference, str) else None
        section = match[0][2:].partition("/")[0] if match is not None else ""
        definitions = self._document.get(section) if isinstance(self._document, dict) else None
        target = definitions.get(match[1]) if match is not None and isinstance(definitions, dict) else None
        if match is None or target is None:
            raise SchemaError(f"{where}: only references to definitions of the schema have a class, got {reference!r}")
        return self.shape(target, match[1], where, depth + 1)

    def _choice(self, nodes: Sequence[object], name: str, where: str, depth: int) -> Shape:
        branches = [self.shape(node, name, where, depth + 1) for node in nodes]
        if not branches:
            raise SchemaError(f"{where}: a choice without branches has no class")
        return Choice(tuple(branches)) if len(branches) > 1 else branches[0]

    def _enum(self, node: Mapping[str, object], name: str, where: str) -> Shape:
        values = node["enum"] if isinstance(node["enum"], list) else []
        symbols = [value for value in values if value is not None]
        if not symbols or not all(isinstance(value, str) and value.isidentifier() for value in symbols):
            raise SchemaError(f"{where or 'the schema'}: expected names as values of the enum")
        made = self._known.get(id(node))
        if made is None:
            doc = _text(node, "description")
            made = self._known[id(node)] = Symbols(self._free(_title(node) or name), tuple(symbols), doc=doc)
        return Choice((Scalar("null"), made)) if None in values else made

    def _free(self, name: str) -> str:
        free, number = name, 2
        while free in self._names:
            free, number = f"{name}{number}", number + 1
        self._names.add(free)
        return free

    def _object(self, node: Mapping[str, object], name: str, where: str, depth: int) -> Shape:
        known = self._known.get(id(node))
        if known is not None:
            return known
        properties, more = node.get("properties"), node.get("additionalProperties")
        if "patternProperties" in node or (not isinstance(properties, dict) and not isinstance(more, dict)):
            raise SchemaError(f"{where or 'the schema'}: an object without properties of its own has no class")
        if not isinstance(properties, dict):
            return Values(self.shape(more, f"{name}Value", f"{where}{{}}", depth + 1))
        made = Object(None, self._free(_title(node) or name), doc=_text(node, "description"), is_open=more is not False)
        self._known[id(node)] = made
        named = node.get("required")
        required = named if isinstance(named, list) else []
        for key, inner in properties.items():
            place = f"{where}.{key}" if where else f"{made.name}.{key}"
            type_name = made.name + key[:1].upper() + re.sub(r"\W", "_", key[1:])
            shape = self.shape(inner, type_name, place, depth + 1)
            made.members.append(_member(key, inner, shape, is_required=key in required))
        return made


def _member(key: str, node: Mapping[str, object], shape: Shape, *, is_required: bool) -> Member:
    doc = _text(node, "description")
    if "default" in node and not is_required:
        return Member(key, key, shape, node["default"], doc)
    if is_required:
        return Member(key, key, shape, doc=doc)
    branches = shape.branches if isinstance(shape, Choice) else (shape,)
    if any(isinstance(branch, Scalar) and branch.kind == "null" for branch in branches):
        return Member(key, key, shape, None, doc)
    return Member(key, key, Choice((*branches, Scalar("null"))), None, doc, is_absent=True)


def _text(node: Mapping[str, object], word: str) -> str:
    text = node.get(word)
    return text if isinstance(text, str) else ""


def _scalar(node: Mapping[str, object], type_: str) -> Scalar:
    kind = _TYPES[type_]
    if type_ == "string":
        kind = "bytes" if node.get("contentEncoding") == "base64" else _FORMATS.get(str(node.get("format")), kind)
    if type_ == "integer" and (node.get("minimum"), node.get("maximum")) == _INT32:
        kind = "int32"
    return Scalar(kind)
