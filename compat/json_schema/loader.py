"""From JSON to model.

Only what a schema can reach is read: in the older dialects definitions count when a `$ref` leads to them, in the
newer ones always. Targets of `$ref` wait in a list, so a long chain of them does not become a deep recursion.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeVar

from compat.json_schema.dialects import Dialect
from compat.json_schema.documents import Documents, Place
from compat.json_schema.json_text import Json, excerpt, json_digest, json_key, write_json
from compat.json_schema.model import (
    ArrayNode,
    BooleanNode,
    CombinedNode,
    ConditionalNode,
    ConstNode,
    Criterion,
    EmptyNode,
    EnumNode,
    FalseNode,
    Node,
    NotNode,
    NullNode,
    Number,
    NumberNode,
    ObjectNode,
    ReferenceNode,
    StringNode,
)
from compat.limits import Limits
from compat.schema import SchemaParseError

__all__ = ["Loader"]

_STRING_WORDS: Final = frozenset({"minLength", "maxLength", "pattern", "format"})
_NUMBER_WORDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_OBJECT_WORDS: Final = frozenset(
    {
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "additionalProperties",
        "unevaluatedProperties",
    }
)
_ARRAY_WORDS: Final = frozenset(
    {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"}
)
_CONTAINS_WORDS: Final = frozenset({"contains", "minContains", "maxContains"})
_MODERN_ONLY: Final = frozenset(
    {"dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "prefixItems"}
)
_CONDITIONS: Final = frozenset({"if", "then", "else"})

_T = TypeVar("_T")
_Object = dict[str, Json]


class Loader:
    """Reads the nodes of one schema and of what it refers to."""

    def __init__(self, documents: Documents, limits: Limits):
        self._documents = documents
        self._limits = limits
        self._nodes: dict[tuple[int, int], Node] = {}  # by document and identity of the JSON value
        self._waiting: list[tuple[ReferenceNode, Place]] = []
        self._loaded = 0
        self._digests: dict[int, str] = {}

    def load(self) -> Node:
        """Read everything from the root on."""
        root = self._node(self._documents.root)  # not as the target of "#", which the reference takes for another
        while self._waiting:
            reference, place = self._waiting.pop()
            reference.target = self._target(place)
        return root

    def _target(self, place: Place) -> Node:
        key = (place.document, id(place.value))
        if key not in self._nodes or not isinstance(place.value, dict):
            self._nodes[key] = self._node(place)
        return self._nodes[key]

    def _node(self, place: Place) -> Node:
        self._loaded += 1
        self._limits.look_at_clock()
        if self._loaded > self._limits.fields:
            raise SchemaParseError(f"The schema has more than {self._limits.fields} subschemas")
        if isinstance(place.value, bool):
            return EmptyNode() if place.value else FalseNode()
        if not isinstance(place.value, dict):
            raise SchemaParseError(f"Not a schema: {excerpt(write_json(place.value))}")
        return _Reader(self, self._documents, place).read()

    def digest(self, value: Json) -> str:
        """Equal for branches that say the same."""
        return json_digest(value, self._digests)

    def check_branches(self, number: int) -> None:
        """Refuse a combined schema of too many branches."""
        if number > self._limits.branches:
            raise SchemaParseError(f"{number} branches, more than the {self._limits.branches} allowed")

    def wait(self, reference: ReferenceNode, place: Place) -> None:
        """Read the target of a reference later."""
        self._waiting.append((reference, place))

    def node(self, value: Json, place: Place) -> Node:
        """Read a schema inside another."""
        base = place.base
        own = value.get(place.dialect.id_keyword) if isinstance(value, dict) else None
        if isinstance(own, str):
            base = self._documents.join(base, own)
        return self._node(place._replace(value=value, base=base, root=False))


class _Reader:
    """Reads one JSON object."""

    def __init__(self, loader: Loader, documents: Documents, place: Place):
        self._loader = loader
        self._documents = documents
        self._place = place
        self._json: _Object = place.value if isinstance(place.value, dict) else {}
        self._modern = place.dialect.modern
        self._used: set[str] = set()

    def read(self) -> Node:
        if "$ref" in self._json and not self._modern:
            return self._annotated(self._reference())
        parts = self._parts()
        if self._modern:
            self._definitions()
        if not parts:
            return self._annotated(EmptyNode())
        if len(parts) == 1:
            return self._annotated(parts[0])
        combined_first = sorted(parts, key=lambda part: not isinstance(part, CombinedNode))
        return self._annotated(CombinedNode(criterion=Criterion.ALL, branches=combined_first))

    def _parts(self) -> list[Node]:
        parts: list[Node] = []
        if "$ref" in self._json:
            parts.append(self._reference())
        parts += self._combined()
        if "type" in self._json:
            parts.append(self._typed())
        if self._has(_ARRAY_WORDS | _CONTAINS_WORDS):
            parts.append(self._array())
        if self._has(_OBJECT_WORDS):
            parts.append(self._object())
        if self._has(_NUMBER_WORDS):
            parts.append(self._number())
        if self._has(_STRING_WORDS):
            parts.append(self._string())
        if "enum" in self._json:
            values = self._typed_value("enum", list, "an array") or []
            parts.append(EnumNode(values=frozenset(map(json_key, values))))
        if "not" in self._json:
            parts.append(NotNode(inner=self._schema(self._json["not"])))
        if "const" in self._json and self._place.dialect >= Dialect.DRAFT_6:
            parts.append(ConstNode(value=json_key(self._json["const"])))
        if self._place.dialect >= Dialect.DRAFT_7 and not _CONDITIONS.isdisjoint(self._json):
            for word in _CONDITIONS & self._json.keys():
                self._schema(self._json[word])
            parts.append(ConditionalNode())
        return parts

    def _annotated(self, node: Node) -> Node:
        if not self._modern or self._place.root:  # the newer loader keeps the name of the whole alone
            node.id = self._typed_value(self._place.dialect.id_keyword, str, "a string", strict=not self._modern)
        node.title = self._typed_value("title", str, "a string")
        node.description = self._typed_value("description", str, "a string")
        if "default" in self._json:
            node.default = json_key(self._json["default"])
        node.connect_type = self._json.get("connect.type")
        return node

    def _reference(self) -> ReferenceNode:
        reference = self._typed_value("$ref", str, "a string") or ""
        node = ReferenceNode()
        self._loader.wait(node, self._documents.resolve(reference, self._place))
        return node

    def _definitions(self) -> None:
        for word in ("$defs", "definitions"):
            values = self._json.get(word)
            if isinstance(values, dict):
                for value in values.values():
                    self._schema(value)

    def _combined(self) -> list[Node]:
        found: list[Node] = []
        for criterion in (Criterion.ALL, Criterion.ANY, Criterion.ONE):
            if criterion.value in self._json:
                values = self._typed_value(criterion.value, list, "an array") or []
                self._loader.check_branches(len(values))
                found.append(CombinedNode(criterion=criterion, branches=[self._branch(value) for value in values]))
        return found

    def _branch(self, value: Json) -> Node:
        node = self._schema(value)
        node.key = self._loader.digest(value)
        index = value.get("connect.index") if isinstance(value, dict) else None
        node.connect_index = index if isinstance(index, int) and not isinstance(index, bool) else None
        return node

    def _typed(self) -> Node:
        kind = self._json["type"]
        if isinstance(kind, str):
            return self._of_type(kind)
        if not isinstance(kind, list):
            raise self._fault("type", "a string or an array")
        branches: list[Node] = []
        for one in kind:
            if not isinstance(one, str):
                raise self._fault("type", "an array of strings")
            node = self._of_type(one)
            node.key = one
            branches.append(node)
        return CombinedNode(criterion=Criterion.ANY, branches=branches)

    def _of_type(self, kind: str) -> Node:
        build = _TYPES.get(kind)
        if build is None:
            raise SchemaParseError(f"Unknown type: {excerpt(kind)}")
        return build(self)

    def _string(self) -> StringNode:
        self._used |= _STRING_WORDS
        self._typed_value("format", str, "a string")
        return StringNode(
            min_length=self._count("minLength"),
            max_length=self._count("maxLength"),
            pattern=self._typed_value("pattern", str, "a string"),
        )

    def _number(self) -> NumberNode:
        self._used |= _NUMBER_WORDS
        minimum, maximum = self._numeric("minimum"), self._numeric("maximum")
        if self._place.dialect is Dialect.DRAFT_4:
            self._typed_value("exclusiveMinimum", bool, "a boolean")
            self._typed_value("exclusiveMaximum", bool, "a boolean")
            return NumberNode(minimum=minimum, maximum=maximum, multiple_of=self._numeric("multipleOf"))
        return NumberNode(
            minimum=minimum,
            maximum=maximum,
            exclusive_minimum=self._numeric("exclusiveMinimum"),
            exclusive_maximum=self._numeric("exclusiveMaximum"),
            multiple_of=self._numeric("multipleOf"),
        )

    def _integer(self) -> NumberNode:
        node = self._number()
        node.integer = True
        return node

    def _object(self) -> ObjectNode:
        self._used |= _OBJECT_WORDS
        permits, additional = self._open("additionalProperties")
        permits_unevaluated, unevaluated = self._unevaluated("unevaluatedProperties")
        arrays, schemas = self._dependencies()
        return ObjectNode(
            properties=self._schemas("properties"),
            required=frozenset(self._strings(self._json.get("required", []), "required")),
            min_properties=self._count("minProperties"),
            max_properties=self._count("maxProperties"),
            permits_additional=permits,
            additional=additional,
            patterns=self._schemas("patternProperties"),
            permits_unevaluated=permits_unevaluated,
            unevaluated=unevaluated,
            property_dependencies=arrays,
            schema_dependencies=schemas,
        )

    def _array(self) -> ArrayNode:
        self._used |= _ARRAY_WORDS | _CONTAINS_WORDS
        items, tuple_items, permits, additional = self._items()
        permits_unevaluated, unevaluated = self._unevaluated("unevaluatedItems")
        minimum, maximum = self._count("minContains"), self._count("maxContains")
        if "contains" in self._json and self._place.dialect >= Dialect.DRAFT_6:
            self._schema(self._json["contains"])
            if self._modern and minimum is None:
                minimum = 1
        return ArrayNode(
            min_items=self._count("minItems"),
            max_items=self._count("maxItems"),
            unique=self._typed_value("uniqueItems", bool, "a boolean") or False,
            items=items,
            tuple_items=tuple_items,
            permits_additional=permits,
            additional=additional,
            permits_unevaluated=permits_unevaluated,
            unevaluated=unevaluated,
            min_contains=minimum,
            max_contains=maximum,
        )

    def _items(self) -> tuple[Node | None, list[Node] | None, bool, Node | None]:
        """The schema of every item, those of the first ones, and whether, and as what, others may follow."""
        if self._modern:
            return self._modern_items()
        permits, additional = self._open("additionalItems")
        if "items" not in self._json:
            return None, None, permits, additional
        items = self._json["items"]
        if isinstance(items, list):
            return None, [self._schema(item) for item in items], permits, additional
        return self._schema(items), None, permits, additional

    def _modern_items(self) -> tuple[Node | None, list[Node] | None, bool, Node | None]:
        prefix: list[Node] | None = None
        if "prefixItems" in self._json:
            values = self._typed_value("prefixItems", list, "an array") or []
            prefix = [self._schema(value) for value in values]
        rest = self._json.get("items", True)
        if isinstance(rest, bool):
            return None, prefix, rest, None
        items = self._schema(rest)
        return (items, None, True, None) if prefix is None else (None, prefix, True, items)

    def _dependencies(self) -> tuple[dict[str, frozenset[str]], dict[str, Node]]:
        arrays: dict[str, frozenset[str]] = {}
        schemas: dict[str, Node] = {}
        if self._modern:
            for name, value in (self._typed_value("dependentRequired", dict, "an object") or {}).items():
                arrays[name] = frozenset(self._strings(value, name))
            return arrays, self._schemas("dependentSchemas")
        for name, value in (self._typed_value("dependencies", dict, "an object") or {}).items():
            if isinstance(value, list):
                arrays[name] = frozenset(self._strings(value, name))
            else:
                schemas[name] = self._schema(value)
        return arrays, schemas

    def _open(self, word: str) -> tuple[bool, Node | None]:
        value = self._json.get(word, True)
        if isinstance(value, bool):
            return value, None
        return True, self._schema(value)

    def _unevaluated(self, word: str) -> tuple[bool, Node | None]:
        """As `_open`, but here the reference tells `true` from nothing said."""
        if not self._modern or word not in self._json:
            return True, None
        permits, schema = self._open(word)
        return permits, EmptyNode() if permits and schema is None else schema

    def _schema(self, value: Json) -> Node:
        return self._loader.node(value, self._place)

    def _schemas(self, word: str) -> dict[str, Node]:
        values = self._typed_value(word, dict, "an object") or {}
        return {name: self._schema(value) for name, value in values.items()}

    def _strings(self, value: Json, word: str) -> list[str]:
        if not isinstance(value, list):
            raise self._fault(word, "an array")
        found: list[str] = []
        for item in value:
            if not isinstance(item, str):
                raise self._fault(word, "an array of strings")
            found.append(item)
        return found

    def _count(self, word: str) -> Number | None:
        value = self._numeric(word)
        if isinstance(value, Decimal) and not self._modern:
            raise self._fault(word, "an integer")
        return value

    def _numeric(self, word: str) -> Number | None:
        if word not in self._json:
            return None
        value = self._json[word]
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise self._fault(word, "a number")
        return value

    def _typed_value(self, word: str, kind: type[_T], name: str, *, strict: bool = True) -> _T | None:
        if word not in self._json:
            return None
        value = self._json[word]
        if isinstance(value, kind):
            return value
        if not strict:
            return None
        raise self._fault(word, name)

    def _has(self, words: frozenset[str]) -> bool:
        if not self._modern:
            words = words - _MODERN_ONLY
        return not (words - self._used).isdisjoint(self._json)

    def _fault(self, word: str, name: str) -> SchemaParseError:
        return SchemaParseError(f"{excerpt(word)!r} is not {name}: {excerpt(write_json(self._json.get(word)))}")


_TYPES: Final[Mapping[str, Callable[[_Reader], Node]]] = {
    "string": _Reader._string,
    "number": _Reader._number,
    "integer": _Reader._integer,
    "object": _Reader._object,
    "array": _Reader._array,
    "boolean": lambda _: BooleanNode(),
    "null": lambda _: NullNode(),
}
