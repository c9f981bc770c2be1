"""The choice of a union's branch for a Python value.

A value may name its branch: `("name", value)` names a record, enum or fixed, and, in a union without arrays, a
primitive type. A mapping may have its record's name under `-type`. A `Branch` from a decoder goes to the branch that it
came from. Otherwise the branch that fits best wins, the first among equals: an int goes to `int` before `long` before
`double`, a float to `double` before `float`, a datetime to a timestamp, a mapping to the record with the most of its
keys.

Rules of this file: it looks at values and never writes bytes.
"""

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import TypeGuard

from strata.serdes.avro.logical_types import Branch
from strata.serdes.avro.raw_values import PYTHON_TYPES, TYPE_MARK, lowering
from strata.serdes.avro.schema import MISSING, Array, Enum, Fixed, Kind, Map, Node, Primitive, Record, Union, describe
from strata.serdes.errors import EncodeError, any_of, did_you_mean, expected

__all__ = ["Explain", "chooser", "fit", "takes_null"]

Explain = Callable[[Node, object], EncodeError | None]
"""Returns the error of a value that does not fit a type, with the path inside the value; None if it fits."""

_DEEPEST_LOOK = 20
_IN_BRANCH = "(in the branch"
_BYTES = (bytes, bytearray, memoryview)
_INT, _LONG = 2**31, 2**63

# How well a value fits, from not at all to exactly.
_NO, _ROUNDED, _WIDER, _WIDE, _RIGHT, _EXACT = range(6)


def takes_null(node: Node) -> bool:
    """Return whether None is a value of this type."""
    branches = node.branches if isinstance(node, Union) else (node,)
    return any(isinstance(branch, Primitive) and branch.kind is Kind.NULL for branch in branches)


def chooser(
    union: Union, explain: Explain | None = None, *, round_times: bool = False, first: bool = False
) -> Callable[[object], tuple[int, object]]:
    """Return a function from a value to the position of its branch and the value without its branch name.

    Args:
        union: the union.
        explain: says what is wrong with a value in the branch that it resembles most.
        round_times: let texts of times fit a coarser unit, if they fit nothing else.
        first: choose as fastavro does: the first branch besides records that fits, where a float gives way to a double
            behind it, else the record with the most keys.

    Raises:
        EncodeError: From the returned function, if the value fits no branch or names an unknown one.
    """
    branches = union.branches
    names = {
        name: index
        for index, branch in enumerate(branches)
        if isinstance(branch, Record | Enum | Fixed)
        for name in (branch.simple_name, branch.name)
    }
    others = [at for at, branch in enumerate(branches) if not isinstance(branch, Record)]
    kinds = [branch.kind if isinstance(branch, Primitive) else None for branch in branches]
    doubles = {}  # the double behind a float, which takes its place
    if {Kind.FLOAT, Kind.DOUBLE} <= set(kinds) and kinds.index(Kind.FLOAT) < kinds.index(Kind.DOUBLE):
        doubles[kinds.index(Kind.FLOAT)] = kinds.index(Kind.DOUBLE)
    if not any(isinstance(branch, Array) for branch in branches):
        names = {str(branch.kind): at for at, branch in enumerate(branches) if isinstance(branch, Primitive)} | names

    def choose(value: object) -> tuple[int, object]:
        if isinstance(value, Branch):
            if 0 <= value.position < len(branches):
                return value
            raise EncodeError(f"expected a branch of the union from 0 to {len(branches) - 1}, got {value.position}")
        if type(value) is tuple and len(value) == 2 and isinstance(value[0], str) and value[0] in names:
            return names[value[0]], value[1]
        fits = [fit(branch, value) for branch in branches]
        best = max(fits, default=_NO)
        if first and (plain := [at for at in others if fits[at]]):
            return doubles.get(plain[0], plain[0]), value
        if best == _NO and round_times:  # a finer branch comes first, since it loses nothing
            fits = [fit(branch, value, round_times=True) for branch in branches]
            best = max(fits, default=_NO)
        if best == _NO:
            raise _misfit(union, names, value, explain)
        return fits.index(best), value

    return choose


def _misfit(union: Union, names: Mapping[str, int], value: object, explain: Explain | None) -> EncodeError:
    """Return the error for a value that fits no branch."""
    stated = _stated(union, value)
    if stated is not None and stated not in names:
        return EncodeError(f"expected {_listed(union)}, got the name {stated[:40]!r}{did_you_mean(stated, names)}")
    likeness, branch = max(((_likeness(branch, value), branch) for branch in union.branches), key=lambda pair: pair[0])
    error = explain(branch, value) if explain is not None and likeness else None
    if error is None:
        return expected(_listed(union), value)
    where = "" if _IN_BRANCH in error.detail else f" {_IN_BRANCH} {describe(branch)} of the union)"
    return EncodeError(f"{error.detail}{where}", path=error.path)


def _stated(union: Union, value: object) -> str | None:
    """Return the branch name that a value carries."""
    stated = value.get(TYPE_MARK) if isinstance(value, Mapping) else None
    if type(value) is tuple and len(value) == 2 and not any(isinstance(branch, Array) for branch in union.branches):
        stated = value[0]
    return stated if isinstance(stated, str) else None


def _listed(union: Union) -> str:
    return any_of([describe(branch) for branch in union.branches]) or "a branch of an empty union"


def _likeness(node: Node, value: object) -> int:
    """Return how much a value that does not fit a type resembles its values."""
    match node:
        case Record() if isinstance(value, Mapping):
            stated = value.get(TYPE_MARK) in (node.name, node.simple_name)
            return 2 + sum(field.name in value for field in node.fields) + 1000 * stated
        case Map():
            return int(isinstance(value, Mapping))
        case Array():
            return int(_is_sequence(value))
        case Enum():
            return int(isinstance(value, str | enum.Enum))
        case Fixed():
            return int(isinstance(value, _BYTES))
        case Primitive(logical=None):
            return int(node.kind in (Kind.INT, Kind.LONG) and type(value) is int) * (1 + (node.kind is Kind.LONG))
        case Primitive(logical=logical) if logical is not None:
            kinds = PYTHON_TYPES.get(logical.name, ())
            return 2 * isinstance(value, kinds) + isinstance(value, date | time | str)
    return 0


def fit(node: Node, value: object, depth: int = 0, *, round_times: bool = False) -> int:
    """Return how well a value fits a type; 0 is not at all."""
    if depth > _DEEPEST_LOOK:
        return _RIGHT
    match node:
        case Primitive():
            return _fit_logical(node, value, round_times=round_times) or _fit_primitive(node.kind, value)
        case Fixed():
            if isinstance(value, _BYTES):
                return _RIGHT if len(value) == node.size else _NO
            return _fit_logical(node, value, round_times=round_times)
        case Enum():
            return _RIGHT if isinstance(value, str) and value in node.symbols else _NO
        case Array():
            return _fit_all(node.items, value, depth, round_times=round_times) if _is_sequence(value) else _NO
        case Map():
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                return _NO
            return _fit_all(node.values, value.values(), depth, round_times=round_times)
        case Record():
            return _fit_record(node, value, depth, round_times=round_times) if isinstance(value, Mapping) else _NO
        case Union():
            return max(
                (fit(branch, value, depth + 1, round_times=round_times) for branch in node.branches), default=_NO
            )


def _fit_all(node: Node, values: Iterable[object], depth: int, *, round_times: bool) -> int:
    return _RIGHT if all(fit(node, value, depth + 1, round_times=round_times) for value in values) else _NO


def _fit_record(record: Record, value: Mapping[str, object], depth: int, *, round_times: bool) -> int:
    """Return the fit of a mapping: the more of its keys are fields, the better."""
    stated = value.get(TYPE_MARK)
    if stated is not None and stated not in (record.name, record.simple_name):
        return _NO
    shared = 0
    for field in record.fields:
        if field.name in value:
            if fit(field.type, value[field.name], depth + 1, round_times=round_times) == _NO:
                return _NO
            shared += 1
        elif field.default is MISSING and not takes_null(field.type):
            return _NO
    return _RIGHT + shared


def _fit_logical(node: Primitive | Fixed, value: object, *, round_times: bool) -> int:
    """Return how well a value fits a logical type.

    A value of its Python type that cannot be stored fits a little, so that the encoder rejects it with the reason
    instead of writing it as another type.
    """
    wanted = PYTHON_TYPES.get(node.logical.name) if node.logical is not None else None
    if wanted is None or not isinstance(value, (wanted, str)):
        return _NO
    lower = lowering(node.logical, node.size if isinstance(node, Fixed) else None, round_times=round_times)
    try:
        is_stored = lower is not None and lower(value) is not value
    except (EncodeError, ArithmeticError, ValueError):
        is_stored = False
    if isinstance(value, str):
        return _ROUNDED if is_stored else _NO
    if not is_stored:
        return _ROUNDED if wanted is date and isinstance(value, datetime) else _WIDER
    return _EXACT


def _fit_primitive(kind: Kind, value: object) -> int:
    match value:
        case None:
            return _RIGHT if kind is Kind.NULL else _NO
        case bool():
            return _RIGHT if kind is Kind.BOOLEAN else _NO
        case str():
            return _RIGHT if kind is Kind.STRING else _NO
        case bytes() | bytearray() | memoryview():
            return _RIGHT if kind is Kind.BYTES else _NO
        case float():
            return {Kind.DOUBLE: _RIGHT, Kind.FLOAT: _ROUNDED}.get(kind, _NO)
    return _fit_number(kind, value)


def _fit_number(kind: Kind, value: object) -> int:
    if not hasattr(value, "__index__"):
        return _ROUNDED if hasattr(value, "__float__") and kind in (Kind.FLOAT, Kind.DOUBLE) else _NO
    number = value.__index__()
    ranks = {
        Kind.INT: _RIGHT if -_INT <= number < _INT else _NO,
        Kind.LONG: _WIDE if -_LONG <= number < _LONG else _NO,
        Kind.DOUBLE: _WIDER,
        Kind.FLOAT: _ROUNDED,
    }
    return ranks.get(kind, _NO)


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)
