"""Random JSON Schemas that refer to each other and to themselves, some of them invalid."""

import json
from itertools import pairwise
from random import Random
from typing import Any, Final

from harness.json_cases import DIALECTS

__all__ = ["Maker"]

_OTHERS: Final = ("a.json", "dir/b.json", "http://x.test/dir/c.json", "urn:x:d")
_LINKS: Final = (
    "#", "#/definitions/a", "#/$defs/a", "#/properties/a", "#here", "#/definitions/a%20b", "#/items/0", "b.json",
    "../a.json", "c.json#/definitions/a", "http://x.test/e.json", "http://json-schema.org/draft-07/schema#", "?q",
    "http://json-schema.org/draft-07/schema#/definitions/nonNegativeInteger", "#/definitions/a/", "#nowhere", *_OTHERS,
    *(f"{name}#/definitions/a" for name in _OTHERS), *(f"{name}#here" for name in _OTHERS),
)  # fmt: skip
_TYPES: Final = ("string", "integer", "number", "boolean", "null", "object", "array")
_NAMES: Final = ("a", "b", "c", "$id", ".", "")
_IDS: Final = ("http://x.test/e.json", "dir/b.json", "#here", "x/")
_LEAVES: Final[tuple[Any, ...]] = (True, False, {}, {"type": "string"}, {"type": "integer"})
_VALUES: Final[tuple[Any, ...]] = ("a", None, "b", 1, 2, 1.0, 1.5, True, 0, [], {})
_PLAIN: Final[tuple[dict[str, Any], ...]] = (
    *({"type": kind} for kind in _TYPES),
    *({word: name} for word in ("id", "$id") for name in _IDS),
    *({word: "here"} for word in ("$anchor", "$dynamicAnchor")),
    *({"$ref": link} for link in _LINKS),
    *({"$dynamicRef": link} for link in _LINKS[:6]),
    *({"const": value} for value in _VALUES),
    *({"enum": [one, other]} for one, other in pairwise(_VALUES)),
    *({"type": list(kinds)} for kinds in pairwise(_TYPES)),
    *({f"{what}{of}": rest} for what in ("additional", "unevaluated") for of in ("Items", "Properties")
      for rest in (True, False, {"type": "number"})),
    {"required": ["a"]}, {"not": {}}, {"if": {}}, {"then": {}}, {"minLength": 1}, {"contains": {}}, {"maximum": 1},
)  # fmt: skip


class Maker:
    """Makes schemas, in documents of any dialect, with names of any kind."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def document(self) -> Any:
        """Return a schema with definitions."""
        root = self._schema(3)
        if isinstance(root, dict):
            root = dict(root)  # leaves are shared
            if self._chance.random() < 0.6:
                root["$schema"] = self._chance.choice(DIALECTS)
            for word in ("definitions", "$defs"):
                if self._chance.random() < 0.6:
                    root[word] = {name: self._schema(1) for name in ("a", "a b")}
        return root

    def references(self) -> dict[str, str]:
        """Return texts of schemas by the names under which others refer to them."""
        names = self._chance.sample(_OTHERS, self._chance.randint(0, 2))
        return {name: json.dumps(self.document()) for name in names}

    def _schema(self, depth: int) -> Any:
        if depth == 0 or self._chance.random() < 0.05:
            return self._chance.choice((*_LEAVES, {"$ref": self._chance.choice(_LINKS)}))
        made: dict[str, Any] = {}
        for _ in range(self._chance.randint(1, 3)):
            made |= self._chance.choice(_PLAIN) if self._chance.random() < 0.5 else self._inner(depth - 1)
        return made

    def _inner(self, depth: int) -> dict[str, Any]:
        """Return a keyword with schemas in it."""
        chance = self._chance
        match chance.choice(("properties", "properties", "map", "patterns", "items", "tuple", "branches", "branches")):
            case "properties":
                return {"properties": {name: self._schema(depth) for name in chance.sample(_NAMES, 2)}}
            case "map":
                return {"additionalProperties": self._schema(depth)}
            case "patterns":
                return {"patternProperties": {"^a": self._schema(depth)}}
            case "items":
                return {"items": self._schema(depth)}
            case "tuple":
                word = chance.choice(("items", "prefixItems"))
                return {word: [self._schema(depth) for _ in range(chance.randint(0, 2))]}
        word = chance.choice(("allOf", "anyOf", "oneOf"))
        return {word: [self._schema(depth) for _ in range(chance.randint(1, 3))]}
