"""Lets PySpark call the JVM with less work.

It asks for a class or a static method once, instead of each time that it calls one: the JVM looks for `functions` in
each package that PySpark imports as a whole, and for each of these in 280 jars. For an error of a query it would look
for `py4j` thirty times. And it tries no converter of collections or dates on plain arguments, each of which would need
a dozen look-ups of attributes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from py4j.java_gateway import (  # type: ignore[import-untyped]
    JavaClass,
    JavaMember,
    JavaObject,
    JavaPackage,
    JVMView,
)

__all__ = ["quick_calls"]

_PACKAGES: Final = (
    *("org", "apache", "spark", "sql", "api", "python", "classic"),
    *("java", "lang", "util", "py4j", "reflection"),
)
"""Parts of the names of packages."""
_PLAIN: Final = (str, bool, int, float, bytes, type(None), JavaObject)
"""Arguments that no converter of Py4J's or PySpark's takes."""


@contextmanager
def quick_calls() -> Iterator[None]:
    """Keep what names of the JVM mean, except values of static fields; pass plain arguments on as they are."""
    types = (JVMView, JavaPackage, JavaClass)
    asked: list[Callable[[Any, str], Any]] = [type_.__getattr__ for type_ in types]
    for type_, ask in zip(types, asked, strict=True):
        type_.__getattr__ = _remembering(ask)
    converts = [type_._get_args for type_ in (JavaMember, JavaClass)]
    for type_, convert in zip((JavaMember, JavaClass), converts, strict=True):
        type_._get_args = _plain_first(convert)
    try:
        yield
    finally:
        for type_, ask in zip(types, asked, strict=True):
            type_.__getattr__ = ask
        for type_, convert in zip((JavaMember, JavaClass), converts, strict=True):
            type_._get_args = convert


def _remembering(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def remember(holder: Any, name: str) -> Any:
        meaning = ask(holder, name)
        # What is not found is a package too; it may be a class when another jar has been added.
        if isinstance(meaning, JavaClass | JavaMember) or (isinstance(meaning, JavaPackage) and name in _PACKAGES):
            holder.__dict__[name] = meaning
        return meaning

    return remember


def _plain_first(convert: Callable[[Any, Sequence[Any]], Any]) -> Callable[[Any, Sequence[Any]], Any]:
    def get_args(callee: Any, args: Sequence[Any]) -> Any:
        return (args, []) if all(type(arg) in _PLAIN for arg in args) else convert(callee, args)

    return get_args
