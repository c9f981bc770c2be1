"""JSON values as rules see them: their fields along a JSON Schema.

A field is a property under `properties` of a schema; its full name is the path to it, such as `$.lines.price`, and the
items of an array belong to the array's field. Of `oneOf` the first branch that allows the value is followed, of `anyOf`
every one that allows it, of `allOf` all; `$ref` is followed inside the schema and into its references.

Rules of this file: a reference that cannot be followed is an error, since a rule would silently not run.
"""

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from strata.serdes.errors import DecodeError, SchemaError
from strata.serdes.functions import Convert, Decode
from strata.serdes.json_schema.json_text import dump, load
from strata.serdes.json_schema.places import At, target_of
from strata.serdes.model import Metadata, Rule, Schema
from strata.serdes.rules.executors import FieldTransform
from strata.serdes.rules.fields import Fields, Place, Values, Visit

__all__ = ["JsonShapes", "JsonValues"]

Validate = Callable[[object], None]

_DEEPEST = 500
_MOST_STEPS = 1_000_000
_MOST_KNOWN = 10_000
_TYPES_OF_LEAVES = ("string", "integer", "number", "boolean", "null")
_INNER = frozenset({"$ref", "allOf", "anyOf", "items", "oneOf", "prefixItems", "properties"})
_BRANCHING = frozenset({"allOf", "anyOf", "oneOf"})
_LEAVES = frozenset({"ENUM", "STRING", "INT", "DOUBLE", "BOOLEAN"})
_TYPE_NAMES = {
    "array": "ARRAY",
    "string": "STRING",
    "integer": "INT",
    "number": "DOUBLE",
    "boolean": "BOOLEAN",
    "null": "NULL",
}
_IS: dict[str, Callable[[object], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())
    ),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


_PLAIN: frozenset[type] = frozenset({str, int, float, bool, type(None)})
_KEYS: frozenset[type] = frozenset({str})


class JsonValues(Values):
    """The values of a JSON Schema.

    Args:
        documents: the schema and what it refers to, by URI; the schema comes first.
        validator: returns a function that raises DecodeError for a value that the schema at a URI with a fragment does
            not allow.
        metadata: the metadata of the schema.
    """

    def __init__(
        self, documents: Mapping[str, object], validator: Callable[[str], Validate], metadata: Metadata | None
    ) -> None:
        self._documents = documents
        self._validator = functools.cache(validator)
        self._metadata = metadata

    def visitor(self, rule: Rule, *, loosely: bool = False) -> Visit:
        """Return the visitor of the fields that a rule selects; `loosely` also visits branches that do not fit."""
        validator, fields = None if loosely else self._validator, Fields(self._metadata, rule)
        known: dict[tuple[int, str], list[_Property]] = {}
        uri, document = next(iter(self._documents.items()))
        root = At(uri, "", document)
        return lambda transform, value: _Walk(self._documents, validator, fields, known, transform, root).value(value)

    def plain(self, value: object) -> object:
        """Return what the JSON encoder accepts as plain JSON."""
        if type(value) is dict and _PLAIN.issuperset(map(type, value.values())) and _KEYS.issuperset(map(type, value)):
            return dict(value)
        return load(dump(value))


@dataclass(frozen=True, slots=True)
class _Property:
    """A property of a schema: its place there, its full name, and its field."""

    at: At
    path: str
    place: Place
    leaf: str
    """The type of a selected property that has no branches and nothing inside; else empty."""

    @property
    def is_passed_over(self) -> bool:
        """Whether a rule selects neither the property nor anything inside it."""
        tree = self.at.tree
        return not self.place.selected and tree.get("type") in _TYPES_OF_LEAVES and _INNER.isdisjoint(tree)


@dataclass(slots=True)
class _Walk:
    """A walk through one value along its schema, which builds a new value.

    It has a budget of steps: branches that all fit double the steps at each level.
    """

    _documents: Mapping[str, object]
    _validator: Callable[[str], Validate] | None
    _fields: Fields
    _known: dict[tuple[int, str], list["_Property"]]
    _transform: FieldTransform
    _root: At
    _steps: int = 0

    def value(self, value: object) -> object:
        """Call the transform with each selected field."""
        return self._at(self._root, "$", None, None, value, 0)

    def _at(self, at: At, path: str, place: Place | None, message: object, value: object, depth: int) -> object:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise SchemaError(f"a rule needs more than {_MOST_STEPS} steps through the JSON Schema and the value")
        if value is None or not isinstance(at.tree, dict):
            return value
        if depth > _DEEPEST:
            raise SchemaError(f"the schema or the value is nested deeper than {_DEEPEST}")
        tree = at.tree
        type_name = _type_name(tree, value)
        if type_name in _LEAVES and place is not None and "$ref" not in tree:
            return self._transform(place.context(type_name, message), value) if place.selected else value
        if not _BRANCHING.isdisjoint(tree):
            for branch in self._branches(at, value):
                value = self._at(branch, path, place, message, value, depth + 1)
        if isinstance(value, list):
            go = functools.partial(self._at, path=path, place=place, message=message, depth=depth + 1)
            return self._items(at, value, go)
        if isinstance(value, dict) and isinstance(tree.get("properties"), dict):
            value = self._properties(at, path, value, depth)
        if isinstance(tree.get("$ref"), str):
            value = self._at(self._target(at), path, place, message, value, depth + 1)
        return value

    def _properties(self, at: At, path: str, value: dict[str, object], depth: int) -> object:
        key = id(at.tree), path
        properties = self._known.get(key)
        if properties is None:
            properties = [property_ for property_ in self._found(at, path) if not property_.is_passed_over]
            if len(self._known) < _MOST_KNOWN:  # paths through a schema that contains itself have no end
                self._known[key] = properties
        made = dict(value)
        for property_ in properties:
            name = property_.place.name
            inner = made.get(name)
            if inner is None:
                continue
            if property_.leaf:
                made[name] = self._transform(property_.place.context(property_.leaf, made), inner)
            else:
                made[name] = self._at(property_.at, property_.path, property_.place, made, inner, depth + 1)
        return made

    def _found(self, at: At, path: str) -> Iterator["_Property"]:
        """Yield the properties under a schema."""
        for name, inner in at.tree["properties"].items():
            if isinstance(inner, dict):
                below, tags = f"{path}.{name}", inner.get("confluent:tags")
                place = self._fields.place(
                    below, name, frozenset(map(str, tags)) if isinstance(tags, list) else frozenset()
                )
                down = at.down("properties", name)
                yield _Property(down, below, place, _leaf(inner) if place.selected else "")

    def _items(self, at: At, value: list[object], go: Callable[..., object]) -> list[object]:
        tuples = next((key for key in ("prefixItems", "items") if isinstance(at.tree.get(key), list)), None)
        fixed = [] if tuples is None else [at.down(tuples, index) for index in range(len(at.tree[tuples]))]
        rest = "additionalItems" if tuples == "items" else "items"
        others = at.down(rest) if isinstance(at.tree.get(rest), dict) else None
        made = [go(part, value=item) for part, item in zip(fixed, value, strict=False)]
        left = value[len(made) :]
        return made + ([go(others, value=item) for item in left] if others is not None else left)

    def _branches(self, at: At, value: object) -> list[At]:
        """Return the schemas next to this one that describe the value too."""
        places = [at.down("allOf", index) for index in range(len(_list(at.tree, "allOf")))]
        for key in ("oneOf", "anyOf"):
            allowed = (at.down(key, index) for index in range(len(_list(at.tree, key))))
            fitting = (place for place in allowed if self._allows(place, value))
            places += fitting if key == "anyOf" or self._validator is None else islice(fitting, 1)
        return places

    def _allows(self, at: At, value: object) -> bool:
        if self._validator is None:
            return True
        try:
            self._validator(f"{at.uri}#{at.pointer}")(value)
        except DecodeError:
            return False
        return True

    def _target(self, at: At) -> At:
        target = target_of(self._documents, at.uri, at.tree["$ref"])
        if target is None:
            raise SchemaError(f"cannot resolve the $ref {at.tree['$ref'][:100]!r} for a rule")
        return target


def _list(tree: Mapping[str, object], key: str) -> list[object]:
    part = tree.get(key)
    return part if isinstance(part, list) else []


def _leaf(tree: Mapping[str, object]) -> str:
    type_name = _type_name(tree, None) if isinstance(tree.get("type"), str) and _INNER.isdisjoint(tree) else ""
    return type_name if type_name in _LEAVES else ""


def _type_name(tree: Mapping[str, object], value: object) -> str:
    if tree.get("const") is not None or tree.get("enum") is not None:
        return "ENUM"
    kinds = tree.get("type")
    if isinstance(kinds, list):
        kinds = next((type_name for type_name in kinds if type_name in _IS and _IS[type_name](value)), None)
    if kinds == "object" or (kinds is None and "properties" in tree):
        return "RECORD" if tree.get("properties") else "MAP"
    return _TYPE_NAMES.get(kinds, "NULL") if isinstance(kinds, str) else "NULL"


@dataclass(frozen=True, slots=True)
class JsonShapes:
    """Conversions of JSON values between schemas: values do not change, and the last schema validates them.

    Attributes:
        values: returns the values of a schema as rules see them.
        validator: returns the validation against a schema, if any.
    """

    values: Callable[[Schema], Values]
    validator: Callable[[Schema], Validate | None]

    def decoder(self, shape: Schema) -> Decode:  # noqa: ARG002 - an interface
        """Return the parser of payloads."""
        return load

    first = decoder

    def between(self, have: Schema, want: Schema) -> Callable[[object], object]:  # noqa: ARG002 - an interface
        """Return the identity function."""
        return lambda value: value

    adopted = between

    def wanted(self, shape: Schema) -> Convert | None:
        """Return the validation against a schema; None if validation is off.

        Raises:
            SchemaError: If the schema cannot be used.
            DecodeError: From the returned function, if the schema does not allow the value.
        """
        validate = self.validator(shape)
        if validate is None:
            return None

        def checked(value: object) -> object:
            validate(value)
            return value

        return checked
