"""Random pairs of JSON Schemas, the second one an edited copy of the first, and random documents near to them.

The schemas use every keyword that a rule of compatibility compares, and those that none does.
"""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final

__all__ = ["PairMaker", "documents"]

_NAMES: Final = ("a", "b", "c", "ab", "x-a", "id")
_PATTERNS: Final = ("^a", "^x-", "b$", "^[a-c]+$", "^[a-z]{1,3}$", "\\d", "^$", "^(a|id)$")
_FORMATS: Final = ("date", "ipv4", "uuid", "email", "ipv6")
_TEXTS: Final = ("", "a", "b", "ab", "abc", "x-a", "1")
_NUMBERS: Final = (0, 1, 2, 3, 5, 10, -1, -5, 1.5, 0.5, 100)
_TYPES: Final = ("string", "integer", "number", "boolean", "null", "array", "object")
_DIALECTS: Final = (
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-04/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
_NAMED: Final = frozenset({"properties", "patternProperties", "dependencies", "dependentRequired"})

Schema = Any  # a schema as JSON; it nests without an end that a type could say


class PairMaker:
    """Makes schemas and edited copies of them."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._dialect = ""
        self._has_reference = False

    def pair(self) -> tuple[Schema, Schema]:
        """Return a schema, and a copy with one to three edits."""
        self._dialect = self._chance.choice(_DIALECTS)
        self._has_reference = self._chance.random() < 0.3
        schema = {"$schema": self._dialect, **self._object(3)}
        if self._has_reference:
            schema[self._definitions] = {"node": self._object(2), "leaf": self._part(1)}
        edited = copy.deepcopy(schema)
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            self._edit(edited)
        return schema, edited

    @property
    def _definitions(self) -> str:
        return "$defs" if "20" in self._dialect else "definitions"

    @property
    def _is_fourth(self) -> bool:
        return "draft-04" in self._dialect

    @property
    def _is_modern(self) -> bool:
        return "20" in self._dialect

    def _part(self, depth: int) -> Schema:
        """Return a schema for one place."""
        chance = self._chance.random()
        if depth <= 0:
            return self._scalar()
        if self._has_reference and chance < 0.15:
            return {"$ref": f"#/{self._definitions}/{self._chance.choice(('node', 'leaf'))}"}
        if chance < 0.35:
            return self._combined(depth)
        makers: tuple[Callable[[int], Schema], ...] = (self._object, self._array)
        return self._scalar() if chance < 0.7 else self._chance.choice(makers)(depth)

    def _scalar(self) -> Schema:
        makers = (self._text, self._text, self._number, self._number, self._values, self._plain)
        return self._chance.choice(makers)()

    def _plain(self) -> Schema:
        if self._chance.random() < 0.2:
            return {}
        if self._chance.random() < 0.3:
            return {"type": self._chance.sample(_TYPES[:5], 2)}
        return {"type": self._chance.choice(_TYPES)}

    def _values(self) -> Schema:
        values: list[Any] = self._chance.sample(
            [*_TEXTS, *_NUMBERS[:5], None, True, [], {"a": 1}], self._chance.randrange(1, 4)
        )
        if self._chance.random() < 0.3 and not self._is_fourth:
            return {"const": values[0]}
        return {"enum": values}

    def _text(self) -> Schema:
        made: Schema = {"type": "string"}
        return made | self._some(
            {
                "minLength": lambda: self._chance.randrange(4),
                "maxLength": lambda: self._chance.randrange(1, 8),
                "pattern": lambda: self._chance.choice(_PATTERNS),
                "format": lambda: self._chance.choice(_FORMATS),
            },
            0.2,
        )

    def _number(self) -> Schema:
        made: Schema = {"type": self._chance.choice(("integer", "number"))}
        words: dict[str, Callable[[], Any]] = {
            "minimum": lambda: self._chance.choice(_NUMBERS),
            "maximum": lambda: self._chance.choice(_NUMBERS),
            "multipleOf": lambda: self._chance.choice((1, 2, 3, 5, 0.5)),
        }
        if not self._is_fourth:
            words["exclusiveMinimum"] = words["exclusiveMaximum"] = words["minimum"]
        return made | self._some(words, 0.2)

    def _some(self, words: dict[str, Callable[[], Any]], share: float) -> Schema:
        return {word: make() for word, make in words.items() if self._chance.random() < share}

    def _combined(self, depth: int) -> Schema:
        def inner() -> Schema:
            return self._part(depth - 1)

        makers: list[Callable[[], Schema]] = [
            lambda: {"oneOf": [inner() for _ in range(self._chance.randrange(1, 4))]},
            lambda: {"oneOf": [self._tagged(tag, depth - 1) for tag in ("a", "b")]},
            lambda: {"anyOf": [inner() for _ in range(self._chance.randrange(1, 4))]},
            lambda: {"allOf": [inner(), inner()]},
            lambda: {"allOf": [self._object(depth - 1), self._object(depth - 1)]},
            lambda: {"not": inner()},
        ]
        if self._dialect.endswith(("07/schema#", "09/schema", "12/schema")):
            makers.append(lambda: {"if": inner(), "then": inner(), "else": inner()})
        return self._chance.choice(makers)()

    def _tagged(self, tag: str, depth: int) -> Schema:
        made = self._object(depth)
        made.setdefault("properties", {})["id"] = {"enum": [tag]}
        made["required"] = sorted({*made.get("required", ()), "id"})
        return made

    def _object(self, depth: int) -> Schema:
        names = self._chance.sample(_NAMES, self._chance.randrange(0, 4))
        made: Schema = {"type": "object", "properties": {name: self._part(depth - 1) for name in names}}
        if names and self._chance.random() < 0.5:
            made["required"] = self._chance.sample(names, self._chance.randrange(1, len(names) + 1))
        words: dict[str, Callable[[], Any]] = {
            "additionalProperties": lambda: self._chance.choice((False, False, True, self._part(depth - 1))),
            "patternProperties": lambda: {self._chance.choice(_PATTERNS): self._part(depth - 1)},
            "minProperties": lambda: self._chance.randrange(3),
            "maxProperties": lambda: self._chance.randrange(1, 5),
        }
        if not self._is_fourth:
            words["propertyNames"] = self._text
        if self._is_modern:
            words["dependentRequired"] = lambda: {self._chance.choice(_NAMES): [self._chance.choice(_NAMES)]}
            words["dependentSchemas"] = lambda: {self._chance.choice(_NAMES): self._object(depth - 1)}
            words["unevaluatedProperties"] = lambda: False
        else:
            words["dependencies"] = lambda: {self._chance.choice(_NAMES): [self._chance.choice(_NAMES)]}
        made |= self._some(words, 0.12)
        if self._chance.random() < 0.3:
            made["additionalProperties"] = False
        return made

    def _array(self, depth: int) -> Schema:
        made: Schema = {"type": "array"}
        words: dict[str, Callable[[], Any]] = {
            "items": lambda: self._part(depth - 1),
            "minItems": lambda: self._chance.randrange(3),
            "maxItems": lambda: self._chance.randrange(1, 5),
            "uniqueItems": lambda: True,
        }
        if not self._is_fourth:
            words["contains"] = lambda: self._part(depth - 1)
        if self._is_modern:
            words["minContains"] = words["minItems"]
            words["maxContains"] = words["maxItems"]
        made |= self._some(words, 0.35)
        if self._chance.random() < 0.2:
            made |= self._tuple(depth)
        return made

    def _tuple(self, depth: int) -> Schema:
        first = [self._part(depth - 1) for _ in range(self._chance.randrange(1, 3))]
        rest = self._chance.choice((True, False, self._part(depth - 1)))
        if self._dialect.endswith("2020-12/schema"):
            return {"prefixItems": first, "items": rest}
        return {"items": first, "additionalItems": rest}

    def _edit(self, schema: Schema) -> None:
        """Change one place of a schema."""
        places = [place for place in _places(schema) if isinstance(place, dict)]
        place = self._chance.choice(places)
        words = [word for word in place if word not in ("$schema", "$ref", "definitions", "$defs", "then", "else")]
        chance = self._chance.random()
        if chance < 0.25 and words:
            self._remove(place, self._chance.choice(words))
        elif chance < 0.5:
            other = self._part(1)
            if isinstance(other, dict) and "$ref" not in place:
                place |= {word: value for word, value in other.items() if word != "$schema"}
        elif chance < 0.65 and isinstance(place.get("properties"), dict):
            self._property(place)
        elif words:
            self._vary(place, self._chance.choice(words))

    @staticmethod
    def _remove(place: Schema, word: str) -> None:
        if word != "if":
            del place[word]

    def _property(self, place: Schema) -> None:
        name = self._chance.choice(_NAMES)
        if name in place["properties"] and self._chance.random() < 0.6:
            del place["properties"][name]
        else:
            place["properties"][name] = self._part(1)
            if self._chance.random() < 0.3:
                place["required"] = sorted({*place.get("required", ()), name})

    def _vary(self, place: Schema, word: str) -> None:
        value = place[word]
        if isinstance(value, bool):
            place[word] = not value
        elif isinstance(value, int | float):
            place[word] = value + 1 if word == "multipleOf" else max(value + self._chance.choice((-1, 1, 2)), 0)
        elif word in ("enum", "required") and len(value) > 1:
            value.pop(self._chance.randrange(len(value)))
        elif word in ("oneOf", "anyOf", "allOf"):
            if len(value) > 1 and self._chance.random() < 0.5:
                value.pop(self._chance.randrange(len(value)))
            else:
                value.append(self._part(1))
        elif word == "pattern":
            place[word] = self._chance.choice(_PATTERNS)
        elif word == "type":
            place[word] = self._chance.choice((*_TYPES, ["null", "string"], ["integer", "string"]))


def _places(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas inside a schema, itself included."""
    if not isinstance(schema, dict):
        return
    yield schema
    for word, value in schema.items():
        if word in ("properties", "patternProperties", "definitions", "$defs", "dependentSchemas"):
            for one in value.values():
                yield from _places(one)
        elif word in ("allOf", "anyOf", "oneOf", "prefixItems") or (word == "items" and isinstance(value, list)):
            for one in value:
                yield from _places(one)
        elif word in ("items", "additionalProperties", "additionalItems", "not", "contains", "if", "then", "else"):
            yield from _places(value)


def documents(
    schemas: list[str], seeds: list[Any], number: int, chance: Random, numbers: Sequence[int] = ()
) -> Iterator[Any]:
    """Yield random documents made of what schemas mention, most of them changed copies of others.

    Args:
        schemas: The texts of the schemas.
        seeds: Documents to change, such as valid ones.
        number: How many to yield.
        chance: The source of chance.
        numbers: Numbers that documents may have beside those near to what schemas mention.
    """
    maker = _DocumentMaker([json.loads(text) for text in schemas], chance, numbers)
    for _ in range(number):
        if seeds and chance.random() < 0.8:
            made = chance.choice(seeds)
            for _ in range(chance.choice((1, 1, 2, 3))):
                made = maker.changed(made)
        else:
            made = maker.document()
        yield made


class _DocumentMaker:
    def __init__(self, schemas: list[Schema], chance: Random, more: Sequence[int]) -> None:
        self._chance = chance
        names: set[str] = set()
        self._values: list[Any] = [*_TEXTS]
        numbers: list[float] = []
        for schema in schemas:
            self._scan(schema, names, numbers)
        self._names = [*sorted(names), "zz", "x-a", "a", "é"]
        near = {
            one for number in numbers for one in (number, number - 1, number + 1, number + 0.5, number * 2, -number)
        }
        self._numbers = [*sorted(one for one in near if abs(one) < 1e15), 0, 1, -1, 1.5, *more]
        self._lengths = [0, 1, 2, 3, *(one + step for one in numbers if one in range(1, 40) for step in (-1, 0, 1))]

    def _scan(self, schema: Any, names: set[str], numbers: list[float]) -> None:
        if isinstance(schema, list):
            for one in schema:
                self._scan(one, names, numbers)
        for word, value in schema.items() if isinstance(schema, dict) else ():
            if word in ("properties", "patternProperties", "dependencies", "dependentRequired") or (
                word == "required" and isinstance(value, list)
            ):
                names |= set(value)
            elif word == "enum" and isinstance(value, list):
                self._values += value
            elif word in ("const", "default"):
                self._values.append(value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                numbers.append(value)
            self._scan(value, names, numbers)

    def _scalar(self) -> Any:
        kind = self._chance.randrange(8)
        if kind == 0:
            return self._chance.choice((None, True, False))
        if kind < 3:
            return self._chance.choice(self._numbers)
        if kind < 5:
            return self._chance.choice(self._values)
        return "".join(self._chance.choices("abcx1 -A", k=int(self._chance.choice(self._lengths))))

    def document(self, depth: int = 3) -> Any:
        kind = self._chance.random()
        if depth <= 0 or kind < 0.35:
            return self._scalar()
        if kind < 0.5:
            return [self.document(depth - 1) for _ in range(self._chance.randrange(4))]
        most = min(len(self._names), self._chance.choice((0, 1, 1, 2, 2, 3, 5, 8)))
        return {name: self.document(depth - 1) for name in self._chance.sample(self._names, most)}

    def changed(self, value: Any, depth: int = 3) -> Any:
        kind = self._chance.random()
        if isinstance(value, dict) and kind < 0.9:
            return self._changed_object(value, depth)
        if isinstance(value, list) and kind < 0.9:
            return self._changed_array(value, depth)
        return self.document(depth)

    def _changed_object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        made, kind = dict(value), self._chance.random()
        if not made or kind < 0.3:
            made[self._chance.choice(self._names)] = self.document(min(depth, 2))
            return made
        name = self._chance.choice(list(made))
        if kind < 0.5:
            del made[name]
        else:
            made[name] = self.changed(made[name], depth - 1)
        return made

    def _changed_array(self, value: list[Any], depth: int) -> list[Any]:
        made, kind = list(value), self._chance.random()
        if not made or kind < 0.3:
            made.insert(self._chance.randrange(len(made) + 1), self.document(min(depth, 2)))
            return made
        place = self._chance.randrange(len(made))
        if kind < 0.5:
            del made[place]
        elif kind < 0.6:
            made.append(made[place])
        else:
            made[place] = self.changed(made[place], depth - 1)
        return made
