"""Two notions of equal schemas, both weaker than equal text.

`same_structure` is Avro Java's `Schema.equals`: names, fields, defaults, orders, symbols, sizes and custom
attributes, in any order of attributes; doc, aliases and an enum's default do not count. It decides whether a name
may be defined twice. `equivalent` also wants doc, aliases (as sets) and enum defaults alike: two texts of one
subject that are equivalent are one version.

Pairs of types are compared once each and from a work list, so recursive schemas end and deep ones cannot overflow.
"""

from collections.abc import Container, Iterator

from compat.avro.json_text import json_equal
from compat.avro.model import (
    ArrayType,
    AvroSchema,
    EnumType,
    Field,
    FixedType,
    MapType,
    Missing,
    Names,
    Node,
    RecordType,
    Reference,
    UnionType,
    resolve,
)
from compat.limits import DEFAULT_LIMITS, Limits

__all__ = ["equivalent", "same_structure"]

_Pairs = Iterator[tuple[Node, Node]]


class _Different(Exception):
    """The two schemas differ."""


def equivalent(left: AvroSchema, right: AvroSchema, *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the two are one schema but for the order of attributes and aliases."""
    comparison = _Comparison(left.names, right.names, limits, with_meta=True)
    return left.canonical == right.canonical or comparison.equal(left.root, right.root)


def same_structure(
    left: Node, right: Node, names: Names, limits: Limits = DEFAULT_LIMITS, *, forward: Container[int] = ()
) -> bool:
    """Whether a second definition of a name says the same as the first.

    A forward reference, told by its node's id, equals nothing, as in Avro Java.
    """
    return _Comparison(names, names, limits, with_meta=False, forward=forward).equal(left, right)


class _Comparison:
    def __init__(
        self, left_names: Names, right_names: Names, limits: Limits, *, with_meta: bool, forward: Container[int] = ()
    ):
        self._limits = limits
        self._left_names = left_names
        self._right_names = right_names
        self._with_meta = with_meta
        self._forward = forward

    def equal(self, left: Node, right: Node) -> bool:
        work = [(left, right)]
        seen: set[tuple[int, int]] = set()
        try:
            while work:
                pair = self._resolved(*work.pop())
                key = (id(pair[0]), id(pair[1]))
                if key not in seen:
                    self._limits.look_at_clock()
                    seen.add(key)
                    work.extend(self._compare(*pair))
        except _Different:
            return False
        return True

    def _resolved(self, left: Node, right: Node) -> tuple[Node, Node]:
        _want(id(left) not in self._forward and id(right) not in self._forward)
        return resolve(left, self._left_names), resolve(right, self._right_names)

    def _compare(self, left: Node, right: Node) -> _Pairs:
        """Compare what the two nodes say themselves; the pairs still to be compared are what comes out."""
        _want(left.kind == right.kind)
        if isinstance(left, UnionType) and isinstance(right, UnionType):
            _want(len(left.branches) == len(right.branches))
            yield from zip(left.branches, right.branches, strict=True)
            return
        if isinstance(left, UnionType | Reference) or isinstance(right, UnionType | Reference):
            raise _Different
        _want(json_equal(dict(left.properties), dict(right.properties)))
        if isinstance(left, ArrayType) and isinstance(right, ArrayType):
            yield left.items, right.items
        elif isinstance(left, MapType) and isinstance(right, MapType):
            yield left.values, right.values
        elif isinstance(left, EnumType) and isinstance(right, EnumType):
            self._compare_names(left, right)
            _want(left.symbols == right.symbols)
            _want(not self._with_meta or left.default == right.default)
        elif isinstance(left, FixedType) and isinstance(right, FixedType):
            self._compare_names(left, right)
            _want(left.size == right.size)
        elif isinstance(left, RecordType) and isinstance(right, RecordType):
            self._compare_names(left, right)
            _want(len(left.fields) == len(right.fields))
            for ours, theirs in zip(left.fields, right.fields, strict=True):
                self._compare_fields(ours, theirs)
                yield ours.type, theirs.type

    def _compare_names(self, left: EnumType | FixedType | RecordType, right: EnumType | FixedType | RecordType) -> None:
        _want(left.name.full == right.name.full)
        if self._with_meta:
            _want(left.doc == right.doc)
            _want({name.full for name in left.aliases} == {name.full for name in right.aliases})

    def _compare_fields(self, left: Field, right: Field) -> None:
        _want(left.name == right.name and left.order == right.order)
        _want(isinstance(left.default, Missing) == isinstance(right.default, Missing))
        if not isinstance(left.default, Missing):
            _want(json_equal(left.default, right.default))
        _want(json_equal(dict(left.properties), dict(right.properties)))
        if self._with_meta:
            _want(left.doc == right.doc and set(left.aliases) == set(right.aliases))


def _want(condition: bool) -> None:
    if not condition:
        raise _Different
