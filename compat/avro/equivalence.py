"""Two notions of schema equality, both weaker than equal text.

`same_structure` is Avro Java's `Schema.equals`. It compares names, fields, defaults, orders, symbols, sizes and custom
attributes, whatever the order of attributes, but not doc, aliases or an enum's default. It decides whether a name may
be defined twice. `equivalent` also compares doc, aliases (as sets) and enum defaults: equivalent texts of one subject
are one version.

A work list holds the pairs of types, and each pair is compared once. So recursive schemas terminate, and deep ones do
not overflow the stack.
"""

from collections.abc import Container, Iterator

from strata.compat.avro import model
from strata.compat.avro.json_text import json_equal
from strata.compat.limits import DEFAULT_LIMITS, Limits

__all__ = ["equivalent", "same_structure"]

_Pairs = Iterator[tuple[model.Node, model.Node]]


class _Different(Exception):
    """The two schemas differ."""


def equivalent(left: model.AvroSchema, right: model.AvroSchema, *, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether two schemas are equal apart from the order of attributes and aliases.

    Args:
        left: One schema.
        right: The other schema.
        limits: Bounds on time.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    comparison = _Comparison(left.names, right.names, limits, with_meta=True)
    return left.canonical == right.canonical or comparison.equal(left.root, right.root)


def same_structure(
    left: model.Node,
    right: model.Node,
    names: model.Names,
    limits: Limits = DEFAULT_LIMITS,
    *,
    forward: Container[int] = (),
) -> bool:
    """Return whether two definitions of a name agree.

    Args:
        left: One definition.
        right: The other definition.
        names: The named types.
        limits: Bounds on time.
        forward: The object ids of forward references, which equal nothing, as in Avro Java.

    Raises:
        OutOfTime: The time of `limits` ran out.
    """
    return _Comparison(names, names, limits, with_meta=False, forward=forward).equal(left, right)


class _Comparison:
    def __init__(
        self,
        left_names: model.Names,
        right_names: model.Names,
        limits: Limits,
        *,
        with_meta: bool,
        forward: Container[int] = (),
    ):
        self._limits = limits
        self._left_names = left_names
        self._right_names = right_names
        self._with_meta = with_meta
        self._forward = forward

    def equal(self, left: model.Node, right: model.Node) -> bool:
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

    def _resolved(self, left: model.Node, right: model.Node) -> tuple[model.Node, model.Node]:
        _want(id(left) not in self._forward and id(right) not in self._forward)
        return model.resolve(left, self._left_names), model.resolve(right, self._right_names)

    def _compare(self, left: model.Node, right: model.Node) -> _Pairs:
        """Compare two nodes without their children; yield the pairs of children to compare next."""
        _want(left.kind == right.kind)
        if isinstance(left, model.UnionType) and isinstance(right, model.UnionType):
            _want(len(left.branches) == len(right.branches))
            yield from zip(left.branches, right.branches, strict=True)
            return
        if isinstance(left, model.UnionType | model.Reference) or isinstance(right, model.UnionType | model.Reference):
            raise _Different
        _want(json_equal(dict(left.properties), dict(right.properties)))
        if isinstance(left, model.ArrayType) and isinstance(right, model.ArrayType):
            yield left.items, right.items
        elif isinstance(left, model.MapType) and isinstance(right, model.MapType):
            yield left.values, right.values
        elif isinstance(left, model.EnumType) and isinstance(right, model.EnumType):
            self._compare_names(left, right)
            _want(left.symbols == right.symbols)
            _want(not self._with_meta or left.default == right.default)
        elif isinstance(left, model.FixedType) and isinstance(right, model.FixedType):
            self._compare_names(left, right)
            _want(left.size == right.size)
        elif isinstance(left, model.RecordType) and isinstance(right, model.RecordType):
            self._compare_names(left, right)
            # Most versions of a subject differ in the names of their fields, which are quick to compare.
            _want(tuple(left.by_name) == tuple(right.by_name))
            for ours, theirs in zip(left.fields, right.fields, strict=True):
                if ours.text is None or ours.text != theirs.text:
                    self._compare_fields(ours, theirs)
                    yield ours.type, theirs.type

    def _compare_names(
        self,
        left: model.EnumType | model.FixedType | model.RecordType,
        right: model.EnumType | model.FixedType | model.RecordType,
    ) -> None:
        _want(left.name.full == right.name.full)
        if self._with_meta:
            _want(left.doc == right.doc)
            _want({name.full for name in left.aliases} == {name.full for name in right.aliases})

    def _compare_fields(self, left: model.Field, right: model.Field) -> None:
        _want(left.order == right.order)
        _want(isinstance(left.default, model.Missing) == isinstance(right.default, model.Missing))
        if not isinstance(left.default, model.Missing):
            _want(json_equal(left.default, right.default))
        _want(json_equal(dict(left.properties), dict(right.properties)))
        if self._with_meta:
            _want(left.doc == right.doc and set(left.aliases) == set(right.aliases))


def _want(condition: bool) -> None:
    if not condition:
        raise _Different
