"""Names: how they are put together, which ones a new schema may use, and how they are printed.

Whoever registers a new schema keeps to the specification's letters (ASCII); stored schemas may be called anything.
The aliases of a type are checked by their last part only and those of a field not at all, as in Avro Java.
"""

import re
from typing import Final

from compat.avro.model import PRIMITIVES, Name

__all__ = ["make_name", "name_fault", "printed", "qualify"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPE_WORDS: Final = PRIMITIVES | {"record", "enum", "array", "map", "union", "fixed"}


def make_name(text: str, namespace: str) -> Name:
    """Split a name that may be dotted; the namespace counts only for one that is not."""
    space, dot, simple = text.rpartition(".")
    return Name(simple, space) if dot else Name(text, namespace)


def qualify(text: str, namespace: str) -> str:
    """The full name that a reference means inside a namespace."""
    return f"{namespace}.{text}" if namespace and "." not in text else text


def printed(name: Name, namespace: str) -> str:
    """A reference to this name inside a namespace: as short as Avro Java makes it.

    A name that is also the name of a kind of type stays full, lest it be read as that kind.
    """
    if not name.namespace:
        return name.simple
    return name.simple if name.namespace == namespace and name.simple not in _TYPE_WORDS else name.full


def name_fault(text: str) -> str | None:
    """What the specification has against a name, if anything."""
    if _NAME.fullmatch(text):
        return None
    if not text:
        return "it is empty"
    return "it must start with a letter (A-Z, a-z) or _ and go on with letters, digits and _"
