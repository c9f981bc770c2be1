"""JSON Schema in Spark: its types, and how JSON values become its columns.

    string, of any format       string           object with properties     struct of these; others are not read
    integer                     bigint           object with only additionalProperties or patternProperties     map
    number                      double           array                      array
    boolean                     boolean          null                       void
    enum, const                 the type of their values
    oneOf, anyOf, several types the type that remains without null; integer and number give double; equal branches give
                                their type
    allOf, keywords together    the properties of all; integer and number give bigint
    anything else               string: the JSON text of the value

Anything else is a schema that allows every value, an object without known properties, a tuple of several types, or a
oneOf of different objects. `from_json` or `parse_json` can read the text later.

Every column is nullable, as with `from_json`: it is null if the property is absent or null, since the schema need not
have been enforced. `not`, `if` and the dependencies do not affect types. A keyword that belongs to one type, such as
`minLength`, implies that type.

Rules of this file: the model of `compat` in, shapes out; no registry and no bytes.
"""

import json
from collections.abc import Callable, Collection, Sequence, Sized
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import Any, Final

import orjson
import pyarrow as pa

from strata.compat.json_schema import model
from strata.serdes.avro.projection import chosen
from strata.serdes.errors import DecodeError, DecodeReason
from strata.spark_udfs.decoding import arrow_columns
from strata.spark_udfs.decoding.arrow_columns import Build, Shape
from strata.spark_udfs.decoding.type_limits import Nesting

__all__ = ["FORMATS", "Tree", "shape_of", "tree_of"]

FORMATS: Final = ("date-time", "date", "time", "uuid")
"""The formats of strings that a column can have a type for."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The values that a schema allows, as columns show them.

    Attributes:
        kind: the type.
        fields: the properties of an object.
        item: the items of an array, or the values of an object as map.
        format: what each string is, one of `FORMATS`; empty if the schema does not say.
    """

    kind: str
    fields: dict[str, "Tree"] = field(default_factory=dict)
    item: "Tree | None" = None
    format: str = field(default="", compare=False)


_ANY: Final = Tree("any")
_NULL: Final = Tree("null")
_STRING, _BOOLEAN = Tree("string"), Tree("boolean")
_INTEGER, _NUMBER = Tree("integer"), Tree("number")
_NUMBERS: Final = ({"integer", "number"}, {"integer"}, {"number"})


def shape_of(root: model.Node, columns: Sequence[str] | None = None) -> Shape:
    """Return the shape of a schema; its builder takes JSON values.

    Args:
        root: the parsed schema.
        columns: the properties to make columns of, in this order; None means all.

    Raises:
        UnsupportedSchema: If a part of the schema has no Spark type.
        ValueError: If `columns` are not properties of the schema.
    """
    return _shape(tree_of(root, columns))


def tree_of(root: model.Node, columns: Sequence[str] | None) -> Tree:
    """Return the values that a schema allows; see `shape_of`."""
    builder = _TreeBuilder(columns)
    tree = builder.tree(root, "")
    if columns is None:
        return tree
    if tree.kind != "object" or not builder.names:
        raise ValueError("`columns` needs an object with properties as the reader schema")
    # A property that only some branches of a oneOf have gets no column.
    known = [name for name in builder.names if name in tree.fields or name not in columns]
    names = chosen(known, columns, "the reader schema")
    return Tree("object", {name: tree.fields[name] for name in names})


class _TreeBuilder:
    """Builds the tree of one schema; `names` are the properties at the top level."""

    def __init__(self, columns: Sequence[str] | None) -> None:
        self._nesting = Nesting("schema")
        self._columns = columns
        self.names: dict[str, None] = {}

    def tree(self, node: model.Node, path: str) -> Tree:
        followed = model.follow(node)
        self._nesting.count(path)
        with self._nesting.inside(id(followed), path):
            tree, format_ = self._of(followed, path), followed.written.get("format")
        return Tree("string", format=str(format_)) if tree == _STRING and format_ in FORMATS else tree

    def _of(self, node: model.Node, path: str) -> Tree:
        match node:
            case model.StringNode():
                return _STRING
            case model.NumberNode():
                return _INTEGER if node.integer else _NUMBER
            case model.BooleanNode():
                return _BOOLEAN
            case model.NullNode():
                return _NULL
            case model.ObjectNode():
                return self._object(node, path)
            case model.ArrayNode():
                return self._array(node, path)
            case model.EnumNode() if node.values:
                return reduce(_either, (_of_value(json.loads(value)) for value in sorted(node.values)))
            case model.ConstNode():
                return _of_value(json.loads(node.value))
            case model.CombinedNode() if node.branches:
                both = _both if node.criterion is model.Criterion.ALL else _either
                return reduce(both, [self.tree(branch, path) for branch in node.branches])
        return _ANY

    def _object(self, node: model.ObjectNode, path: str) -> Tree:
        if node.properties:
            wanted: Collection[str] = node.properties
            if not path:
                self.names |= dict.fromkeys(node.properties)
                wanted = node.properties if self._columns is None else self._columns
            named = {name: property_ for name, property_ in node.properties.items() if name in wanted}
            trees = {name: self.tree(field, f"{path}.{name}".lstrip(".")) for name, field in named.items()}
            return Tree("object", trees)
        values = [*node.patterns.values(), *([node.additional] if isinstance(node.additional, model.Node) else [])]
        if node.additional is True or not values:
            return Tree("object")
        return Tree("map", item=reduce(_either, [self.tree(value, f"{path}{{}}") for value in values]))

    def _array(self, node: model.ArrayNode, path: str) -> Tree:
        items = [node.items] if node.tuple_items is None else [*node.tuple_items, node.additional]
        if items[-1] is False:
            items.pop()
        trees = [self.tree(item, f"{path}[]") if isinstance(item, model.Node) else _ANY for item in items]
        return Tree("array", item=reduce(_either, trees) if trees else _ANY)


def _of_value(value: object) -> Tree:
    """Return the type of a value in an `enum` or `const`."""
    return {str: _STRING, bool: _BOOLEAN, int: _INTEGER, float: _NUMBER, type(None): _NULL}.get(type(value), _ANY)


def _either(a: Tree, b: Tree) -> Tree:
    """Return the type that holds the values of both."""
    if a == b:
        return _merged(a, b, lambda mine, other: mine if mine == other else "")
    if b == _NULL:
        return a
    if a == _NULL:
        return b
    return _NUMBER if {a.kind, b.kind} in _NUMBERS else _ANY


def _merged(a: Tree, b: Tree, choose: Callable[[str, str], str]) -> Tree:
    """Return one of two equal types, with formats chosen from those of both."""
    fields = {name: _merged(field, b.fields[name], choose) for name, field in a.fields.items()}
    item = None if a.item is None or b.item is None else _merged(a.item, b.item, choose)
    return Tree(a.kind, fields, item, choose(a.format, b.format))


def _both(a: Tree, b: Tree) -> Tree:
    """Return the type of values that match both, or any type if they have nothing in common."""
    if a == b:
        return _merged(a, b, lambda mine, other: mine or other)
    if b in (_ANY, _NULL):
        return a
    if a in (_ANY, _NULL):
        return b
    if {a.kind, b.kind} in _NUMBERS:
        return _INTEGER
    if a.kind == b.kind == "object":
        common = {name: _both(field, b.fields[name]) for name, field in a.fields.items() if name in b.fields}
        return Tree("object", {**a.fields, **b.fields, **common})
    if {a.kind, b.kind} == {"object", "map"}:
        known, other = (a, b) if a.kind == "object" else (b, a)
        return known if known.fields else other
    if a.kind == b.kind and a.item is not None and b.item is not None:
        return Tree(a.kind, item=_both(a.item, b.item))
    return _ANY


def _shape(tree: Tree) -> Shape:
    if tree.kind == "object" and tree.fields:
        return _struct({name: _shape(field) for name, field in tree.fields.items()})
    if tree.item is not None:
        return (_array if tree.kind == "array" else _map)(_shape(tree.item))
    return _SCALARS.get(tree.kind, _TEXT)


_KINDS: Final[dict[type, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    type(None): "null",
}


def _check(values: Sequence[object], expected: str, *allowed: type) -> set[type]:
    """Return the Python types of some values; raise DecodeError if one is neither allowed nor null."""
    types = set(map(type, values))
    wrong = types - {*allowed, type(None)}
    if wrong:
        first = next(python_type for python_type in map(type, values) if python_type in wrong)
        raise DecodeError(DecodeReason.INVALID_VALUE, f"expected {expected}, got {_KINDS[first]}")
    return types


def _strings(values: Sequence[object]) -> pa.Array:
    _check(values, "string", str)
    return arrow_columns.built(values, pa.string())


def _booleans(values: Sequence[object]) -> pa.Array:
    _check(values, "boolean", bool)
    return arrow_columns.built(values, pa.bool_())


def _integers(values: Sequence[object]) -> pa.Array:
    """Build a bigint column; `1.0` is an integer in JSON Schema."""
    if float in _check(values, "integer", int, float):
        if not all(value.is_integer() for value in values if type(value) is float):
            raise DecodeError(DecodeReason.INVALID_VALUE, "expected integer, got number")
        values = [int(value) if type(value) is float else value for value in values]
    return arrow_columns.built(values, pa.int64())


def _numbers(values: Sequence[float | None]) -> pa.Array:
    if int in _check(values, "number", int, float):
        values = [
            None if value is None else float(value) for value in values
        ]  # Arrow rejects integers that a double rounds
    return arrow_columns.built(values, pa.float64())


def _nulls(values: Sequence[object]) -> pa.Array:
    _check(values, "null")
    return pa.nulls(len(values))


def _texts(values: Sequence[object]) -> pa.Array:
    return arrow_columns.built([None if value is None else _text(value) for value in values], pa.string())


def _text(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits, or more levels than orjson writes
        pass
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise DecodeError(DecodeReason.LIMIT, "nested too deeply") from None


_TEXT: Final = Shape(pa.string(), _texts, nullable=True)
_SCALARS: Final[dict[str, Shape]] = {
    "string": Shape(pa.string(), _strings, nullable=True),
    "boolean": Shape(pa.bool_(), _booleans, nullable=True),
    "integer": Shape(pa.int64(), _integers, nullable=True),
    "number": Shape(pa.float64(), _numbers, nullable=True),
    "null": Shape(pa.null(), _nulls, nullable=True),
}


def _struct(fields: dict[str, Shape]) -> Shape:
    arrow = arrow_columns.struct_type((name, arrow_columns.as_nullable(field)) for name, field in fields.items())
    columns: list[tuple[str, Build]] = [(name, field.build) for name, field in fields.items()]

    def build(values: Sequence[dict[str, object] | None]) -> pa.Array:
        _check(values, "object", dict)
        missing = [value is None for value in values]
        rows: Sequence[Any] = [value or {} for value in values] if True in missing else values
        arrays = [arrow_columns.under(name, column, [row.get(name) for row in rows]) for name, column in columns]
        return arrow_columns.struct_array(arrays, arrow, missing)

    return Shape(arrow, build, nullable=True)


def _array(item: Shape) -> Shape:
    arrow = arrow_columns.list_type(item)

    def build(values: Sequence[list[object] | None]) -> pa.Array:
        _check(values, "array", list)
        items = arrow_columns.under("[]", item.build, list(chain.from_iterable(filter(None, values))))
        return arrow_columns.list_array(items, arrow, _lengths(values), [value is None for value in values])

    return Shape(arrow, build, nullable=True)


def _map(value: Shape) -> Shape:
    key = Shape(pa.string(), _strings)
    arrow = arrow_columns.map_type(key, value)

    def build(values: Sequence[dict[str, object] | None]) -> pa.Array:
        _check(values, "object", dict)
        filled = list(filter(None, values))
        keys = arrow_columns.built(list(chain.from_iterable(filled)), pa.string())
        items = arrow_columns.under(
            "{}", value.build, list(chain.from_iterable(entries.values() for entries in filled))
        )
        return arrow_columns.map_array(keys, items, arrow, _lengths(values), [value is None for value in values])

    return Shape(arrow, build, nullable=True)


def _lengths(values: Sequence[Sized | None]) -> list[int]:
    return [len(value or ()) for value in values]
