"""Lets PySpark ask the JVM for a class or a static method once, instead of each time that it calls one.

The JVM looks for `functions` in each package that PySpark imports as a whole, and for each of these in 280 jars.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView  # type: ignore[import-untyped]

__all__ = ["remembered_names"]

_PACKAGES: Final = ("org", "apache", "spark", "sql", "api", "python", "classic", "java", "util", "lang")
"""Parts of the names of packages."""


@contextmanager
def remembered_names() -> Iterator[None]:
    """Keep what names of the JVM mean; values of static fields are asked for each time."""
    types = (JVMView, JavaPackage, JavaClass)
    asked: list[Callable[[Any, str], Any]] = [type_.__getattr__ for type_ in types]
    for type_, ask in zip(types, asked, strict=True):
        type_.__getattr__ = _remembering(ask)
    try:
        yield
    finally:
        for type_, ask in zip(types, asked, strict=True):
            type_.__getattr__ = ask


def _remembering(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def remember(holder: Any, name: str) -> Any:
        meaning = ask(holder, name)
        # What is not found is a package too; it may be a class when another jar has been added.
        if isinstance(meaning, JavaClass | JavaMember) or (isinstance(meaning, JavaPackage) and name in _PACKAGES):
            holder.__dict__[name] = meaning
        return meaning

    return remember
