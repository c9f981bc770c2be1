"""Random JSON Schemas that Spark can express, changed versions of them, their values, and texts of the values."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

__all__ = ["Maker", "damaged"]

_NAMES = ("a", "id", "sku", "price", "längë", "a b", 'q"q', "a_name_that_is_longer_than_a_word", "x\\y", "n1", "n2")
_TEXTS = ("", "a", "zürich", "😀 smile", 'a "quoted" word', "back\\slash", "tab\tnew\nline", "\x00\x1f\x7f", "x" * 70)
_INTEGERS = (0, 1, -1, 7, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 10**17, 999_999_999_999_999_999)
_FAR = (2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30)
_FLOATS = (
    0.0,
    -0.0,
    0.1,
    1.5,
    -2.25,
    1e-7,
    1e-5,
    5e-324,
    1e-323,
    1.5e-322,
    1e15,
    1e16,
    1.7976931348623157e308,
    1234567890.12345678,
    1e22,
)
_SPACES = ("", "", "", " ", "\n", "\t ", "\r\n")
_SCALARS = ("string", "integer", "number", "boolean", "null", "any")


class Maker:
    """Makes schemas, changed schemas, values and texts."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def schema(self, depth: int = 3) -> Any:
        """Return a schema, in most cases of an object."""
        chance = self._chance
        kinds = ["object"] * 12 if depth == 3 else [*_SCALARS, *_SCALARS]
        if depth > 0:
            kinds += ["object", "array", "map", "map", "array"]
        match chance.choice(kinds):
            case "object":
                return {"type": "object", "properties": self._properties(depth)}
            case "array":
                return {"type": "array", "items": self.schema(depth - 1)}
            case "map":
                return {"type": "object", "additionalProperties": self.schema(depth - 1)}
            case "any":
                return chance.choice(({}, {"type": "object"}, {"type": ["string", "integer"]}))
            case kind:
                return {"type": kind if chance.random() < 0.6 else [kind, "null"]}

    def _properties(self, depth: int) -> dict[str, Any]:
        names = self._chance.sample(_NAMES, self._chance.randint(1, 6))
        if self._chance.random() < 0.04:
            names += [f"f{index}" for index in range(70)]
        return {name: self.schema(depth - 1) for name in names}

    def changed(self, schema: Any) -> Any:
        """Return another version of the schema: with other properties, or some of another type."""
        if "properties" not in schema:
            return self.schema(1) if self._chance.random() < 0.2 else schema
        properties = {name: one for name, one in schema["properties"].items() if self._chance.random() > 0.2}
        for name in properties:
            if self._chance.random() < 0.15:
                properties[name] = self.changed(properties[name])
        if self._chance.random() < 0.5:
            properties |= {self._chance.choice(_NAMES): self.schema(1)}
        return {"type": "object", "properties": properties}

    def value(self, schema: Any) -> Any:
        """Return a value of the schema, seldom one of another."""
        chance = self._chance
        if chance.random() < 0.004:
            return self._anything(2)
        if "properties" in schema:
            members = [(name, self.value(one)) for name, one in schema["properties"].items() if chance.random() < 0.9]
            if chance.random() < 0.2:
                chance.shuffle(members)
            if chance.random() < 0.2:
                members.insert(0, ("other", self._anything(2)))
            return dict(members)
        if "additionalProperties" in schema:
            count = 40 if chance.random() < 0.02 else chance.randrange(4)
            return {self._text() + str(index): self.value(schema["additionalProperties"]) for index in range(count)}
        if "items" in schema:
            count = 70 if chance.random() < 0.02 else chance.randrange(4)
            return [self.value(schema["items"]) for _ in range(count)]
        return self._scalar(schema.get("type"))

    def _scalar(self, kinds: Any) -> Any:
        kind = self._chance.choice(kinds) if isinstance(kinds, list) else kinds
        made: dict[Any, Callable[[], Any]] = {
            "string": self._text,
            "integer": self._integer,
            "number": self._number_value,
            "boolean": lambda: self._chance.random() < 0.5,
            "null": lambda: None,
        }
        return made.get(kind, lambda: self._anything(2))()

    def _text(self) -> str:
        return self._chance.choice(_TEXTS) if self._chance.random() < 0.7 else "y" * self._chance.randrange(20)

    def _integer(self) -> int:
        chance = self._chance
        if chance.random() < 0.01:
            return chance.choice(_FAR)
        return chance.choice(_INTEGERS) if chance.random() < 0.4 else chance.getrandbits(chance.randint(1, 62)) - 9

    def _number_value(self) -> float:
        return self._float() if self._chance.random() < 0.5 else self._integer()

    def _float(self) -> float:
        chance = self._chance
        return chance.choice(_FLOATS) if chance.random() < 0.3 else chance.gauss(0, 1) * 10 ** chance.randint(-20, 20)

    def _anything(self, depth: int) -> Any:
        chance = self._chance
        if depth and chance.random() < 0.3:
            return [self._anything(depth - 1) for _ in range(chance.randrange(3))]
        if depth and chance.random() < 0.3:
            return {chance.choice(_NAMES): self._anything(depth - 1) for _ in range(chance.randrange(3))}
        kind = chance.choice(("string", "integer", "number", "boolean", "null"))
        return chance.choice(_FAR) if chance.random() < 0.1 else self._scalar(kind)

    def text(self, value: Any) -> bytes:
        """Return JSON text of a value, in one of the many ways to write it."""
        return self._written(value).encode()

    def _written(self, value: Any) -> str:
        chance, space = self._chance, self._chance.choice(_SPACES)
        if isinstance(value, dict):
            members = [f"{self._quoted(name)}{space}:{self._written(one)}" for name, one in value.items()]
            if members and chance.random() < 0.03:
                members.insert(0, f"{self._quoted(next(iter(value)))}:{self._written(self._anything(1))}")
            return f"{space}{{{space}{','.join(members)}{space}}}"
        if isinstance(value, list):
            return f"[{space}{f'{space},'.join(map(self._written, value))}]{space}"
        if isinstance(value, str):
            return space + self._quoted(value)
        if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
            return space + self._number(value)
        return json.dumps(value) + space

    def _quoted(self, text: str) -> str:
        if self._chance.random() < 0.7:
            return json.dumps(text, ensure_ascii=False)
        if self._chance.random() < 0.5:
            return json.dumps(text).replace("/", "\\/")
        units = text.encode("utf-16-be").hex()
        return '"' + "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4)) + '"'

    def _number(self, value: float) -> str:
        if self._chance.random() < 0.8:
            return json.dumps(value)
        if isinstance(value, int):
            return self._chance.choice((f"{value}.0", f"{value}e0", f"{value}.00E+0", f"{value}0e-1"))
        return self._chance.choice((f"{value:.25e}", f"{value:.3e}", f"{value:.17g}", f"{value:.20f}"[:40]))


_PIECES = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b".", b"e9", b"\xff", b"\xc3", b"\xed\xa0\x80")
_LONG_PIECES = (
    b"1e400",
    b"\\ud800",
    b"null",
    b"true",
    b'"a":',
    b" ",
    b"\0",
    b"9" * 19,
    b"9" * 309,
    b"\\u00e",
    b"[" * 1025,
)


def damaged(good: bytes, chance: Random) -> bytes:
    """Return the text with some bytes changed, doubled, lost or added, perhaps cut."""
    made = bytearray(good)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(made) + 1)
        match chance.randrange(5):
            case 0:
                made[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del made[place : place + chance.randint(1, 3)]
            case 2:
                made[place:place] = made[place : place + chance.randint(1, 9)]
            case 3:
                made[place:place] = chance.choice(_PIECES)
            case _:
                made[place:place] = chance.choice(_LONG_PIECES if chance.random() < 0.3 else _PIECES)
    return bytes(made[: chance.randrange(len(made) + 1)] if chance.random() < 0.1 else made)
