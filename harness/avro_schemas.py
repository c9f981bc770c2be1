"""Random Avro schema texts: new or derived from others, valid and invalid, with unusual spelling; alone and in pairs.

Names come from a small set, so that they collide, shadow and refer to one another. Features that Python's JSON values
cannot represent (the spelling of a number, duplicate keys, escapes, whitespace, comments) are added when the text is
written.

Rules of this file: all randomness comes from the given `Random`; no parser except Python's own for JSON.
"""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final

from harness.avro_places import Place, is_named, named_in, places_in, types_in
from harness.json_texts import JsonText, Number

__all__ = ["Schemas"]

Json = Any

_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_KINDS: Final = ("record", "enum", "fixed", "array", "map", "union", "error")
_SIMPLE: Final = ("A", "B", "C", "R", "record", "array", "_x1", "Item")
_SPACES: Final = ("", "n", "n.m", "x.y1", "org.demo")
_FIELDS: Final = ("a", "b", "c", "f1", "qty", "A")
_BAD_NAMES: Final = (
    "",
    "1R",
    "a-b",
    "é",
    "R$",
    "中",
    "int",
    "string",
    "a..b",
    ".A",
    "A.",
    "n.1",
    "1.n",
    "n.int",
    "-",
    " ",
)
_SYMBOLS: Final = ("A", "B", "C", "D", "E_0", "_1")
_WORDS: Final = (
    *("type", "name", "namespace", "doc", "aliases", "fields", "symbols", "size", "items", "values", "default"),
    *("order", "logicalType", "precision", "scale", "props", "z", "Cat", "é", "java-class", ""),
)
_TEXTS: Final = ("", "a", "it's", 'a "b" \\ /', "é€\U0001f68b", "\0\x1f\x7f\x80", "\u2028", "\ud800", "NaN", "1.5", "A")
_NUMBERS: Final = (
    *("0", "-0", "1", "-1", "7", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "1.0", "-0.0"),
    *("9223372036854775808", "-9223372036854775809", "123456789012345678901234567890", "1e5", "1E-7", "0.001", "1e7"),
    *("1.10", "3.4e38", "1e39", "0.1", "1e-400", "1e309", "16777217", "4.9E-324", "100.0", "12345678.9", "5E+3"),
)
_LOGICAL: Final = (
    *("date", "time-millis", "time-micros", "timestamp-millis", "timestamp-micros", "timestamp-nanos", "decimal"),
    *("local-timestamp-millis", "local-timestamp-micros", "uuid", "duration", "big-decimal", "made-up", "", 5, None),
)
_DEEPEST: Final = 3


class Schemas:
    """A generator of schema texts; the same `Random` and the same seed texts give the same schemas."""

    def __init__(self, chance: Random, seeds: Sequence[str]) -> None:
        self._chance = chance
        self._pick = chance.choice
        self._seeds = [json.loads(seed, parse_float=Number, parse_constant=Number) for seed in seeds]
        self._used: list[str] = []

    def text(self) -> str:
        """Return a text that may be a valid schema."""
        root = self._root()
        for _ in range(self._pick((0, 1, 1, 2, 3))):
            self._pick((self._set_word, self._set_word, self._drop, self._spoil, self._copy, self._evolve))(root)
        return JsonText(self._chance).of(root[0])

    def pair(self) -> tuple[str, str]:
        """Return two texts that may be valid schemas, usually valid and similar."""
        old = self._root()
        new = deepcopy(old)
        for _ in range(self._pick((1, 1, 2, 3, 4))):
            self._evolve(self._pick((old, new)))
        plain = JsonText(None)
        return plain.of(new[0]), plain.of(old[0])

    def referring(self, references: Sequence[str]) -> str:
        """Return a text that may be a valid schema, and may use or redefine names that the references define."""
        named = [place.value for text in references for place in named_in(json.loads(text, parse_float=Number))]
        names = [one["name"] for one in named]
        known = [*names, *(f"{self._pick(_SPACES)}.{name}".lstrip(".") for name in names)] or ["A"]
        root = [self._record(1, "")]
        for _ in range(3):
            self._used = known
            places = list(types_in(root)) if self._likely(0.1) else list(types_in(root))[1:]
            again = {**deepcopy(self._pick(named)), "doc": "again"} if named and self._likely(0.3) else None
            self._pick(places or [Place(root, 0)]).put(again or self._reference())
        return JsonText(None).of(root[0])

    def _root(self) -> list[Json]:
        """Return a schema in a list, so that it has a position like every other value."""
        self._used = []
        if self._likely(0.5):
            seed = deepcopy(self._pick(self._seeds))
            self._used = [place.value["name"] for place in named_in(seed)]
            return [seed]
        return [self._type(0, "")]

    def _likely(self, chance: float) -> bool:
        return self._chance.random() < chance

    # Schemas

    def _type(self, depth: int, space: str) -> Json:
        kinds: list[Callable[[], Json]] = [self._primitive] * 4
        kinds += [self._logical, lambda: self._enum(space), lambda: self._fixed(space), self._reference]
        if depth < _DEEPEST:
            inner = depth + 1
            kinds += [lambda: self._record(inner, space), lambda: self._union(inner, space)] * 2
            kinds += [lambda: self._items(inner, space)]
        return self._pick(kinds)() if depth or self._likely(0.4) else self._record(1, space)

    def _primitive(self) -> Json:
        name = self._pick(_PRIMITIVES)
        return name if self._likely(0.8) else self._more({"type": name}, 0.6)

    def _logical(self) -> Json:
        base = self._pick(("int", "long", "string", "bytes"))
        made = {"type": base, "logicalType": self._pick(_LOGICAL)}
        if self._likely(0.4):
            made |= {"precision": self._pick((4, 0, -1, "4", 40)), "scale": self._pick((0, 2, 9, -1, "1"))}
        return made

    def _reference(self) -> Json:
        name = self._pick(self._used) if self._used and self._likely(0.9) else self._name()
        name = name.rpartition(".")[2] if isinstance(name, str) and self._likely(0.4) else name
        return name if self._likely(0.9) else self._more({"type": name}, 0.5)

    def _name(self) -> str:
        space = self._pick(_SPACES) if self._likely(0.3) else ""
        simple = self._pick(_SIMPLE) if self._likely(0.97) else self._pick(_BAD_NAMES)
        return f"{space}.{simple}" if space else simple

    def _named(self, kind: str, space: str) -> tuple[dict[str, Json], str]:
        name = self._name()
        made: dict[str, Json] = {"type": kind, "name": name}
        inside = name.rpartition(".")[0] if "." in name else space
        if self._likely(0.3):
            made["namespace"] = self._pick(_SPACES) if self._likely(0.95) else self._pick((*_BAD_NAMES, 5, None))
            inside = inside if "." in name else str(made["namespace"])
        if self._likely(0.15):
            made["doc"] = self._pick((*_TEXTS, 5))
        if self._likely(0.15):
            made["aliases"] = self._aliases()
        self._used.append(f"{inside}.{name}" if inside and "." not in name else name)
        return made, inside

    def _aliases(self) -> Json:
        names = [self._pick((*self._used, self._name(), *_FIELDS)) for _ in range(self._pick((0, 1, 1, 2, 3)))]
        return names if self._likely(0.95) else self._pick((None, "A", [1], [None], {}, [_BAD_NAMES[1]]))

    def _enum(self, space: str) -> Json:
        made, _ = self._named("enum", space)
        symbols = self._chance.sample(_SYMBOLS, self._pick((0, 1, 2, 2, 3)))
        made["symbols"] = symbols if self._likely(0.95) else self._pick((["A", "A"], ["é"], [1], "A", None, [""]))
        if self._likely(0.25):
            made["default"] = self._pick((*_SYMBOLS[:2], *(symbols or ["A"]) * 3, 5, None))
        return self._more(made, 0.15)

    def _fixed(self, space: str) -> Json:
        made, _ = self._named("fixed", space)
        made["size"] = self._pick((0, 1, 2, 4, 12, 16)) if self._likely(0.95) else self._json(0)
        if self._likely(0.3):
            made |= {"logicalType": self._pick(_LOGICAL), "precision": self._pick((4, 40))}
        return self._more(made, 0.1)

    def _items(self, depth: int, space: str) -> Json:
        inner = self._type(depth, space)
        made = {"type": "array", "items": inner} if self._likely(0.6) else {"type": "map", "values": inner}
        return self._more(made, 0.1)

    def _union(self, depth: int, space: str) -> Json:
        branches: dict[str, Json] = {}
        for _ in range(self._pick((0, 1, 2, 2, 3))):
            branch = self._type(depth, space)
            branches.setdefault(json.dumps(branch, default=str)[:9], branch)
        if self._likely(0.5):
            branches["null"] = "null"
        return self._chance.sample(list(branches.values()), len(branches))

    def _record(self, depth: int, space: str) -> Json:
        made, inside = self._named("record" if self._likely(0.95) else "error", space)
        names = self._chance.sample(_FIELDS, self._pick((0, 1, 2, 2, 3)))
        made["fields"] = [self._field(name, depth, inside) for name in names]
        return self._more(made, 0.1)

    def _field(self, name: str, depth: int, space: str) -> dict[str, Json]:
        kind = self._type(depth, space)
        made = {"name": name, "type": kind}
        if self._likely(0.4):
            made["default"] = self._default(kind) if self._likely(0.9) else self._json(0)
        if self._likely(0.1):
            made["doc"] = self._pick(_TEXTS)
        if self._likely(0.15):
            made["aliases"] = self._aliases()
        if self._likely(0.05):
            made["order"] = self._pick(("ascending", "Descending", "ignore", "ASCENDING", "none", 5))
        return self._more(made, 0.1)

    def _more(self, made: dict[str, Json], likely: float) -> dict[str, Json]:
        """Add attributes without meaning, and change the order."""
        if self._likely(likely):
            made = {**made, self._pick(("z", "Cat", "é", "props", *_WORDS)): self._json(0), **made}
        if self._likely(0.2):
            made = dict(self._chance.sample(list(made.items()), len(made)))
        return made

    def _default(self, kind: Json) -> Json:
        """Return a default that probably fits the type."""
        if isinstance(kind, list):
            return self._default(self._pick(kind)) if kind else None
        name = kind if isinstance(kind, str) else kind.get("type") if isinstance(kind, dict) else None
        inner = kind if isinstance(kind, dict) else {}
        numbers = [Number(number) for number in _NUMBERS]
        simple: dict[Any, Callable[[], Json]] = {
            "null": lambda: None,
            "boolean": lambda: self._likely(0.5),
            "int": lambda: numbers[self._chance.randrange(6)],
            "long": lambda: numbers[self._chance.randrange(9)],
            "float": lambda: self._pick((*numbers, "NaN", "-Infinity", "0x1p3", " 1f", "x")),
            "double": lambda: self._pick((*numbers, "NaN", "Infinity", "1e400", "1d", "")),
            "enum": lambda: self._pick(inner.get("symbols") or ["A"]),
            "array": lambda: [self._default(inner.get("items")) for _ in range(self._chance.randrange(3))],
            "map": lambda: {text: self._default(inner.get("values")) for text in _TEXTS[: self._chance.randrange(3)]},
            "record": lambda: self._record_default(inner.get("fields")),
        }
        return simple.get(name if isinstance(name, str) else "", lambda: self._pick(_TEXTS))()

    def _record_default(self, fields: Json) -> Json:
        known = [one for one in fields or () if isinstance(one, dict) and "name" in one and self._likely(0.95)]
        return {str(one["name"]): self._default(one.get("type")) for one in known}

    def _json(self, depth: int) -> Json:
        """Return any JSON value."""
        kinds: list[Callable[[], Json]] = [
            *(
                lambda: self._pick(_TEXTS),
                lambda: Number(self._pick(_NUMBERS)),
                lambda: self._pick((None, True, False)),
            ),
            *(lambda: self._pick(_PRIMITIVES + _KINDS), self._name),
        ]
        if depth < _DEEPEST:
            kinds += [
                lambda: [self._json(depth + 1) for _ in range(self._chance.randrange(3))],
                lambda: {self._pick(_WORDS): self._json(depth + 1) for _ in range(self._chance.randrange(3))},
            ]
        return self._pick(kinds)()

    # Changes that may make a schema invalid

    def _set_word(self, root: list[Json]) -> None:
        """Set one of Avro's attributes in any object, to a value that it may have elsewhere."""
        objects = [place.value for place in places_in(root) if isinstance(place.value, dict)]
        if not objects:
            return
        word = self._pick(_WORDS)
        values: dict[str, Callable[[], Json]] = {
            "type": lambda: self._pick((*_PRIMITIVES, *_KINDS, self._type(2, ""))),
            "name": lambda: self._pick((self._name(), *_BAD_NAMES)),
            "namespace": lambda: self._pick((*_SPACES, *_BAD_NAMES)),
            "doc": lambda: self._pick(_TEXTS),
            "aliases": self._aliases,
            "symbols": lambda: self._chance.sample(_SYMBOLS, 2),
            "items": lambda: self._type(2, ""),
            "values": lambda: self._type(2, ""),
            "order": lambda: self._pick(("descending", "IGNORE", "x")),
            "logicalType": lambda: self._pick(_LOGICAL),
        }
        value = values[word]() if word in values and self._likely(0.85) else self._json(0)
        self._pick(objects)[word] = value

    def _drop(self, root: list[Json]) -> None:
        """Delete a value."""
        places = [place for place in places_in(root) if place.holder is not root]
        if places:
            place = self._pick(places)
            del place.holder[place.key]

    def _spoil(self, root: list[Json]) -> None:
        """Replace a value with any JSON."""
        self._pick(list(places_in(root))).put(self._json(0))

    def _copy(self, root: list[Json]) -> None:
        """Copy a type over another one, so that it is defined twice or in another namespace."""
        types = list(types_in(root))
        if types:
            source = deepcopy(self._pick(types).value)
            self._pick(types).put(source)
            if isinstance(source, dict) and self._likely(0.3):
                self._set_word([source])

    # Schema evolution

    def _evolve(self, root: list[Json]) -> None:
        places = list(types_in(root))
        if not places:
            return
        place = self._pick(places)
        self._pick((self._wrap, self._inside, self._inside, self._inside, self._inside))(place)

    def _wrap(self, place: Place) -> None:
        """Replace a type with another one, often one that contains it."""
        old = place.value
        inner = [old.get("items"), old.get("values")] if isinstance(old, dict) else old if isinstance(old, list) else []
        unwrapped = next(filter(None, inner), old)
        place.put(
            self._pick(
                (
                    *({"type": "array", "items": old}, {"type": "map", "values": old}, ["null", old], [old, "string"]),
                    *([old], self._type(2, ""), self._pick(_PRIMITIVES), unwrapped, {"type": old}),
                )
            )
        )

    def _inside(self, place: Place) -> None:
        """Change a type in a way that suits its kind."""
        old = place.value
        if isinstance(old, list):
            self._evolve_list(old, lambda: self._type(2, ""))
        elif isinstance(old, dict) and isinstance(old.get("fields"), list):
            self._pick((self._evolve_fields, self._evolve_fields, self._evolve_name))(old)
        elif isinstance(old, dict) and isinstance(old.get("symbols"), list):
            self._pick((self._evolve_symbols, self._evolve_name))(old)
        elif is_named(old):
            self._evolve_name(old)
            old["size"] = self._pick((old.get("size"), 1, 2))
        elif isinstance(old, str):
            place.put(self._pick((*_PRIMITIVES, self._reference())))

    def _evolve_list(self, old: list[Json], another: Callable[[], Json]) -> None:
        change = self._chance.randrange(3)
        if change == 0 and old:
            old.pop(self._chance.randrange(len(old)))
        elif change == 1:
            old.insert(self._chance.randint(0, len(old)), another())
        else:
            self._chance.shuffle(old)

    def _evolve_fields(self, record: dict[str, Json]) -> None:
        fields = [one for one in record["fields"] if isinstance(one, dict)]
        if not fields or self._likely(0.5):
            self._evolve_list(record["fields"], lambda: self._field(self._pick((*_FIELDS, "g", "h")), 2, ""))
            return
        one = self._pick(fields)
        old, new = one.get("name"), self._pick((*_FIELDS, "g", "h"))
        names = [other.get("name") for other in fields]
        one |= self._pick(
            (
                *({"name": new}, {"name": new, "aliases": [old]}, {"aliases": [*names[:2], new]}),
                *({"default": self._default(one.get("type"))}, {"order": "ignore"}, {"doc": "x"}),
            )
        )

    def _evolve_symbols(self, enum: dict[str, Json]) -> None:
        if self._likely(0.7):
            self._evolve_list(enum["symbols"], lambda: self._pick(_SYMBOLS))
        elif self._likely(0.7) and enum["symbols"]:
            enum["default"] = self._pick(enum["symbols"])
        else:
            enum.pop("default", None)

    def _evolve_name(self, named: dict[str, Json]) -> None:
        old, space = str(named.get("name")), self._pick(_SPACES)
        new = self._pick(_SIMPLE)
        named |= self._pick(
            (
                *({"name": new}, {"name": new, "aliases": [old]}, {"namespace": space}, {"name": f"{space}.{old}"}),
                *({"name": new, "aliases": [f"{space}.{old}"]}, {"name": f"n.{new}", "aliases": [old, f".{old}"]}),
                *({"namespace": space, "aliases": [old]}, {"aliases": [*self._used]}),
            )
        )
