"""What a type hint says beside the Python type: `Annotated[int, Int32]`, `Annotated[str, Field(doc="…")]`.

Rules of this file: values only; no class is looked at.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

__all__ = ["Absent", "Digits", "Field", "Fixed", "Float32", "Int32", "Local", "Millis", "Named", "Wire", "name_of"]
__all__ += ["named"]

_C = TypeVar("_C", bound=type)


@dataclass(frozen=True, slots=True)
class Field:
    """What a schema says of a field.

    Attributes:
        doc: its documentation.
        name: its name in the schema, where that is not the attribute's.
        aliases: its former names.
        number: its number in Protobuf; without one it follows the field before it. On a branch of a union, the number
            of that branch.
    """

    doc: str = ""
    name: str = ""
    aliases: tuple[str, ...] = ()
    number: int = 0


@dataclass(frozen=True, slots=True)
class Digits:
    """The precision and scale of a Decimal."""

    precision: int
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bytes of a fixed size; `name` is the name of the type."""

    size: int
    name: str


@dataclass(frozen=True, slots=True)
class Wire:
    """The type of an int or float in Protobuf, such as `uint32` or `sint64`."""

    type: str


class _Word:
    """A marker without parameters."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


Int32: Final = _Word("Int32")
"""An integer of 32 bits; without it an int has 64."""
Float32: Final = _Word("Float32")
"""A float of 32 bits; without it a float has 64."""
Local: Final = _Word("Local")
"""A datetime without a zone; without it a datetime is a moment."""
Millis: Final = _Word("Millis")
"""A time or timestamp in milliseconds; without it in microseconds."""


Absent: Final = _Word("Absent")
"""In JSON, a None is a property that is not there; without it the property is null."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a schema says of a class.

    Attributes:
        name: the full name of the record or enum, with its namespace.
        doc: the documentation; by default the class's docstring.
        aliases: former names.
        default: the symbol that stands for an unknown one, for an enum.
        prefix: what the names of an enum's values begin with in Protobuf; by default the enum's name in capitals.
        is_open: whether an object in JSON may have other properties, which are then ignored.
    """

    name: str = ""
    doc: str | None = None
    aliases: tuple[str, ...] = ()
    default: str | None = None
    prefix: str | None = None
    is_open: bool = False


_NAMES: "weakref.WeakKeyDictionary[type, Named]" = weakref.WeakKeyDictionary()


def named(
    name: str = "",
    *,
    doc: str | None = None,
    aliases: tuple[str, ...] = (),
    default: str | None = None,
    prefix: str | None = None,
    is_open: bool = False,
) -> Callable[[_C], _C]:
    """Return a decorator that says what a schema calls a class; see `Named`."""

    def note(cls: _C) -> _C:
        _NAMES[cls] = Named(name, doc, aliases, default, prefix, is_open)
        return cls

    return note


def name_of(cls: object) -> Named:
    """Return what the decorator `named` says of a class."""
    return _NAMES.get(cls, Named()) if isinstance(cls, type) else Named()
