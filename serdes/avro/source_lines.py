"""Python source in which each line knows the path of the schema field that it handles.

The traceback of a failure in compiled code gives its place: every line of the source has a path, and the local
variables of the frame give the index of the array item or the key of the map. The good case pays nothing.

Rules of this file: text and tracebacks; nothing about Avro.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

__all__ = [
    "PATHS",
    "Explain",
    "Listing",
    "Part",
    "SourceWriter",
    "compile_listing",
    "names_of",
    "path_of",
    "place",
    "shorten",
]

PATHS = "__paths__"
"""The name in compiled code for the paths of its lines."""

Part = str | Callable[[Mapping[str, Any]], str]
"""A part of a path: fixed, or computed from the local variables of the frame that failed."""

Explain = Callable[[Mapping[str, Any]], Exception]
"""Makes a better error from the local variables of the frame that failed."""

_LONGEST_PATH = 100
_LONGEST_CHAIN = 8


@dataclass(slots=True)
class Listing:
    """Source lines, the constants they use, and by line number (from 1) the path and the error explainer."""

    lines: list[str] = field(default_factory=list)
    constants: dict[str, object] = field(default_factory=dict)
    paths: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    explain: dict[int, Explain] = field(default_factory=dict)


class SourceWriter:
    """A writer of source lines, with indents, fresh variables and constants."""

    def __init__(self) -> None:
        self.listing = Listing()
        self.indent = 0
        self._path: tuple[Part, ...] = ()
        self._variables = 0

    def line(self, text: str, explain: Explain | None = None) -> None:
        """Add a line at the current indent and path."""
        self.listing.lines.append("    " * self.indent + text)
        self.listing.paths[len(self.listing.lines)] = self._path
        if explain is not None:
            self.listing.explain[len(self.listing.lines)] = explain

    def lines(self, *texts: str) -> None:
        """Add several lines."""
        for text in texts:
            self.line(text)

    def begin(self, head: str) -> None:
        """Start a function."""
        self.indent, self._path = 0, ()
        self.line(head)
        self.indent = 1

    def variable(self) -> str:
        """Return an unused variable name."""
        self._variables += 1
        return f"v{self._variables}"

    def constant(self, value: object) -> str:
        """Return the name of a constant for a value."""
        name = f"k{len(self.listing.constants)}"
        self.listing.constants[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines written inside the `with`, under a statement."""
        self.line(head)
        self.indent += 1
        before = len(self.listing.lines)
        yield
        if len(self.listing.lines) == before:
            self.line("pass")
        self.indent -= 1

    def cases(self, name: str, values: range, write: Callable[[int], None], *, otherwise: str) -> None:
        """Write one case per value as a binary search: Python does not compile long chains of `elif`."""
        if len(values) > _LONGEST_CHAIN:
            half = len(values) // 2
            with self.block(f"if {name} < {values[half]}:"):
                self.cases(name, values[:half], write, otherwise=otherwise)
            with self.block("else:"):
                self.cases(name, values[half:], write, otherwise=otherwise)
            return
        for value in values:
            with self.block(f"{'if' if value == values[0] else 'elif'} {name} == {value}:"):
                write(value)
        self.line(f"else: {otherwise}" if values else otherwise)

    @contextmanager
    def inside(self, part: Part) -> Iterator[None]:
        """Extend the path for the lines written inside the `with`."""
        outer = self._path
        self._path = (*outer, part)
        yield
        self._path = outer


def compile_listing(listing: Listing, name: str, names: Mapping[str, object]) -> dict[str, object]:
    """Execute the source, which defines its functions, and return its namespace."""
    namespace: dict[str, object] = {**names, **listing.constants}
    exec(compile("\n".join(listing.lines), f"<{name}>", "exec"), namespace)  # noqa: S102 - names are quoted by the writers
    return namespace


def names_of(*functions: Callable[..., object]) -> dict[str, Any]:
    """Return functions by the names that source has for them: their own, without the underscore in front."""
    return {function.__name__.removeprefix("_"): function for function in functions}


def place(
    traceback: TracebackType | None, namespace: Mapping[str, object], paths: Mapping[int, tuple[Part, ...]]
) -> tuple[str, FrameType | None]:
    """Return the path of a failure inside compiled code, and the innermost frame of that code."""
    parts: list[str] = []
    innermost = None
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_globals is namespace:
            innermost = frame
            known = frame.f_locals
            parts += [part if isinstance(part, str) else part(known) for part in paths.get(traceback.tb_lineno, ())]
        traceback = traceback.tb_next
    return shorten("".join(parts).lstrip(".")), innermost


def path_of(frame: FrameType | None) -> str:
    """Return the path of the value that compiled code handles now, from its innermost frame."""
    parts: list[str] = []
    known = None if frame is None else frame.f_globals
    while frame is not None and frame.f_globals is known:
        paths = frame.f_globals.get(PATHS, {}).get(frame.f_lineno, ())
        parts[:0] = [part if isinstance(part, str) else part(frame.f_locals) for part in paths]
        frame = frame.f_back
    return shorten("".join(parts).lstrip("."))


def shorten(path: str) -> str:
    """Shorten a long path in the middle."""
    half = _LONGEST_PATH // 2
    return path if len(path) <= _LONGEST_PATH else f"{path[:half]}…{path[-half:]}"
