"""Name resolution: the type that a name means.

A name is looked up in the message that uses it, then in the enclosing scopes, then as a full name. The known types are
those of the file itself, of all directly or indirectly referenced files, and of the files that need no reference,
whether or not the file imports them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from strata.compat.protobuf.model import Enum, Extend, Field, File, Message, TypeDefinition
from strata.compat.schema import SchemaParseError

__all__ = ["LOCAL", "Known", "Names", "inside"]

_MOST_PARTS: Final = 200
LOCAL: Final = ""  # the identity of types that the file defines itself


@dataclass(frozen=True, slots=True)
class Known:
    """A type that a name can mean."""

    full: str
    relative: str  # the name without the package of its file
    definition: TypeDefinition
    identity: str  # the identity of its reference; LOCAL for the file itself
    is_proto3: bool = True  # whether its file says so: fields without a label, open enums, checked text

    @property
    def is_enum(self) -> bool:
        """Whether the type is an enum."""
        return isinstance(self.definition, Enum)


class Names:
    """The types and the extension fields of one or several files, by full name.

    Args:
        outer: Names to look up where these have no match.
    """

    def __init__(self, outer: "Names | None" = None):
        self._types: dict[str, Known] = {}
        self._extensions: dict[str, Field] = {}
        self._proto3: set[str] = set()  # identities
        self._outer = outer

    def add(self, file: File, identity: str) -> None:
        """Add the types and extension fields of a file; of two definitions of a name the first one counts.

        Args:
            file: The file.
            identity: The identity of the file's reference, or LOCAL.

        Raises:
            SchemaParseError: A name has too many parts.
        """
        package = file.package or ""
        _check_scope(package)
        if file.syntax == "proto3":
            self._proto3.add(identity)
        self._add_extends(file.extends, package)
        self._add_types(file.types, package, "", identity, is_proto3=file.syntax == "proto3")

    def _add_types(
        self, types: Iterable[TypeDefinition], scope: str, relative: str, identity: str, *, is_proto3: bool
    ) -> None:
        for definition in types:
            full, short = inside(scope, definition.name), inside(relative, definition.name)
            self._types.setdefault(full, Known(full, short, definition, identity, is_proto3))
            if isinstance(definition, Message):
                _check_scope(full)
                self._add_extends(definition.extends, full)
                self._add_types(definition.types, full, short, identity, is_proto3=is_proto3)

    def _add_extends(self, extends: Iterable[Extend], scope: str) -> None:
        for extend in extends:
            for field in extend.fields:
                self._extensions.setdefault(inside(scope, field.name), field)

    def type_of(self, name: str, scope: str) -> Known | None:
        """Return the type that a name means in a scope (the full name of a package or message), or None."""
        for candidate in _candidates(name, scope):
            known = self._type(candidate)
            if known is not None:
                return known
        return None

    def is_proto3(self, known: Known) -> bool:
        """Return whether the file that defines a type is written in proto3."""
        return known.identity in self._proto3 or (self._outer is not None and self._outer.is_proto3(known))

    def extension_of(self, name: str, scope: str) -> str | None:
        """Return the full name of the extension field that an option name means in a scope, or None."""
        for candidate in _candidates(name, scope):
            if self._has_extension(candidate):
                return candidate
        return None

    def field_of(self, extension: str) -> Field | None:
        """Return the extension field with a full name, or None."""
        field = self._extensions.get(extension)
        return self._outer.field_of(extension) if field is None and self._outer else field

    def is_repeated(self, extension: str) -> bool:
        """Return whether a full name is that of a repeated extension field."""
        field = self.field_of(extension)
        return field is not None and field.label == "repeated"

    def _type(self, full: str) -> Known | None:
        known = self._types.get(full)
        return self._outer._type(full) if known is None and self._outer else known

    def _has_extension(self, full: str) -> bool:
        return full in self._extensions or (self._outer is not None and self._outer._has_extension(full))


def inside(scope: str, name: str) -> str:
    """Return the full name of a name in a scope."""
    return f"{scope}.{name}" if scope else name


def _check_scope(scope: str) -> None:
    """Refuse a scope of too many parts, because a look-up tries each of them."""
    if scope.count(".") > _MOST_PARTS:
        raise SchemaParseError(f"Expected a name of at most {_MOST_PARTS} parts, got {scope[:60]}...")


def _candidates(name: str, scope: str) -> Iterator[str]:
    if name.startswith("."):
        yield name[1:]
        return
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name
