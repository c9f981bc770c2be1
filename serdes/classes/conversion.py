"""Objects as plain values, and back: functions compiled from a shape, as encoders are from a schema.

Rules of this file: it writes source from shapes. Names of attributes are identifiers, since Python has taken them;
names of a schema appear as string literals only.
"""

import base64
import dataclasses
import datetime
import inspect
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from strata.serdes.classes.shapes import Choice, Items, Member, Object, Scalar, Shape, Symbols, Values
from strata.serdes.errors import EncodeError
from strata.serdes.model import JSON

__all__ = ["argument_of", "from_plain", "has_record_choices", "takes_positions", "to_plain"]

_Convert = Callable[..., object]
_JSON_LOWER: Final = {
    "datetime": "{}.isoformat()",
    "datetime-millis": "{}.isoformat(timespec='milliseconds')",
    "local": "{}.isoformat()",
    "local-millis": "{}.isoformat(timespec='milliseconds')",
    "date": "{}.isoformat()",
    "time": "{}.isoformat()",
    "time-millis": "{}.isoformat(timespec='milliseconds')",
    "uuid": "str({})",
    "decimal": "format({}, 'f')",
    "bytes": "b64encode({}).decode()",
    "fixed": "b64encode({}).decode()",
}
_JSON_LIFT: Final = {
    "datetime": "datetime.fromisoformat({})",
    "datetime-millis": "datetime.fromisoformat({})",
    "local": "datetime.fromisoformat({})",
    "local-millis": "datetime.fromisoformat({})",
    "date": "date.fromisoformat({})",
    "time": "time.fromisoformat({})",
    "time-millis": "time.fromisoformat({})",
    "uuid": "UUID({})",
    "decimal": "Decimal({})",
    "bytes": "b64decode({})",
    "fixed": "b64decode({})",
}
_NAMES: Final = {
    "new": object.__new__,
    "datetime": datetime.datetime,
    "date": datetime.date,
    "time": datetime.time,
    "UUID": UUID,
    "Decimal": Decimal,
    "b64encode": base64.b64encode,
    "b64decode": base64.b64decode,
}


def to_plain(shape: Shape, schema_format: str) -> _Convert:
    """Return the function from an object to the value that an encoder of the format takes."""
    return _Writer(schema_format, is_lowering=True).function(shape)


def from_plain(shape: Shape, schema_format: str) -> _Convert:
    """Return the function from a decoded value to an object; see `has_record_choices` for unions."""
    return _Writer(schema_format, is_lowering=False).function(shape)


def has_record_choices(shape: Shape) -> bool:
    """Return whether a union has classes as branches, whose values must be decoded with their names."""
    seen: set[int] = set()
    todo: list[Shape] = [shape]
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        match part:
            case Choice():
                if sum(isinstance(branch, Object) for branch in part.branches) > 1:
                    return True
                todo += part.branches
            case Items():
                todo.append(part.item)
            case Values():
                todo.append(part.value)
            case Object():
                todo += [member.shape for member in part.members]
    return False


class _Writer:
    """Writes one function for each class, and expressions for the rest."""

    def __init__(self, schema_format: str, *, is_lowering: bool) -> None:
        self._is_json, self._is_lowering = schema_format == JSON, is_lowering
        self._names: dict[str, Any] = dict(_NAMES)
        self._functions: dict[int, str] = {}
        self._source: list[str] = []
        self._variables = 0

    def function(self, shape: Shape) -> _Convert:
        expression = self._expression(shape, "value")
        whole = expression.removesuffix("(value)")
        if whole not in self._functions.values():
            whole = "convert"
            self._source.append(f"def convert(value, _=None):\n    return {expression}")
        exec(compile("\n".join(self._source), "<class conversion>", "exec"), self._names)  # noqa: S102 - our own source
        convert: _Convert = self._names[whole]
        return convert

    def _constant(self, value: object) -> str:
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def _variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _expression(self, shape: Shape, name: str) -> str:
        match shape:
            case Scalar():
                table = (_JSON_LOWER if self._is_lowering else _JSON_LIFT) if self._is_json else {}
                return table.get(shape.kind, "{}").format(name)
            case Symbols():
                return self._symbol(shape, name)
            case Items():
                return self._items(shape, name)
            case Values():
                inner = self._variable()
                value = self._expression(shape.value, inner)
                return name if value == inner else f"{{k: {value} for k, {inner} in {name}.items()}}"
            case Choice():
                return self._choice(shape, name)
            case Object():
                if self._is_lowering and name.isidentifier() and self._is_flat(shape):
                    return self._display(shape.members, name + ".{}")
                return f"{self._object(shape)}({name})"
        raise AssertionError(shape)

    def _symbol(self, shape: Symbols, name: str) -> str:
        if shape.cls is None:
            return name
        if self._is_lowering:
            return f"{name}.{'value' if shape.by_value else 'name'}"
        members = {member.value if shape.by_value else member.name: member for member in shape.cls}
        return f"{self._constant(members)}[{name}]"

    def _items(self, shape: Items, name: str) -> str:
        inner = self._variable()
        value = self._expression(shape.item, inner)
        if self._is_lowering:
            return name if value == inner and shape.make is list else f"[{value} for {inner} in {name}]"
        listed = name if value == inner else f"[{value} for {inner} in {name}]"
        return listed if shape.make is list else f"{self._constant(shape.make)}({listed})"

    def _choice(self, shape: Choice, name: str) -> str:
        others = [branch for branch in shape.branches if not (isinstance(branch, Scalar) and branch.kind == "null")]
        if len(others) == 1:
            value = self._expression(others[0], name)
            return value if value == name else f"(None if {name} is None else {value})"
        if all(self._expression(branch, name) == name for branch in others):
            return name
        branches = [
            (branch, _Writer(JSON if self._is_json else "", is_lowering=self._is_lowering)) for branch in others
        ]
        converted = [(branch, writer.function(branch)) for branch, writer in branches]
        choose = _lower_choice if self._is_lowering else _lift_choice
        return f"{self._constant(choose(converted, is_json=self._is_json))}({name})"

    def _object(self, shape: Object) -> str:
        known = self._functions.get(id(shape))
        if known is not None:
            return known
        function = self._functions[id(shape)] = f"f{len(self._functions)}"
        write = self._lowered if self._is_lowering else self._lifted
        self._source.append(f"def {function}(o, _=None):\n{write(shape)}")  # `_` is the record's context
        return function

    def _is_flat(self, shape: Object) -> bool:
        """Return whether objects of a class always have all fields, and hold no objects."""
        return not shape.is_dict and not any(
            isinstance(member.shape, Object | Items | Values | Choice) or (self._is_json and member.is_absent)
            for member in shape.members
        )

    def _display(self, members: list[Member], get: str) -> str:
        values = (
            f"{member.name!r}: {self._expression(member.shape, get.format(member.attribute))}" for member in members
        )
        return f"{{{', '.join(values)}}}"

    def _lowered(self, shape: Object) -> str:
        get = "o[{!r}]" if shape.is_dict else "o.{}"
        maybe = [member for member in shape.members if self._is_json and member.is_absent]
        always = [
            member
            for member in shape.members
            if (not shape.is_dict or member.attribute in shape.required) and member not in maybe
        ]
        lines = [f"    d = {self._display(always, get)}"]
        for member in shape.members:
            if member in always:
                continue
            own = get.format(member.attribute)
            condition = [f"{member.attribute!r} in o"] if shape.is_dict else []
            condition += [f"{own} is not None"] if member in maybe else []
            value = self._expression(member.shape, own)
            lines.append(f"    if {' and '.join(condition)}: d[{member.name!r}] = {value}")
        return "\n".join([*lines, "    return d"])

    def _lifted(self, shape: Object) -> str:
        is_optional = shape.is_dict or self._is_json
        is_ordered = not shape.is_dict and takes_positions(shape)
        values = [self._expression(member.shape, f"o[{member.name!r}]") for member in shape.members]
        if is_optional:
            lines = ["    a = {}"]
            if is_assigned(shape):  # mostly all properties are there
                lines = ["    x = new(" + self._constant(shape.cls) + ")", "    try:"]
                lines += [f"        {line}" for line in self._assigned(shape, values)]
                lines += ["    except KeyError: a = {}", "    else: return x"]
            elif is_ordered and values:
                parts = f"({', '.join(values)},)"
                lines = ["    try:", f"        a = {parts}", "    except KeyError: a = {}"]
                lines += [f"    else: return {self._constant(shape.cls)}(*a)"]
            for member, value in zip(shape.members, values, strict=True):
                absent = (
                    f" and o[{member.name!r}] is not None"
                    if shape.is_dict and not self._is_json and member.attribute not in shape.required
                    else ""
                )
                lines.append(f"    if {member.name!r} in o{absent}: a[{argument_of(shape, member)!r}] = {value}")
            result = "a" if shape.is_dict else f"{self._constant(shape.cls)}(**a)"
            return "\n".join([*lines, f"    return {result}"])
        if is_assigned(shape):
            return "\n    ".join(
                [f"    x = new({self._constant(shape.cls)})", *self._assigned(shape, values), "return x"]
            )
        if is_ordered:
            arguments = ", ".join(values)
        else:
            pairs = zip(shape.members, values, strict=True)
            arguments = "**{" + ", ".join(f"{argument_of(shape, member)!r}: {value}" for member, value in pairs) + "}"
        return f"    return {self._constant(shape.cls)}({arguments})"

    def _assigned(self, shape: Object, values: list[str]) -> list[str]:
        """Return what the class's own `__init__` does, without its call."""
        return [f"x.{member.attribute} = {value}" for member, value in zip(shape.members, values, strict=True)]


def is_assigned(shape: Object) -> bool:
    """Return whether a class is a dataclass whose construction does nothing but assign its fields."""
    cls: type = shape.cls
    if not dataclasses.is_dataclass(cls) or type(cls) is not type or hasattr(cls, "__post_init__"):
        return False
    if (cls.__new__, cls.__setattr__) != (object.__new__, object.__setattr__) or not takes_positions(shape):
        return False
    # it is so if `__init__` is the one that is made for these fields, and not the user's own
    own = [(field.name, object, _like(field)) for field in dataclasses.fields(cls)]
    twin: Any = dataclasses.make_dataclass("Twin", own)
    made, init = twin.__init__.__code__, getattr(cls.__init__, "__code__", None)
    return init is not None and (made.co_code, made.co_names) == (init.co_code, init.co_names)


def _like(field: "dataclasses.Field[object]") -> object:
    """Return a field with a default of the same kind."""
    if field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=list)
    return dataclasses.field() if field.default is dataclasses.MISSING else dataclasses.field(default=None)


def argument_of(shape: Object, member: Member) -> str:
    """Return the name by which a class takes a field: pydantic's alias, or the attribute."""
    info = getattr(shape.cls, "model_fields", {}).get(member.attribute)
    alias = getattr(info, "validation_alias", None) or getattr(info, "alias", None)
    return alias if isinstance(alias, str) else member.attribute


def takes_positions(shape: Object) -> bool:
    """Return whether a class takes all its fields in their order, without their names."""
    try:
        parameters = list(inspect.signature(shape.cls).parameters.values())
    except (TypeError, ValueError):
        return False
    names = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    return names == [member.attribute for member in shape.members] == [parameter.name for parameter in parameters]


def _lower_choice(branches: list[tuple[Shape, _Convert]], *, is_json: bool) -> _Convert:
    by_class = {branch.cls: (branch, convert) for branch, convert in branches if isinstance(branch, Object | Symbols)}
    rest = [convert for branch, convert in branches if not isinstance(branch, Object | Symbols)]

    def lower(value: object) -> object:
        lowering = by_class.get(type(value))
        if lowering is None:
            for convert in rest:
                try:
                    return convert(value)
                except (AttributeError, TypeError, ValueError):
                    continue
            if value is None or isinstance(value, bool | int | float | str | bytes | list | dict | Decimal | UUID):
                return value
            expected = ", ".join(getattr(cls, "__name__", str(cls)) for cls in by_class)
            raise EncodeError(f"expected one of {expected}, got {type(value).__name__}")
        branch, convert = lowering
        plain = convert(value)
        return plain if is_json else (branch.name, plain)

    return lower


def _lift_choice(branches: list[tuple[Shape, _Convert]], *, is_json: bool) -> _Convert:
    by_name = {branch.name: convert for branch, convert in branches if isinstance(branch, Object)}
    rest = [convert for branch, convert in branches if not isinstance(branch, Object)]

    def lift(value: object) -> object:
        if isinstance(value, tuple) and value and value[0] in by_name:
            return by_name[value[0]](value[1])
        converts = [*by_name.values(), *rest] if is_json or isinstance(value, dict) else rest
        for convert in converts:
            try:
                return convert(value)
            except (AttributeError, KeyError, TypeError, ValueError):
                continue
        return value

    return lift
