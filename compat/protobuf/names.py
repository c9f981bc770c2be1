"""Which type a name means.

A name is looked for in the message where it stands, then outward, then as a full name. Known are the types of the
file itself, of every referenced file, directly named or not, and of the files that need no reference; whether the
file imports them does not matter.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from compat.protobuf.model import Enum, Extend, Field, File, Message, TypeDefinition
from compat.schema import SchemaParseError

__all__ = ["LOCAL", "Known", "Names", "inside"]

_MOST_PARTS: Final = 200
LOCAL: Final = ""  # the identity of types that the file defines itself


@dataclass(frozen=True, slots=True)
class Known:
    """A type that a name can mean."""

    full: str
    relative: str  # without the package of its file
    definition: TypeDefinition
    identity: str  # of the reference that it comes from; LOCAL for the file itself

    @property
    def is_enum(self) -> bool:
        """Whether it is an enum."""
        return isinstance(self.definition, Enum)


class Names:
    """The types and the extension fields of one or several files, under their full names."""

    def __init__(self, outer: "Names | None" = None):
        self._types: dict[str, Known] = {}
        self._extensions: dict[str, Field] = {}
        self._outer = outer

    def add(self, file: File, identity: str) -> None:
        """Add what a file defines; of two definitions of a name the first one stays."""
        package = file.package or ""
        _check_scope(package)
        self._add_extends(file.extends, package)
        self._add_types(file.types, package, "", identity)

    def _add_types(self, types: Iterable[TypeDefinition], scope: str, relative: str, identity: str) -> None:
        for definition in types:
            full, short = inside(scope, definition.name), inside(relative, definition.name)
            self._types.setdefault(full, Known(full, short, definition, identity))
            if isinstance(definition, Message):
                _check_scope(full)
                self._add_extends(definition.extends, full)
                self._add_types(definition.types, full, short, identity)

    def _add_extends(self, extends: Iterable[Extend], scope: str) -> None:
        for extend in extends:
            for field in extend.fields:
                self._extensions.setdefault(inside(scope, field.name), field)

    def type_of(self, name: str, scope: str) -> Known | None:
        """The type that a name means in a scope, which is a full name too."""
        for candidate in _candidates(name, scope):
            known = self._type(candidate)
            if known is not None:
                return known
        return None

    def extension_of(self, name: str, scope: str) -> str | None:
        """The full name of the extension field that the name of an option means."""
        for candidate in _candidates(name, scope):
            if self._has_extension(candidate):
                return candidate
        return None

    def field_of(self, extension: str) -> Field | None:
        """The extension field of a full name."""
        field = self._extensions.get(extension)
        return self._outer.field_of(extension) if field is None and self._outer else field

    def _type(self, full: str) -> Known | None:
        known = self._types.get(full)
        return self._outer._type(full) if known is None and self._outer else known

    def _has_extension(self, full: str) -> bool:
        return full in self._extensions or (self._outer is not None and self._outer._has_extension(full))


def inside(scope: str, name: str) -> str:
    """The full name of what stands in a scope."""
    return f"{scope}.{name}" if scope else name


def _check_scope(scope: str) -> None:
    """Every name in a scope is looked for at each of its parts: there must not be thousands."""
    if scope.count(".") > _MOST_PARTS:
        raise SchemaParseError(f"A name of more than {_MOST_PARTS} parts: {scope[:60]}...")


def _candidates(name: str, scope: str) -> Iterator[str]:
    if name.startswith("."):
        yield name[1:]
        return
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name
