"""Random JSON Schemas, columns and rows for tests of validation: rows that are often nearly valid."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

__all__ = ["RuleMaker"]

_TEXTS = (
    "", "a", "b", "ab", "active", "actve", "ACTIVE", "closed", "\U0001f68b", "zürich", "it's", 'a"b', "2026-01-31",
    "2026-02-30", "2026-01-31T12:00:00Z", "2026-01-31t23:59:60+00:00", "12:00:00.5-01:30", "QUJD", "QUI=", "QUJ",
    "x" * 50, "a\nb", "null",
)  # fmt: skip
_PATTERNS = ("^[a-z]+$", "^[A-Z]{1,6}$", "\\d{2}", "^\\w*$", "[^a-z]$", "^(active|closed)", "^[^']{2}")
_INTEGERS = (-1, 0, 1, 2, 3, 5, 10, 127)
_LONGS = (*_INTEGERS, 2**53, 2**53 + 1, 2**63 - 1, -(2**63))
_DOUBLES = (0.0, -0.0, 1.0, 1.5, 2.0, 3.0, 0.1, -1.0, 1e300, 5e-324, 2.0**53, 2.0**60, 2.0**63, 1e22, 10.0)
_LIMITS = (-1, 0, 1, 2, 3, 5, 1.5, 0.1, 2.0, 2**53, 2**60, 2**63 - 1, -(2**63))
_NAMES = ("id", "name", "nmae", "status", "qty", "a b", "a/b", "é", "x-1", "it's")
_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_SCALARS = (
    pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.float64(), pa.float32(), pa.string(), pa.string(), pa.binary(),
    pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(10, 2), pa.decimal128(12, 0),
    pa.decimal128(38, 0), pa.decimal128(38, 10), pa.null(),
)  # fmt: skip
_DRAFTS = ("http://json-schema.org/draft-06/schema#", "https://json-schema.org/draft/2020-12/schema", None, None, None,
           "https://json-schema.org/draft/2019-09/schema")  # fmt: skip


class RuleMaker:
    """Makes columns, schemas that somewhat fit them, and rows."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def column(self, depth: int = 0) -> pa.DataType:
        """Return the type of a column: of a row, if `depth` is 0."""
        kind = 0 if depth == 0 else self._chance.randrange(10)
        if depth < 3 and kind < 2:
            names = self._chance.sample(_NAMES, self._chance.randrange(1, 5))
            return pa.struct([(name, self.column(depth + 1)) for name in names])
        if depth < 3 and kind == 2:
            return pa.list_(self.column(depth + 1))
        if depth < 3 and kind == 3:
            return pa.map_(pa.string(), self.column(depth + 1))
        kind = self._chance.choice(_SCALARS)
        return pa.string() if pa.types.is_null(kind) and depth > 1 else kind  # Arrow does not cast nulls in lists

    def schema(self, column: pa.DataType) -> dict[str, Any]:
        """Return a JSON Schema for a column."""
        definitions = {"d": self.part(column, 1), "e/f": self.part(pa.string(), 1)}
        made = self.part(column, 0)
        draft = self._chance.choice(_DRAFTS)
        where = "$defs" if draft and "20" in draft else "definitions"
        text = {"definitions": definitions, **made} if where == "definitions" else {"$defs": definitions, **made}
        return {**({} if draft is None else {"$schema": draft}), **_located(text, where)}

    def part(self, column: pa.DataType, depth: int) -> Any:
        """Return a schema for values of a type."""
        chance = self._chance.random()
        if depth < 5 and chance < 0.2:
            return self._combined(column, depth)
        if depth > 1 and chance < 0.3:
            others = [False, {"$ref": "#/@/e~1f"}] if self._chance.random() < 0.2 else [True, {}, {"title": "any"}]
            return self._chance.choice(others)
        made: dict[str, Any] = {"type": self._types(column)} if self._chance.random() < 0.7 else {}
        if depth < 5:
            made |= self._inner(column, depth)
        for _ in range(self._chance.choice([0, 0, 0, 0, 1, 2])):
            made |= self._keyword(column)
        return made

    def _types(self, column: pa.DataType) -> Any:
        if self._chance.random() < 0.03:
            return self._chance.sample(_TYPES, self._chance.randrange(1, 4))
        return self._chance.choice([_type_of(column), ["null", _type_of(column)], ["null", _type_of(column)]])

    def _combined(self, column: pa.DataType, depth: int) -> Any:
        def inner() -> Any:
            return self.part(column, depth + 1)

        made: Sequence[Callable[[], Any]] = (
            lambda: {"oneOf": [{"type": "null"}, inner()]},
            lambda: {"oneOf": [{"type": "null"}, inner()]},
            lambda: {"anyOf": [{"type": "null"}, inner()]},
            lambda: {"anyOf": [inner(), {"type": "null"}]},
            lambda: {"oneOf": [inner(), inner()]},
            lambda: {"anyOf": [inner(), inner(), inner()]},
            lambda: {"allOf": [inner(), inner()]},
            lambda: {"not": inner()},
            lambda: {"$ref": "#/@/d"} if depth == 0 else inner(),
            lambda: {"oneOf": [{"const": one} for one in self._chance.sample(_TEXTS, 6)]},
        )
        return self._chance.choice(made)()

    def _inner(self, column: pa.DataType, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if pa.types.is_list(column) and self._chance.random() < 0.8:
            made["items"] = self.part(column.value_type, depth + 1)
        if pa.types.is_struct(column):
            named = {one.name: self.part(one.type, depth + 1) for one in column if self._chance.random() < 0.8}
            if self._chance.random() < 0.2:
                named[self._chance.choice(_NAMES)] = self.part(pa.int64(), depth + 1)
            made |= {"properties": named} if named or self._chance.random() < 0.5 else {}
        if pa.types.is_map(column):
            if self._chance.random() < 0.8:
                made["additionalProperties"] = self.part(column.item_type, depth + 1)
            if self._chance.random() < 0.3:
                made["properties"] = {self._chance.choice(_NAMES): self.part(column.item_type, depth + 1)}
        elif pa.types.is_struct(column) and self._chance.random() < 0.4:
            made["additionalProperties"] = self._chance.choice([False, False, True, self.part(pa.string(), depth + 1)])
        if pa.types.is_nested(column) and self._chance.random() < 0.4:
            made["required"] = self._chance.sample(_NAMES, self._chance.randrange(3))
            if pa.types.is_struct(column) and self._chance.random() < 0.8:
                made["required"] = [one.name for one in column if self._chance.random() < 0.5]
        return made

    def _keyword(self, column: pa.DataType) -> dict[str, Any]:
        kind = _type_of(column) if self._chance.random() < 0.97 else self._chance.choice(_TYPES)
        size = self._chance.randrange(5)
        limits = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        by_kind: dict[str, Callable[[], dict[str, Any]]] = {
            "string": lambda: self._chance.choice(
                [
                    {"minLength": size},
                    {"maxLength": size + 1},
                    {"format": self._chance.choice(["date", "date-time", "time", "int32"])},
                    {"contentEncoding": "base64"},
                    {"pattern": self._chance.choice(_PATTERNS)},
                ]
            ),
            "array": lambda: {self._chance.choice(["minItems", "maxItems"]): size},
            "object": lambda: {self._chance.choice(["minProperties", "maxProperties"]): size},
        }
        if kind in ("integer", "number") and self._chance.random() < 0.7:
            if self._chance.random() < 0.2:
                return {"multipleOf": self._chance.choice([1, 2, 3, 7])}
            return {self._chance.choice(limits): self._chance.choice(_LIMITS)}
        if kind in by_kind and self._chance.random() < (0.6 if kind == "string" else 0.95):
            return by_kind[kind]()
        listed = [*self._chance.sample(_TEXTS, 3), *self._chance.sample(_INTEGERS, 2), 1.5, 2.0, True, None]
        if self._chance.random() < 0.3:
            return {"const": self._chance.choice(listed)}
        pool = [*_TEXTS[1:], None] if kind == "string" else listed
        return {"enum": self._chance.sample(pool, self._chance.randrange(1, len(pool) + 1))}

    def value(self, column: pa.DataType, *, nullable: bool = True) -> Any:
        """Return a value of a type."""
        if nullable and (pa.types.is_null(column) or self._chance.random() < 0.15):
            return None
        if pa.types.is_struct(column):
            return {one.name: self.value(one.type) for one in column}
        if pa.types.is_list(column):
            return [self.value(column.value_type) for _ in range(self._chance.randrange(4))]
        if pa.types.is_map(column):
            keys = self._chance.sample((*_NAMES, "long " * 10, "\u200b", "\U0001f68b"), self._chance.randrange(4))
            return [(key, self.value(column.item_type)) for key in keys]
        return self._scalar(column)

    def _scalar(self, column: pa.DataType) -> Any:
        if pa.types.is_decimal(column):
            digits = self._chance.choice([0, 1, 2, 3, 100, 150, 10**8, 10**11, 10**30, -(10**20)])
            if abs(digits) >= 10**column.precision:
                digits = 5
            return Decimal(digits).scaleb(-column.scale)
        if pa.types.is_date(column):
            return self._chance.choice([0, -719162, 20_000])
        if pa.types.is_timestamp(column):
            return self._chance.choice([0, 1, 1_700_000_000_000_000, -62_135_596_800_000_000])
        if pa.types.is_binary(column):
            return self._chance.choice([b"", b"a", b"ab", b"abc"])
        if pa.types.is_boolean(column):
            return self._chance.random() < 0.5
        if pa.types.is_floating(column):
            if pa.types.is_float32(column):
                return self._chance.choice([0.0, 1.0, 1.5, 0.1, 3.0, float("nan")])
            return self._chance.choice((*_DOUBLES, float("nan") if self._chance.random() < 0.1 else 1.0))
        if pa.types.is_integer(column):
            return self._chance.choice(_LONGS if pa.types.is_int64(column) else _INTEGERS)
        return self._chance.choice(_TEXTS)


def _type_of(column: pa.DataType) -> str:
    tests: list[tuple[Callable[[pa.DataType], bool], str]] = [
        (pa.types.is_struct, "object"),
        (pa.types.is_map, "object"),
        (pa.types.is_list, "array"),
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "integer"),
        (pa.types.is_null, "null"),
        (pa.types.is_floating, "number"),
        (pa.types.is_decimal, "number"),
    ]
    return next((name for test, name in tests if test(column)), "string")


def _located(tree: Any, where: str) -> Any:
    """Return a schema whose references point to the definitions, wherever the draft has them."""
    if isinstance(tree, dict):
        return {
            name: one.replace("#/@/", f"#/{where}/") if name == "$ref" else _located(one, where)
            for name, one in tree.items()
        }
    return [_located(one, where) for one in tree] if isinstance(tree, list) else tree
