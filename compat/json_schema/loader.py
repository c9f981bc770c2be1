"""The loader: JSON to model.

It reads only the reachable parts of a schema: in the older dialects, definitions count if a `$ref` leads to them; in
the newer ones, always. Targets of `$ref` wait in a list, so a long chain of them does not become a deep recursion.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from strata.compat.json_schema import model
from strata.compat.json_schema.dialects import Dialect
from strata.compat.json_schema.documents import Documents, Place
from strata.compat.json_schema.java_regex import check_pattern
from strata.compat.json_schema.json_text import Json, excerpt, json_digest, json_key, write_json
from strata.compat.json_schema.keywords import ARRAY_WORDS, NUMBER_WORDS, OBJECT_WORDS, STRING_WORDS, Keywords
from strata.compat.limits import Limits, OutOfTime
from strata.compat.schema import SchemaParseError

__all__ = ["Loader"]

_CONDITIONS: Final = frozenset({"if", "then", "else"})
_REFERENCES: Final = ("$ref", "$dynamicRef")  # the second leads to an anchor in its own document
_BESIDE_TYPES: Final = _CONDITIONS.union(
    _REFERENCES, {"enum", "not", "const"}, [criterion.value for criterion in model.Criterion]
)
"""The keywords besides `type` and those of one type that make a part of a schema."""
_ANNOTATIONS: Final = frozenset(
    {"$id", "id", "$anchor", "$dynamicAnchor", "readOnly", "writeOnly", "deprecated"}
    | {"title", "description", "default", "connect.type"}
)
"""The keywords that are not compared but checked or kept, in any dialect."""

_Object = dict[str, Json]


class Loader:
    """The loader of one schema and the schemas to which it refers."""

    def __init__(self, documents: Documents, limits: Limits):
        self._documents = documents
        self.limits = limits
        # By document, identity of the JSON value, and whether its name ends with `#`.
        self._nodes: dict[tuple[int, int, bool], model.Node] = {}
        self._waiting: list[tuple[model.ReferenceNode, Place, bool]] = []
        self.definitions: tuple[model.Node, ...] = ()  # of the root, once loaded, in the newer dialects
        self._loaded = 0
        self._digests: dict[int, str] = {}
        self._located: SchemaParseError | None = None  # the current error, once it has a location

    def load(self) -> model.Node:
        """Load the root and every schema that is reachable from it.

        Raises:
            SchemaParseError: A schema is invalid or exceeds a bound.
            OutOfTime: The time of the limits ran out.
        """
        place = self._documents.root
        root = self._node(place)
        if place.dialect.modern:
            # The reference's newer loader makes a separate schema for "#" that shares the parts of the root. The older
            # one reads all targets separately, so its "#" has separate parts as well.
            self._nodes[place.document, id(place.value), False] = replace(root, id=None)
        while self._waiting:
            reference, place, by_hash = self._waiting.pop()
            reference.target = self._target(place, by_hash=by_hash)
        return root

    def _target(self, place: Place, *, by_hash: bool) -> model.Node:
        _check_kind(place.value)
        key = (place.document, id(place.value), by_hash)
        if key not in self._nodes or not isinstance(place.value, dict):
            self._nodes[key] = self._node(place)
        return self._nodes[key]

    def _node(self, place: Place) -> model.Node:
        self._loaded += 1
        self.limits.look_at_clock()
        if self._loaded > self.limits.fields:
            raise SchemaParseError(f"The schema has more than {self.limits.fields} subschemas")
        if isinstance(place.value, bool):
            return model.EmptyNode() if place.value else model.FalseNode()
        try:
            return _Reader(self, self._documents, place).read()
        except OutOfTime:
            raise
        except SchemaParseError as error:
            if error is self._located:
                raise
            self._located = SchemaParseError(f"{error} (at {excerpt(self._documents.pointer(place))})")
            raise self._located from None

    def digest(self, value: Json) -> str:
        """Return a digest that is equal for branches with equal content."""
        return json_digest(value, self._digests)

    def check_branches(self, number: int) -> None:
        """Check the number of branches of a combined schema.

        Raises:
            SchemaParseError: There are too many.
        """
        if number > self.limits.branches:
            raise SchemaParseError(f"A keyword has {number} branches, more than the {self.limits.branches} allowed")

    def wait(self, reference: model.ReferenceNode, place: Place, *, by_hash: bool) -> None:
        """Put the target of a reference on the list of schemas to load.

        Args:
            reference: The node of the reference.
            place: The target.
            by_hash: Whether the reference ends with `#`, in the older dialects.
        """
        self._waiting.append((reference, place, by_hash))

    def node(self, value: Json, place: Place) -> model.Node:
        """Load a schema inside another.

        Args:
            value: The schema.
            place: The schema around it.

        Raises:
            SchemaParseError: The schema is invalid or exceeds a bound.
            OutOfTime: The time of the limits ran out.
        """
        _check_kind(value)
        base = place.base
        own = value.get(place.dialect.id_keyword) if isinstance(value, dict) else None
        if isinstance(own, str):
            base = self._documents.join(base, own)
        return self._node(Place(value, base, place.document, place.dialect))


class _Reader:
    """The reader of one JSON object."""

    def __init__(self, loader: Loader, documents: Documents, place: Place):
        self._loader = loader
        self._documents = documents
        self._place = place
        self._json: _Object = place.value if isinstance(place.value, dict) else {}
        self._modern = place.dialect.modern
        self._keywords = Keywords(self._json, place.dialect, loader.limits)

    def read(self) -> model.Node:
        if "$ref" in self._json and not self._modern:
            return self._annotated(self._reference())
        parts = self._parts()
        if self._modern:
            self._definitions()
        if not parts:
            return self._annotated(model.EmptyNode())
        if len(parts) == 1:
            return self._annotated(self._with_contains(parts[0]))
        combined_first = sorted(parts, key=lambda part: not isinstance(part, model.CombinedNode))
        return self._annotated(model.CombinedNode(criterion=model.Criterion.ALL, branches=combined_first))

    def _parts(self) -> list[model.Node]:
        # One function for all: another frame at each level would lower the depth that a schema may have.
        parts: list[model.Node] = []
        is_plain = _BESIDE_TYPES.isdisjoint(self._json)
        if not is_plain:
            references = [word for word in _REFERENCES[: 2 if self._modern else 1] if word in self._json]
            parts += [*map(self._reference, references), *self._combined()]
        if "type" in self._json:
            parts.append(self._typed())
        for words, build in _UNTYPED:
            if self._keywords.has(words):
                parts.append(build(self))
                parts[-1].implied = True
        if is_plain:
            return parts
        if "enum" in self._json:
            values = self._keywords.typed("enum", list) or []
            parts.append(model.EnumNode(values=frozenset(map(json_key, values))))
        if "not" in self._json:
            parts.append(model.NotNode(inner=self._schema(self._json["not"])))
        if "const" in self._json and self._place.dialect >= Dialect.DRAFT_6:
            parts.append(model.ConstNode(value=json_key(self._json["const"])))
        if self._conditional():
            for word in _CONDITIONS & self._json.keys():
                self._schema(self._json[word])
            parts.append(model.ConditionalNode())
        return parts

    def _conditional(self) -> bool:
        if self._modern:  # the newer loader ignores "then" and "else" without "if"
            return "if" in self._json
        return self._place.dialect is Dialect.DRAFT_7 and not _CONDITIONS.isdisjoint(self._json)

    def _with_contains(self, node: model.Node) -> model.Node:
        """Add two limits that the older dialects lack: the reference reads them if the array is the only part."""
        if isinstance(node, model.ArrayNode) and not self._modern:
            node.bounds |= self._keywords.lenient_numbers("minContains", "maxContains")
        return node

    def _annotated(self, node: model.Node) -> model.Node:
        node.written = self._json
        if _ANNOTATIONS.isdisjoint(self._json):
            return node
        if not self._modern or self._place.root:  # the newer loader keeps only the name of the root
            node.id = self._keywords.typed(self._place.dialect.id_keyword, str, strict=not self._modern)
        self._keywords.check_annotations()
        node.title = self._keywords.typed("title", str)
        node.description = self._keywords.typed("description", str)
        if "default" in self._json:
            node.default = json_key(self._json["default"])
        node.connect_type = self._json.get("connect.type")
        return node

    def _reference(self, word: str = "$ref") -> model.ReferenceNode:
        reference = self._keywords.typed(word, str) or ""
        node = model.ReferenceNode(reference=reference)
        by_hash = reference.endswith("#") and not self._modern  # the older loader distinguishes `name#` from `name`
        self._loader.wait(node, self._documents.resolve(reference, self._place), by_hash=by_hash)
        return node

    def _definitions(self) -> None:
        definitions = [*self._schemas("$defs").values()]
        if isinstance(self._json.get("definitions"), dict):  # not a keyword of these dialects, so it may have any value
            definitions += self._schemas("definitions").values()
        if self._place.root:
            self._loader.definitions = tuple(definitions)

    def _combined(self) -> list[model.Node]:
        branches: list[model.Node] = []
        for criterion in (model.Criterion.ALL, model.Criterion.ANY, model.Criterion.ONE):
            if criterion.value in self._json:
                values = self._keywords.typed(criterion.value, list) or []
                self._loader.check_branches(len(values))
                branches.append(
                    model.CombinedNode(criterion=criterion, branches=[self._branch(value) for value in values])
                )
        return branches

    def _branch(self, value: Json) -> model.Node:
        node = self._schema(value)
        node.key = self._loader.digest(value)
        return node

    def _typed(self) -> model.Node:
        types = self._json["type"]
        if isinstance(types, str):
            return self._of_type(types)
        if not isinstance(types, list):
            raise self._keywords.fault("type", "a string or an array")
        branches: list[model.Node] = []
        for name in types:
            if not isinstance(name, str):
                raise self._keywords.fault("type", "an array of strings")
            node = self._of_type(name)
            node.key = name
            branches.append(node)
        return model.CombinedNode(criterion=model.Criterion.ANY, branches=branches)

    def _of_type(self, name: str) -> model.Node:
        build = _TYPES.get(name)
        if build is None:
            raise SchemaParseError(f"Unknown type {excerpt(name)!r}; expected one of {', '.join(sorted(_TYPES))}")
        return build(self)

    def _string(self) -> model.StringNode:
        self._keywords.use(STRING_WORDS)
        self._keywords.typed("format", str)
        return model.StringNode(
            bounds=self._keywords.counts("minLength", "maxLength"),
            pattern=self._keywords.pattern(),
        )

    def _number(self, *, integer: bool = False) -> model.NumberNode:
        self._keywords.use(NUMBER_WORDS)
        bounds = self._keywords.numbers("minimum", "maximum")
        multiple_of = self._keywords.multiple_of()
        if self._place.dialect is Dialect.DRAFT_4:
            self._keywords.typed("exclusiveMinimum", bool)
            self._keywords.typed("exclusiveMaximum", bool)
        else:
            bounds |= self._keywords.numbers("exclusiveMinimum", "exclusiveMaximum")
        return model.NumberNode(bounds=bounds, multiple_of=multiple_of, integer=integer)

    def _object(self) -> model.ObjectNode:
        self._keywords.use(OBJECT_WORDS)
        additional = self._rest("additionalProperties")
        unevaluated = self._unevaluated("unevaluatedProperties")
        arrays, schemas = self._dependencies()
        if "propertyNames" in self._json and self._place.dialect is not Dialect.DRAFT_4:
            self._schema(self._json["propertyNames"])
        return model.ObjectNode(
            properties=self._properties(),
            required=frozenset(self._keywords.strings(self._json.get("required", []), "required")),
            bounds=self._keywords.counts("minProperties", "maxProperties"),
            additional=additional,
            patterns=self._patterns(),
            unevaluated=unevaluated,
            property_dependencies=arrays,
            schema_dependencies=schemas,
        )

    def _array(self) -> model.ArrayNode:
        self._keywords.use(ARRAY_WORDS)
        node = self._modern_items() if self._modern else self._items()
        node.unevaluated = self._unevaluated("unevaluatedItems")
        if "contains" in self._json and self._place.dialect is not Dialect.DRAFT_4:
            self._schema(self._json["contains"])
            if self._modern:
                node.bounds |= {"minContains": 1} | self._keywords.lenient_numbers("minContains", "maxContains")
        node.bounds |= self._keywords.counts("minItems", "maxItems")
        node.unique = self._keywords.typed("uniqueItems", bool) or False
        return node

    def _items(self) -> model.ArrayNode:
        """Return an array with the schema of every item, or those of the first items and what may follow."""
        node = model.ArrayNode(additional=self._rest("additionalItems"))
        items = self._json.get("items")
        if isinstance(items, list):
            node.tuple_items = [self._schema(item) for item in items]
        elif "items" in self._json:
            node.items = self._object_in_draft_4("items", items)
        return node

    def _modern_items(self) -> model.ArrayNode:
        node = model.ArrayNode()
        if "prefixItems" in self._json:
            values = self._keywords.typed("prefixItems", list) or []
            node.tuple_items = [self._schema(value) for value in values]
        rest = self._rest("items")
        if isinstance(rest, model.Node) and node.tuple_items is None:
            node.items = rest
        else:
            node.additional = rest
        return node

    def _dependencies(self) -> tuple[dict[str, frozenset[str]], dict[str, model.Node]]:
        """Return the dependencies that name properties, except empty ones, and those that are schemas."""
        arrays: dict[str, frozenset[str]] = {}
        schemas: dict[str, model.Node] = {}
        word = "dependentRequired" if self._modern else "dependencies"
        for name, value in (self._keywords.typed(word, dict) or {}).items():
            if not self._modern and not isinstance(value, list):
                schemas[name] = self._object_in_draft_4(name, value)
            elif names := self._keywords.strings(value, name):
                arrays[name] = frozenset(names)
        return arrays, self._schemas("dependentSchemas") if self._modern else schemas

    def _rest(self, word: str) -> model.Rest:
        value = self._json.get(word, True)
        return value if isinstance(value, bool) else self._schema(value)

    def _unevaluated(self, word: str) -> model.Rest:
        """Return the same as `_rest`, except that here the reference distinguishes `true` from an absent keyword."""
        if not self._modern or word not in self._json:
            return True
        rest = self._rest(word)
        return model.EmptyNode() if rest is True else rest

    def _schema(self, value: Json) -> model.Node:
        return self._loader.node(value, self._place)

    def _schemas(self, word: str) -> dict[str, model.Node]:
        values = self._keywords.typed(word, dict) or {}
        return {name: self._schema(value) for name, value in values.items()}

    def _properties(self) -> dict[str, model.Node]:
        values = self._keywords.typed("properties", dict) or {}
        name = None if self._modern else self._place.dialect.id_keyword  # the older loader reads it as the object's id
        return {key: self._schema(value) for key, value in values.items() if key != name or isinstance(value, dict)}

    def _patterns(self) -> dict[str, model.Node]:
        nodes = self._schemas("patternProperties")
        for pattern in nodes:
            check_pattern(pattern, self._loader.limits)
        return nodes

    def _object_in_draft_4(self, word: str, value: Json) -> model.Node:
        if isinstance(value, bool) and self._place.dialect is Dialect.DRAFT_4:
            raise SchemaParseError(f"{excerpt(word)!r} must be an object in draft 4, got {write_json(value)}")
        return self._schema(value)


def _check_kind(value: Json) -> None:
    if not isinstance(value, bool | dict):
        raise SchemaParseError(f"Expected a schema (an object, true or false), got {excerpt(write_json(value))}")


_TYPES: Final[Mapping[str, Callable[[_Reader], model.Node]]] = {
    "string": _Reader._string,
    "number": _Reader._number,
    "integer": lambda reader: reader._number(integer=True),
    "object": _Reader._object,
    "array": _Reader._array,
    "boolean": lambda _: model.BooleanNode(),
    "null": lambda _: model.NullNode(),
}
_UNTYPED: Final[tuple[tuple[frozenset[str], Callable[[_Reader], model.Node]], ...]] = (
    (ARRAY_WORDS, _Reader._array),
    (OBJECT_WORDS, _Reader._object),
    (NUMBER_WORDS, _Reader._number),
    (STRING_WORDS, _Reader._string),
)
