"""The reader of schemas: JSON to rules, by the dialect of each document."""

from collections.abc import Iterable, Mapping
from typing import Final

from strata.compat.json_schema.containment import rules as r
from strata.compat.json_schema.containment.formats import EXAMPLES, contents_of, is_asserted
from strata.compat.json_schema.containment.schemas import Schemas
from strata.compat.json_schema.containment.values import as_document, key_of, number_of
from strata.compat.json_schema.dialects import Dialect
from strata.compat.json_schema.documents import Documents, Place
from strata.compat.json_schema.json_text import Json
from strata.compat.limits import Limits
from strata.compat.schema import SchemaParseError

__all__ = ["Reader"]

_SIZES: Final = {
    "minLength": ("string", True),
    "maxLength": ("string", False),
    "minItems": ("array", True),
    "maxItems": ("array", False),
    "minProperties": ("object", True),
    "maxProperties": ("object", False),
}
_OPAQUE: Final = ("$recursiveRef",)


class Reader:
    """The reader of one schema and of those to which it refers.

    Args:
        number: The number of the schema in the comparison.
        documents: The schema and what it refers to.
        schemas: The schemas of the comparison.
        limits: Bounds on time.
    """

    def __init__(self, number: int, documents: Documents, schemas: Schemas, limits: Limits) -> None:
        self._number = number
        self._documents = documents
        self._schemas = schemas
        self._limits = limits
        self._made: dict[tuple[int, str], r.Schema] = {}
        self._kept: list[Json] = []  # so that an identity stays that of one value

    def root(self) -> r.Schema:
        """Return the schema itself."""
        return self._at(self._documents.root)

    def _at(self, place: Place) -> r.Schema:
        value = place.value
        if not isinstance(value, dict):
            return self._schemas.nothing if value is False else self._schemas.everything
        key = id(value), place.base
        if key not in self._made:
            self._limits.look_at_clock()
            self._kept.append(value)
            self._made[key] = self._schemas.schema(self._rules(place, value))
        return self._made[key]

    def _inside(self, place: Place, value: Json) -> r.Schema:
        own = value.get(place.dialect.id_keyword) if isinstance(value, dict) else None
        base = Documents.join(place.base, own) if isinstance(own, str) else place.base
        return self._at(place._replace(value=value, base=base, root=False))

    def _rules(self, place: Place, value: Mapping[str, Json]) -> list[r.Rule]:
        if "$ref" in value and not place.dialect.modern:
            return [self._reference(place, str(value["$ref"]))]
        made: list[r.Rule] = []
        words = ("$ref", "$dynamicRef") if place.dialect is Dialect.DRAFT_2020_12 else ("$ref",)
        made += [self._reference(place, str(value[word])) for word in words if word in value]
        made += [r.Opaque(word) for word in _OPAQUE if word in value and place.dialect is Dialect.DRAFT_2019_09]
        made += self._scalars(place, value)
        made += self._objects(place, value)
        made += self._arrays(place, value)
        made += self._combined(place, value)
        if place.dialect.modern:
            made += self._unevaluated(place, value)
        return made

    def _reference(self, place: Place, reference: str) -> r.Rule:
        try:
            target = self._documents.resolve(reference, place)
        except (SchemaParseError, ValueError):
            return r.Opaque("$ref")
        if not isinstance(target.value, dict):
            return r.All((self._at(target),))
        self._kept.append(target.value)
        return r.Reference((self._number, id(target.value), target.base), lambda: self._at(target))

    def _scalars(self, place: Place, value: Mapping[str, Json]) -> Iterable[r.Rule]:
        dialect = place.dialect
        if "type" in value:
            names = value["type"]
            if isinstance(names, str | list):
                types = frozenset([names] if isinstance(names, str) else map(str, names))
                yield r.Types(types, written=dialect is Dialect.DRAFT_4 and "integer" in types)
        if isinstance(value.get("enum"), list):
            yield self._values("enum", value["enum"])
        if "const" in value and dialect is not Dialect.DRAFT_4:
            yield self._values("const", [value["const"]])
        yield from self._limits_of(value, dialect)
        if "multipleOf" in value:
            divisor = number_of(value["multipleOf"])
            yield r.MultipleOf(divisor) if divisor is not None and divisor > 0 else r.Opaque("multipleOf")
        for word, (type_name, is_low) in _SIZES.items():
            if word in value:
                yield _size(word, type_name, value[word], is_low=is_low)
        if isinstance(value.get("pattern"), str):
            yield r.Pattern(str(value["pattern"]))
        if isinstance(value.get("format"), str):
            name = str(value["format"])
            if name in EXAMPLES:
                yield r.Format(name, is_asserted(name, dialect))
        for content in contents_of(value.get("contentEncoding"), value.get("contentMediaType"), dialect):
            yield r.Format(content, is_asserted=True)

    @staticmethod
    def _values(word: str, values: Json) -> r.Rule:
        try:
            documents = [as_document(constant) for constant in values] if isinstance(values, list) else []
        except OverflowError:
            return r.Opaque(word)
        by_key = {key_of(document): document for document in documents}
        return r.Values(frozenset(by_key), tuple(by_key.values()), word)

    @staticmethod
    def _limits_of(value: Mapping[str, Json], dialect: Dialect) -> Iterable[r.Rule]:
        for side, is_low in (("inimum", True), ("aximum", False)):
            plain, exclusive = f"m{side}", f"exclusiveM{side}"
            is_open = dialect is Dialect.DRAFT_4 and value.get(exclusive) is True
            if plain in value:
                yield _limit(plain, value[plain], is_low=is_low, is_open=is_open)
            if exclusive in value and dialect is not Dialect.DRAFT_4:
                yield _limit(exclusive, value[exclusive], is_low=is_low, is_open=True)

    def _objects(self, place: Place, value: Mapping[str, Json]) -> Iterable[r.Rule]:
        properties = self._properties(place, value)
        if properties is not None:
            yield properties
        required = value.get("required")
        if isinstance(required, list) and required:
            yield r.Required(tuple(dict.fromkeys(map(str, required))))
        if "propertyNames" in value and place.dialect is not Dialect.DRAFT_4:
            yield r.Names(self._inside(place, value["propertyNames"]))
        if place.dialect.modern:
            if "dependencies" in value:
                yield r.Opaque("dependencies")  # a keyword of the older dialects, which some validators know still
            words: tuple[str, ...] = ("dependentRequired", "dependentSchemas")
        else:
            words = ("dependencies",)
        for word in words:
            dependencies = value.get(word)
            for name, dependency in dependencies.items() if isinstance(dependencies, dict) else ():
                if isinstance(dependency, list):
                    yield r.Dependent(name, tuple(map(str, dependency)))
                else:
                    yield r.Dependent(name, schema=self._inside(place, dependency))

    def _properties(self, place: Place, value: Mapping[str, Json]) -> r.Properties | None:
        named, patterns = value.get("properties"), value.get("patternProperties")
        has_rest = "additionalProperties" in value
        if not isinstance(named, dict) and not isinstance(patterns, dict) and not has_rest:
            return None
        return r.Properties(
            tuple((name, self._inside(place, schema)) for name, schema in named.items())
            if isinstance(named, dict)
            else (),
            tuple((text, self._inside(place, schema)) for text, schema in patterns.items())
            if isinstance(patterns, dict)
            else (),
            self._inside(place, value["additionalProperties"]) if has_rest else None,
        )

    def _arrays(self, place: Place, value: Mapping[str, Json]) -> Iterable[r.Rule]:
        items = self._items(place, value)
        if items is not None:
            yield items
        if "contains" in value and place.dialect is not Dialect.DRAFT_4:
            yield self._contains(place, value)
        if value.get("uniqueItems") is True:
            yield r.Unique()

    def _contains(self, place: Place, value: Mapping[str, Json]) -> r.Rule:
        bounds: list[int | None] = [1, None]
        for side, word in enumerate(("minContains", "maxContains") if place.dialect.modern else ()):
            if word in value:
                number = number_of(value[word])
                if number is None or number.denominator != 1:
                    return r.Opaque(word)
                bounds[side] = int(number)
        low, high = bounds
        return r.Contains(self._inside(place, value["contains"]), low or 0, high)

    def _items(self, place: Place, value: Mapping[str, Json]) -> r.Items | None:
        if place.dialect is Dialect.DRAFT_2020_12:
            first, rest = value.get("prefixItems"), value.get("items", True)
        elif isinstance(value.get("items"), list):
            first, rest = value["items"], value.get("additionalItems", True)
        else:
            first, rest = None, value.get("items", True)
        if not isinstance(first, list) and rest is True:
            return None
        schemas = tuple(self._inside(place, schema) for schema in first) if isinstance(first, list) else ()
        return r.Items(schemas, None if rest is True else self._inside(place, rest))

    def _combined(self, place: Place, value: Mapping[str, Json]) -> Iterable[r.Rule]:
        for word in ("allOf", "anyOf", "oneOf"):
            branches = value.get(word)
            if isinstance(branches, list):
                schemas = tuple(self._inside(place, branch) for branch in branches)
                yield r.All(schemas) if word == "allOf" else r.Branches(schemas, is_exclusive=word == "oneOf")
        if "not" in value:
            yield r.Not(self._inside(place, value["not"]))
        if "if" in value and place.dialect >= Dialect.DRAFT_7:
            condition, then, otherwise = (self._inside(place, value.get(word, True)) for word in ("if", "then", "else"))
            yield r.If(condition, then, otherwise)

    def _unevaluated(self, place: Place, value: Mapping[str, Json]) -> Iterable[r.Rule]:
        if "unevaluatedProperties" in value:
            rest = self._inside(place, value["unevaluatedProperties"])
            evaluated = _Evaluated(self, place, value)
            if not evaluated.everything_certain:
                certain = r.Properties(_anything(evaluated.names, self), _anything(evaluated.patterns, self), rest)
                possible = r.Properties(
                    _anything(evaluated.possible_names, self), _anything(evaluated.possible_patterns, self), rest
                )
                yield r.Unevaluated(certain, None if evaluated.everything_possible else possible)
        if "unevaluatedItems" in value:
            rest = self._inside(place, value["unevaluatedItems"])
            evaluated = _Evaluated(self, place, value)
            if not evaluated.all_items_certain:
                certain_items = r.Items((self._schemas.everything,) * evaluated.items, rest)
                possible_items = r.Items((self._schemas.everything,) * evaluated.possible_items, rest)
                yield r.Unevaluated(certain_items, None if evaluated.all_items_possible else possible_items)


class _Evaluated:
    """The properties and items that a schema evaluates beside `unevaluatedProperties` or `unevaluatedItems`.

    Branches, conditions and dependencies evaluate only what they do if they apply: `possible`, not `certain`.
    """

    def __init__(self, reader: Reader, place: Place, value: Mapping[str, Json]) -> None:
        self._reader = reader
        self.names: set[str] = set()
        self.patterns: set[str] = set()
        self.possible_names: set[str] = set()
        self.possible_patterns: set[str] = set()
        self.everything_certain = self.everything_possible = False
        self.items = self.possible_items = 0
        self.all_items_certain = self.all_items_possible = False
        self._seen: set[tuple[int, bool]] = set()
        self._look(place, value, is_certain=True, is_root=True)

    def _look(self, place: Place, value: Json | Mapping[str, Json], *, is_certain: bool, is_root: bool = False) -> None:
        if not isinstance(value, Mapping) or (id(value), is_certain) in self._seen:
            return
        self._seen.add((id(value), is_certain))
        self._objects(value, is_certain=is_certain, is_root=is_root)
        self._arrays(place, value, is_certain=is_certain, is_root=is_root)
        for schema in self._list(value, "allOf"):
            self._look(place, schema, is_certain=is_certain)
        for word in ("anyOf", "oneOf"):
            for schema in self._list(value, word):
                self._look(place, schema, is_certain=False)
        for word in ("if", "then", "else"):
            self._look(place, value.get(word), is_certain=False)
        dependents = value.get("dependentSchemas")
        for schema in dependents.values() if isinstance(dependents, dict) else ():
            self._look(place, schema, is_certain=False)
        for word in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(value.get(word), str):
                self._follow(place, str(value[word]), is_certain=is_certain and word == "$ref")

    def _follow(self, place: Place, reference: str, *, is_certain: bool) -> None:
        try:
            target = self._reader._documents.resolve(reference, place)
        except (SchemaParseError, ValueError):
            self.everything_possible = self.all_items_possible = True
            return
        self._look(target, target.value, is_certain=is_certain)

    @staticmethod
    def _list(value: Mapping[str, Json], word: str) -> list[Json]:
        schemas = value.get(word)
        return schemas if isinstance(schemas, list) else []

    def _objects(self, value: Mapping[str, Json], *, is_certain: bool, is_root: bool) -> None:
        for word, certain, possible in (
            ("properties", self.names, self.possible_names),
            ("patternProperties", self.patterns, self.possible_patterns),
        ):
            named = value.get(word)
            names = named.keys() if isinstance(named, dict) else ()
            possible.update(names)
            if is_certain:
                certain.update(names)
        if "additionalProperties" in value or ("unevaluatedProperties" in value and not is_root):
            self.everything_possible = True
            self.everything_certain = self.everything_certain or is_certain

    def _arrays(self, place: Place, value: Mapping[str, Json], *, is_certain: bool, is_root: bool) -> None:
        is_newest = place.dialect is Dialect.DRAFT_2020_12
        first = value.get("prefixItems" if is_newest else "items")
        count = len(first) if isinstance(first, list) else 0
        rest = "items" if is_newest or not isinstance(first, list) else "additionalItems"
        self.possible_items = max(self.possible_items, count)
        if is_certain:
            self.items = max(self.items, count)
        if rest in value or ("unevaluatedItems" in value and not is_root):
            self.all_items_possible = True
            self.all_items_certain = self.all_items_certain or is_certain
        if "contains" in value:
            self.all_items_possible = True


def _anything(names: Iterable[str], reader: Reader) -> tuple[tuple[str, r.Schema], ...]:
    return tuple((name, reader._schemas.everything) for name in sorted(names))


def _limit(word: str, value: Json, *, is_low: bool, is_open: bool) -> r.Rule:
    number = number_of(value)
    return r.Opaque(word) if number is None else r.Limit(number, is_low, is_open, word)


def _size(word: str, type_name: str, value: Json, *, is_low: bool) -> r.Rule:
    number = number_of(value)
    if number is None or number.denominator != 1:
        return r.Opaque(word)
    size = max(int(number), 0)
    return r.Size(type_name, low=size, word=word) if is_low else r.Size(type_name, high=size, word=word)
