"""The memory that a CEL expression may take over a value: an upper bound from its tree and the value's sizes.

CEL bounds depth and rounds, but not size: `message.replace('a', message)` squares a text, and ten nested
`[x].map(a, a + a)` turn one item into a thousand. Each part of an expression has a `Size`; calls that create a value
add its size to the total. The total for values up to some size is computed when the expression is compiled; only for
larger values it is computed per record.

All rounds of a macro are computed together. The cost of a round, f(item), is at least proportional to its item, so all
rounds cost no more than f(all items as one) + (rounds - 1) * f(nothing).

Rules of this file: the bound may be too high, never too low; nothing is evaluated.
"""

import bisect
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.wrappers_pb2 import StringValue

from strata.compat.protobuf.parser import parse
from strata.compat.protobuf.to_descriptor import file_to_descriptor
from strata.serdes.errors import RuleError

__all__ = ["MAX_BYTES", "MAX_MACROS", "Cost"]

MAX_BYTES = 256 * 1024 * 1024
"""The most bytes that an expression may take over one record."""
MAX_ROUNDS = 10_000
"""The most rounds of all macros of an expression; the library stops there."""
MAX_MACROS = 8
"""How deep macros may nest; each level doubles the time to compute their cost."""

_NODE = 32
"""Bytes of any value besides its text."""
_TREE = """syntax = "proto3";
message Any { string type_url = 1; Checked value = 2; }
message Checked { Expr expr = 4; }
message Expr { oneof kind { Const const = 3; Ident ident = 4; Select select = 5; Call call = 6; List list = 7;
  Struct struct = 8; Fold fold = 9; } }
message Const { string text = 6; bytes bytes = 7; }
message Ident { string name = 1; }
message Select { Expr operand = 1; string field = 2; bool test = 3; }
message Call { Expr target = 1; string function = 2; repeated Expr args = 3; }
message List { repeated Expr parts = 1; }
message Struct { message Entry { Expr key = 3; Expr value = 4; } repeated Entry entries = 2; }
message Fold { string item = 1; Expr range = 2; string sum = 3; Expr begin = 4; Expr step = 6; Expr result = 7; }
"""
"""The parts of cel/expr/checked.proto and syntax.proto that count here, under our own names."""


class Size(NamedTuple):
    """Upper bounds: bytes of the longest text, items of the largest list or map, bytes of the whole value."""

    text: int = 0
    items: int = 0
    whole: int = _NODE


class _Known:
    """A value of the record."""

    def __init__(self, value: object) -> None:
        self.value = value

    @functools.cached_property
    def size(self) -> Size:
        return _measured(self.value)

    @property
    def count(self) -> int:
        return len(self.value) if hasattr(self.value, "__len__") else 0

    def inner(self, name: str) -> "_Known | None":
        if isinstance(self.value, dict):
            return _Known(self.value[name]) if name in self.value else None
        known = isinstance(self.value, Message) and name in type(self.value).DESCRIPTOR.fields_by_name
        return _Known(getattr(self.value, name)) if known else None


_Found = Size | _Known
_Scope = Mapping[str, _Found]
_SCALAR = Size()
_SMALL = frozenset({int, float, bool, type(None)})
_SCALES = [0, *(2**power for power in range(10, 27))]
"""The sizes in bytes for which the cost is computed when an expression is compiled."""


def _measured(value: object) -> Size:
    if isinstance(value, str):
        return _text(len(value) if value.isascii() else 4 * len(value))
    if isinstance(value, bytes | bytearray):
        return _text(len(value))
    if isinstance(value, StringValue):
        return _measured(value.value)
    if isinstance(value, Message):
        length = type(value).ByteSize(value)
        return Size(length, length, _NODE * (length + 1))
    if isinstance(value, Mapping):
        return _together([_measured(part) for pair in value.items() for part in pair])
    if isinstance(value, Sequence):
        return _together([_measured(item) for item in value])
    return _SCALAR


def _weight(value: Any) -> int:
    """Return an upper bound of a value's bytes, quickly: most values are small."""
    python_type = type(value)
    if python_type is str:
        return _NODE + 4 * len(value)
    if python_type is dict:
        return _NODE + sum(map(_weight, value)) + sum(map(_weight, value.values()))
    if python_type is list:
        return _NODE + sum(map(_weight, value))
    return _NODE if python_type in _SMALL else _measured(value).whole


def _together(parts: Sequence[Size]) -> Size:
    """Return the size of a list or map of parts."""
    text = max((part.text for part in parts), default=0)
    items = max((part.items for part in parts), default=0)
    return Size(text, max(items, len(parts)), _NODE + sum(part.whole for part in parts))


def _largest(parts: Sequence[Size]) -> Size:
    return Size(*map(max, zip(_SCALAR, *parts, strict=True)))


def _added(parts: Sequence[Size]) -> Size:
    return Size(*map(sum, zip(*parts, strict=True)))


def _text(length: int) -> Size:
    return Size(length, 0, length + _NODE)


def _replaced(parts: Sequence[Size]) -> Size:
    return _text(parts[0].text + (parts[0].text + 1) * parts[2].text)


def _joined(parts: Sequence[Size]) -> Size:
    return _text(parts[0].whole + parts[0].items * (parts[1].text if len(parts) > 1 else 0))


def _split(parts: Sequence[Size]) -> Size:
    count = parts[0].text + 1
    return Size(parts[0].text, count, parts[0].text + (count + 1) * _NODE)


def _formatted(parts: Sequence[Size]) -> Size:
    return _text(parts[0].text + 8 * parts[1].whole + 1100 * parts[1].items)  # a number has at most 1000 digits


_GROWING: Mapping[str, Callable[[Sequence[Size]], Size]] = {
    "_+_": _added,
    "replace": _replaced,
    "join": _joined,
    "split": _split,
    "format": _formatted,
    "strings.quote": lambda parts: _text(3 * parts[0].text + 2),
    "string": lambda parts: _text(3 * parts[0].text + 64),
    "bytes": lambda parts: _text(parts[0].text),
}
"""Functions whose result may be larger than their largest argument."""
_PICKING = frozenset({"_[_]", "_?_:_", "dyn"})
"""Functions that return one of their arguments or a part of it."""
_SCALARS = frozenset(
    (
        *("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_", "_||_", "!_", "@in", "@not_strictly_false"),
        *("-_", "_-_", "_*_", "_/_", "_%_", "int", "uint", "double", "bool", "type", "timestamp", "duration"),
        *("size", "contains", "startsWith", "endsWith", "matches", "indexOf", "lastIndexOf"),
        *("isEmail", "isHostname", "isIpv4", "isIpv6", "isUri", "isUriRef", "isUuid"),
    )
)


_Tree = tuple[Any, ...]
"""A part of an expression: its kind, and the fields of that kind."""


def _tree(expr: Any, macros: int = 0) -> _Tree:
    if macros > MAX_MACROS:
        raise RuleError(f"the expression nests macros deeper than {MAX_MACROS}")
    down = functools.partial(_tree, macros=macros)
    kind = expr.WhichOneof("kind")
    match kind:
        case "const":
            return kind, _text(4 * len(expr.const.text) + len(expr.const.bytes))
        case "ident":
            return kind, expr.ident.name
        case "select":
            return kind, down(expr.select.operand), expr.select.field, expr.select.test
        case "call":
            targets = [expr.call.target] if expr.call.HasField("target") else []
            return kind, expr.call.function, [down(part) for part in (*targets, *expr.call.args)]
        case "list":
            return "made", [down(part) for part in expr.list.parts]
        case "struct":
            return "made", [down(part) for pair in expr.struct.entries for part in (pair.key, pair.value)]
        case "fold":
            fold = expr.fold
            step = _tree(fold.step, macros + 1)
            return kind, fold.item, down(fold.range), fold.sum, down(fold.begin), step, down(fold.result)
    return "const", _SCALAR


class _Spending:
    """One walk through a tree, with the bytes spent on it."""

    def __init__(self) -> None:
        self.bytes = 0

    def size(self, tree: _Tree, scope: _Scope, rounds: int) -> Size:
        cost = self.find(tree, scope, rounds)
        return cost.size if isinstance(cost, _Known) else cost

    def find(self, tree: _Tree, scope: _Scope, rounds: int) -> _Found:
        match tree:
            case "ident", name:
                return scope.get(name, _SCALAR)
            case "select", operand, field, test:
                cost = self.find(operand, scope, rounds)
                inner = cost.inner(field) if isinstance(cost, _Known) else None
                return _SCALAR if test else inner or cost
            case "call", function, parts:
                return self._called(function, [self.size(part, scope, rounds) for part in parts])
            case "made", parts:
                return self._made(_together([self.size(part, scope, rounds) for part in parts]))
            case "fold", *_:
                return self._folded(tree, scope, rounds)
        size: Size = tree[1]
        return size

    def _called(self, function: str, parts: Sequence[Size]) -> Size:
        if function in _SCALARS:
            return _SCALAR
        if function in _PICKING:
            return _largest(parts)
        return self._made(_GROWING.get(function, _largest)(parts))

    def _made(self, size: Size) -> Size:
        self.bytes += size.text + _NODE * (size.items + 1)
        return size

    def _folded(self, tree: _Tree, scope: _Scope, rounds: int) -> Size:
        _, item, over, total, begin, step, result = tree
        cost, first = self.find(over, scope, rounds), self.size(begin, scope, rounds)
        within, count = (cost.size, cost.count) if isinstance(cost, _Known) else (cost, cost.items)
        count = max(1, min(count, rounds))
        every, nothing = _Spending(), _Spending()
        all_items = Size(within.whole, within.whole // _NODE, within.whole)
        left = max(1, rounds // count)
        most = every.round(step, {**scope, item: all_items, total: first}, total, left)
        least = nothing.round(step, {**scope, item: _SCALAR, total: first}, total, left)
        self.bytes += every.bytes + (count - 1) * nothing.bytes
        summed = Size(most.text, max(most.items, first.items + count), most.whole + (count - 1) * least.whole)
        return self.size(result, {**scope, total: summed}, rounds)

    def round(self, step: _Tree, scope: _Scope, total: str, rounds: int) -> Size:
        """Return the size that a round adds; an item appended to a macro's list does not add up texts."""
        match step:
            case "call", "_?_:_", [condition, ("call", "_+_", _) as appended, *_]:
                self.size(condition, scope, rounds)
                return self.round(appended, scope, total, rounds)
            case "call", "_+_", [("ident", name), item] if name == total:
                return self._made(self.size(item, scope, rounds))
        return self.size(step, scope, rounds)


class Cost:
    """The memory that an expression may take.

    Args:
        serialized: the compiled expression, as the library serializes it.
        variables: the names of its variables.

    Raises:
        RuleError: If macros nest too deeply.
    """

    def __init__(self, serialized: bytes, variables: Sequence[str]) -> None:
        self._tree = _tree(_tree_class().FromString(serialized).value.expr)
        self._harmless = 0

        def passes(whole: int) -> bool:
            return self._spent(dict.fromkeys(variables, Size(whole, whole // _NODE, whole))) > MAX_BYTES

        fitting = bisect.bisect_left(_SCALES, True, key=passes)
        self._harmless = _SCALES[fitting - 1] if fitting else -1
        self._never = fitting == len(_SCALES)

    def check(self, data: Mapping[str, object]) -> None:
        """Check that an expression takes at most `MAX_BYTES` over some values.

        Args:
            data: the values by variable.

        Raises:
            RuleError: If it may take more.
        """
        if self._never or sum(map(_weight, data.values())) <= self._harmless:
            return
        if self._spent({name: _Known(value) for name, value in data.items()}) > MAX_BYTES:
            raise RuleError(f"the expression may need more than {MAX_BYTES >> 20} MiB for this value")

    def _spent(self, scope: _Scope) -> int:
        spending = _Spending()
        result = spending.size(self._tree, scope, MAX_ROUNDS)
        return spending.bytes + result.whole


@functools.cache
def _tree_class() -> Any:
    parsed, pool = parse(_TREE, strict=False), DescriptorPool()
    pool.AddSerializedFile(file_to_descriptor(parsed.file, parsed.names).SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("Any"))
