"""A class as a shape: what a schema can be made from, and values can be converted by.

Dataclasses, pydantic models, attrs classes, msgspec structs and TypedDicts are read through the standard library's
annotations and the marks that each library leaves on a class; none of them is imported.

Rules of this file: classes in, shapes out; no schema and no value.
"""

import dataclasses
import datetime
import enum
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Final, get_args, get_origin
from uuid import UUID

from strata.serdes.classes.markers import Absent, Digits, Field, Fixed, Float32, Int32, Local, Millis, Wire, name_of
from strata.serdes.errors import SchemaError

__all__ = ["MISSING", "Choice", "Items", "Member", "Object", "Scalar", "Shape", "Symbols", "Values", "shape_of"]

MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts; `kind` is the name of the Python type, or of the marker; `wire` its type in Protobuf."""

    kind: str
    numbers: tuple[int, ...] = ()
    name: str = ""
    wire: str = ""


@dataclass(eq=False, slots=True)
class Symbols:
    """An enum; `cls` is None for a Literal.

    Attributes:
        name: its full name.
        symbols: its symbols.
        cls: the class.
        by_value: whether the symbols are the values of the members, instead of their names.
        doc: its documentation.
        aliases: its former names.
        default: the symbol that stands for an unknown one.
        prefix: what the names of its values begin with in Protobuf.
        numbers: the numbers of its symbols, if its values are numbers that Protobuf has.
    """

    name: str
    symbols: tuple[str, ...]
    cls: type[enum.Enum] | None = None
    by_value: bool = True
    doc: str = ""
    aliases: tuple[str, ...] = ()
    default: str | None = None
    prefix: str | None = None
    numbers: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class Items:
    """A list, tuple, set or frozenset."""

    item: "Shape"
    make: type = list


@dataclass(eq=False, slots=True)
class Values:
    """A dict with string keys."""

    value: "Shape"


@dataclass(eq=False, slots=True)
class Choice:
    """A union; `fields` has the annotation of each branch."""

    branches: tuple["Shape", ...]
    fields: tuple[Field, ...] = ()


@dataclass(eq=False, slots=True)
class Member:
    """A field of a class.

    Attributes:
        attribute: its name in Python.
        name: its name in the schema.
        shape: its type.
        default: its default, `MISSING` if it has none.
        doc: its documentation.
        aliases: its former names.
        number: its number in Protobuf, 0 if the class does not say.
        is_absent: whether None is a property that is not there, in JSON.
    """

    attribute: str
    name: str
    shape: "Shape"
    default: object = MISSING
    doc: str = ""
    aliases: tuple[str, ...] = ()
    number: int = 0
    is_absent: bool = False


@dataclass(eq=False, slots=True)
class Object:
    """A class with fields.

    Attributes:
        cls: the class.
        name: the full name of the record.
        members: its fields.
        doc: its documentation.
        aliases: former names of the record.
        is_dict: whether its values are dicts, as those of a TypedDict.
        required: for a TypedDict, the names of the keys that are always there.
        is_open: whether an object in JSON may have other properties.
    """

    cls: Any
    name: str
    members: list[Member] = field(default_factory=list)
    doc: str = ""
    aliases: tuple[str, ...] = ()
    is_dict: bool = False
    required: frozenset[str] = frozenset()
    is_open: bool = False


Shape = Scalar | Symbols | Items | Values | Choice | Object

_SCALARS: Final[Mapping[object, str]] = {
    type(None): "null",
    None: "null",
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    bytes: "bytes",
    datetime.datetime: "datetime",
    datetime.date: "date",
    datetime.time: "time",
    UUID: "uuid",
}
_MARKED: Final = {("int", Int32): "int32", ("float", Float32): "float32"}
_MILLIS: Final = {"datetime": "datetime-millis", "local": "local-millis", "time": "time-millis"}
_SEQUENCES: Final = {list: list, tuple: tuple, set: set, frozenset: frozenset, Sequence: list}
_DEEPEST: Final = 60


def shape_of(cls: object) -> Shape:
    """Return the shape of a class or type hint.

    Args:
        cls: a dataclass, a pydantic model, an attrs class, a msgspec struct or a TypedDict, also a generic one with its
            parameters; or any other type hint.

    Raises:
        SchemaError: If a part of it has no type in a schema; the error names the field.
    """
    return _Reader().shape(cls, {}, _name_of_class(cls), 0)


def _name_of_class(cls: object) -> str:
    return getattr(cls, "__name__", None) or str(cls)


class _Reader:
    """Reads one class with all classes in it; a class that contains itself is read once."""

    def __init__(self) -> None:
        self._known: dict[object, Object | Symbols] = {}

    def shape(self, hint: object, variables: Mapping[object, object], where: str, depth: int) -> Shape:
        if depth > _DEEPEST:
            raise SchemaError(f"{where}: the types are nested too deeply")
        hint, marks = _unwrapped(hint)
        hint = variables.get(hint, hint) if isinstance(hint, typing.TypeVar) else hint
        hint, more = _unwrapped(hint)
        marks = (*marks, *more)
        if (scalar := self._scalar(hint, marks)) is not None:
            return scalar
        origin, arguments = get_origin(hint), get_args(hint)
        arguments = tuple(
            variables.get(argument, argument) if isinstance(argument, typing.TypeVar) else argument
            for argument in arguments
        )
        if origin is typing.Literal:
            return _literal(arguments, where)
        if origin in (typing.Union, types.UnionType):
            also = tuple(mark for mark in marks if not isinstance(mark, Field))  # these hold for all branches
            hints = [
                Annotated[(branch, *also)] if also and branch is not type(None) else branch for branch in arguments
            ]
            branches = tuple(self.shape(branch, variables, where, depth + 1) for branch in hints)
            return Choice(branches, tuple(_field_of(_unwrapped(branch)[1]) for branch in arguments))
        if origin in _SEQUENCES or hint in _SEQUENCES:
            return self._items(origin or hint, arguments, variables, where, depth)
        if origin in (dict, Mapping):
            if not arguments or arguments[0] is not str:
                raise SchemaError(f"{where}: expected str as keys of a map, got {hint}")
            return Values(self.shape(arguments[1], variables, f"{where}{{}}", depth + 1))
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            return self._enum(hint, where)
        return self._object(hint, origin, arguments, where, depth)

    def _scalar(self, hint: object, marks: Sequence[object]) -> Scalar | None:
        for mark in marks:
            if isinstance(mark, Digits) and hint is Decimal:
                return Scalar("decimal", (mark.precision, mark.scale))
            if isinstance(mark, Fixed) and hint is bytes:
                return Scalar("fixed", (mark.size,), mark.name)
        kind = _SCALARS.get(hint) if isinstance(hint, type | None) else None
        if Local in marks and kind == "datetime":
            kind = "local"
        for mark in marks:
            kind = _MILLIS.get(kind or "", kind) if mark is Millis else kind
            if (kind, mark) in _MARKED:
                kind = _MARKED[kind, mark]  # type: ignore[index]  # it is in it
        wire = next((mark.type for mark in marks if isinstance(mark, Wire)), "")
        return None if kind is None else Scalar(kind, wire=wire)

    def _items(
        self, origin: Any, arguments: Sequence[object], variables: Mapping[object, object], where: str, depth: int
    ) -> Items:
        if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
            raise SchemaError(f"{where}: a tuple of several types has no type in a schema; use tuple[T, ...]")
        if not arguments:
            raise SchemaError(f"{where}: expected the type of the items, such as list[int]")
        return Items(self.shape(arguments[0], variables, f"{where}[]", depth + 1), _SEQUENCES[origin])

    def _enum(self, cls: type[enum.Enum], where: str) -> Symbols:
        known = self._known.get(cls)
        if isinstance(known, Symbols):
            return known
        naming = name_of(cls)
        values = [member.value for member in cls]
        by_value = all(isinstance(value, str) and value.isidentifier() for value in values)
        symbols = tuple(values) if by_value else tuple(member.name for member in cls)
        if not symbols:
            raise SchemaError(f"{where}: the enum {cls.__name__} has no members")
        doc = naming.doc if naming.doc is not None else _doc_of(cls)
        name, numbers = naming.name or cls.__name__, () if by_value else _numbers(values)
        made = Symbols(name, symbols, cls, by_value, doc, naming.aliases, naming.default, naming.prefix, numbers)
        self._known[cls] = made
        return made

    def _object(self, hint: object, origin: object, arguments: Sequence[object], where: str, depth: int) -> Object:
        cls = origin if isinstance(origin, type) else hint
        fields = _fields_of(cls)
        if fields is None or not isinstance(cls, type):
            raise SchemaError(f"{where}: {hint!r} has no type in a schema")
        key = (cls, tuple(map(str, arguments)))
        known = self._known.get(key)
        if isinstance(known, Object):
            return known
        naming = name_of(cls)
        suffix = "".join(f"_{_name_of_class(argument)}" for argument in arguments)
        doc = naming.doc if naming.doc is not None else _doc_of(cls)
        is_dict = _is_typed_dict(cls)
        required = frozenset(getattr(cls, "__required_keys__", ())) if is_dict else frozenset()
        name = (naming.name or cls.__name__) + suffix
        made = Object(cls, name, [], doc, naming.aliases, is_dict, required, naming.is_open)
        self._known[key] = made
        bound = dict(zip(getattr(cls, "__parameters__", ()) or _parameters(cls), arguments, strict=False))
        for attribute, type_, default, notes in fields:
            inner = f"{where}.{attribute}"
            _, marks = _unwrapped(type_)
            about = _field_of((*marks, *notes))
            shape = self.shape(type_, bound, inner, depth + 1)
            made.members.append(
                Member(
                    attribute,
                    about.name or attribute,
                    shape,
                    default,
                    about.doc or _description(marks, notes),
                    about.aliases,
                    about.number,
                    Absent in marks or Absent in notes,
                )
            )
        return made


def _parameters(cls: object) -> tuple[object, ...]:
    return tuple(getattr(cls, "__pydantic_generic_metadata__", {}).get("parameters", ()))


def _unwrapped(hint: Any) -> tuple[Any, tuple[object, ...]]:
    """Return a type without `Annotated`, `Required`, `NotRequired`, and what it is annotated with."""
    marks: tuple[object, ...] = ()
    while True:
        if typing.get_origin(hint) is typing.Annotated:
            marks += tuple(hint.__metadata__)
            hint = hint.__origin__
        elif get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        else:
            return hint, marks


def _field_of(marks: Sequence[object]) -> Field:
    return next((mark for mark in marks if isinstance(mark, Field)), Field())


def _numbers(values: Sequence[Any]) -> tuple[int, ...]:
    """Return the values of an enum that are the numbers of its symbols in Protobuf; none if they cannot be."""
    are_numbers = all(type(value) is int and -(2**31) <= value < 2**31 for value in values)
    return tuple(values) if are_numbers else ()


def _literal(arguments: Sequence[Any], where: str) -> Symbols:
    if not all(isinstance(argument, str) and argument.isidentifier() for argument in arguments):
        raise SchemaError(f"{where}: expected names as values of the Literal, got {list(arguments)}")
    return Symbols("_".join(["Literal", *arguments]), tuple(arguments))


def _description(marks: Sequence[object], notes: Sequence[object]) -> str:
    """Return what `typing_extensions.Doc`, `msgspec.Meta` or `pydantic.Field` says of a field."""
    for mark in (*marks, *notes):
        for name in ("documentation", "description"):
            text = getattr(mark, name, None)
            if isinstance(text, str):
                return text
    return ""


def _doc_of(cls: type) -> str:
    doc = cls.__dict__.get("__doc__") or ""
    is_made = doc.startswith(f"{cls.__name__}(") or doc == getattr(enum.Enum, "__doc__", None)
    return "" if is_made else " ".join(doc.split())


_Found = tuple[str, object, object, tuple[object, ...]]
"""A field: its attribute, type hint, default, and what the library keeps of it."""


def _is_typed_dict(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def _fields_of(cls: object) -> list[_Found] | None:
    """Return the fields of a class; None if it is not one that has them."""
    if not isinstance(cls, type):
        return None
    read = next((read for is_it, read in _LIBRARIES if is_it(cls)), None)
    return None if read is None else read(cls, _hints(cls))


def _hints(cls: type) -> dict[str, object]:
    try:
        return typing.get_type_hints(
            cls, vars(sys.modules.get(cls.__module__, types)), {cls.__name__: cls}, include_extras=True
        )
    except NameError as error:
        raise SchemaError(f"{cls.__name__}: a type hint cannot be resolved: {error}") from None


def _of_dataclass(cls: type, hints: Mapping[str, object]) -> list[_Found]:
    attributes: list[_Found] = []
    for field_ in dataclasses.fields(cls):
        default = field_.default
        if field_.default_factory is not dataclasses.MISSING:
            default = field_.default_factory()
        notes = tuple(field_.metadata.get(key) for key in ("strata",) if key in field_.metadata)
        attributes.append(
            (field_.name, hints[field_.name], MISSING if default is dataclasses.MISSING else default, notes)
        )
    return attributes


def _of_pydantic(cls: Any, hints: Mapping[str, object]) -> list[_Found]:
    attributes: list[_Found] = []
    for name, info in cls.model_fields.items():
        default = MISSING if info.is_required() else info.get_default(call_default_factory=True)
        hint = hints.get(name, info.annotation)
        attributes.append((name, hint, default, (info, *info.metadata)))
    return attributes


def _of_attrs(cls: Any, hints: Mapping[str, object]) -> list[_Found]:
    attributes: list[_Found] = []
    for attribute in cls.__attrs_attrs__:
        default: Any = attribute.default
        if type(default).__name__ == "_Nothing" or repr(default) == "NOTHING":
            default = MISSING
        elif hasattr(default, "factory"):
            default = default.factory()
        notes = tuple(attribute.metadata.get(key) for key in ("strata",) if key in attribute.metadata)
        attributes.append((attribute.name, hints.get(attribute.name, attribute.type), default, notes))
    return attributes


def _of_msgspec(cls: Any, hints: Mapping[str, object]) -> list[_Found]:
    defaults = cls.__struct_defaults__
    names = cls.__struct_fields__
    first = len(names) - len(defaults)
    attributes: list[_Found] = []
    for place, name in enumerate(names):
        default: Any = MISSING if place < first else defaults[place - first]
        if type(default).__name__ == "NoDefault" or repr(default) == "NODEFAULT":
            default = MISSING
        elif type(default).__name__ == "Factory":
            default = default.factory()
        attributes.append((name, hints[name], default, ()))
    return attributes


def _of_typed_dict(_cls: object, hints: Mapping[str, object]) -> list[_Found]:
    return [(name, hint, MISSING, ()) for name, hint in hints.items()]


_LIBRARIES: Final = (
    (lambda cls: hasattr(cls, "model_fields") and hasattr(cls, "model_validate"), _of_pydantic),
    (lambda cls: hasattr(cls, "__struct_fields__"), _of_msgspec),
    (lambda cls: hasattr(cls, "__attrs_attrs__"), _of_attrs),
    (dataclasses.is_dataclass, _of_dataclass),
    (_is_typed_dict, _of_typed_dict),
)
