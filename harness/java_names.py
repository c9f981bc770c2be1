"""Lets PySpark ask the JVM for a class or a static method once, instead of each time that it calls one.

The JVM looks for `functions` in each package that PySpark imports as a whole, and for each of these in 280 jars.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JVMView  # type: ignore[import-untyped]

__all__ = ["remembered_names"]


@contextmanager
def remembered_names() -> Iterator[None]:
    """Keep what names of the JVM mean; values of static fields are asked for each time."""
    types = (JVMView, JavaClass)
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
        if isinstance(meaning, JavaClass | JavaMember):
            holder.__dict__[name] = meaning
        return meaning

    return remember
