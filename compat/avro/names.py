"""Names: qualification, the rules for names in a new schema, and printing.

A new schema must use the characters of the specification (ASCII); a stored schema may use any name. As in Avro Java,
only the last part of a type's alias is checked, and the aliases of fields are not checked at all.
"""

import re
from typing import Final, NamedTuple

__all__ = ["PRIMITIVES", "Name", "make_name", "name_fault", "printed", "qualify"]

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE_WORDS: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


class Name(NamedTuple):
    """A name and its namespace; an empty string is the null namespace."""

    simple: str
    namespace: str

    @property
    def full(self) -> str:
        """The full name, by which references and aliases are matched."""
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple


def make_name(text: str, namespace: str) -> Name:
    """Return the Name for a text; the namespace applies only to a text without dots."""
    space, dot, simple = text.rpartition(".")
    return Name(simple, space) if dot else Name(text, namespace)


def qualify(text: str, namespace: str) -> str:
    """Return the full name that a reference means inside a namespace."""
    return f"{namespace}.{text}" if namespace and "." not in text else text


def printed(name: Name, namespace: str) -> str:
    """Return a reference to this name inside a namespace, as short as in Avro Java.

    A name that is also a kind of type is printed in full, because its short form would be read as that kind.
    """
    if not name.namespace:
        return name.simple
    return name.simple if name.namespace == namespace and name.simple not in _TYPE_WORDS else name.full


def name_fault(text: str) -> str | None:
    """Return why a name violates the specification, or None if it is valid."""
    if _NAME.fullmatch(text):
        return None
    if not text:
        return "it is empty"
    return "it must start with a letter (A-Z, a-z) or _ and go on with letters, digits and _"
