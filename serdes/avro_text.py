"""Python source that knows which field of a schema each of its lines is about.

A failure in compiled code is placed by its traceback: every line of the source has a path, and the local variables of
the frame say which item of an array or key of a map it was. The good case pays nothing for it.

Rules of this file: text and tracebacks; nothing about Avro.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any

__all__ = ["Explain", "Listing", "Part", "SourceWriter", "compile_listing", "place", "shorten"]

Part = str | Callable[[Mapping[str, Any]], str]
"""A piece of a path: as it is, or told by the local variables of the frame that failed."""

Explain = Callable[[Mapping[str, Any]], Exception]
"""Makes a better error of the local variables of the frame that failed."""

_LONGEST_PATH = 100
_LONGEST_CHAIN = 8


@dataclass(slots=True)
class Listing:
    """Source lines and what they refer to by name; by line (from 1) the path it is about, and what explains errors."""

    lines: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    paths: dict[int, tuple[Part, ...]] = field(default_factory=dict)
    explain: dict[int, Explain] = field(default_factory=dict)


class SourceWriter:
    """Writes lines, with indents, fresh variables and constants."""

    def __init__(self) -> None:
        self.listing = Listing()
        self.indent = 0
        self._path: tuple[Part, ...] = ()
        self._variables = 0

    def line(self, text: str, explain: Explain | None = None) -> None:
        """Add a line at the present indent and path."""
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
        """A name that nothing has yet."""
        self._variables += 1
        return f"v{self._variables}"

    def constant(self, value: Any) -> str:
        """The name under which the source refers to a value."""
        name = f"k{len(self.listing.constants)}"
        self.listing.constants[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines inside a statement."""
        self.line(head)
        self.indent += 1
        before = len(self.listing.lines)
        yield
        if len(self.listing.lines) == before:
            self.line("pass")
        self.indent -= 1

    def cases(self, name: str, values: range, write: Callable[[int], None], *, otherwise: str) -> None:
        """Lines for each value of a variable, found by halving: a long chain of `elif` is more than Python compiles."""
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
        """Lines about a part of the value."""
        outer = self._path
        self._path = (*outer, part)
        yield
        self._path = outer


def compile_listing(listing: Listing, name: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Run the source once, which defines its functions; answers the namespace that holds them."""
    namespace: dict[str, Any] = {**names, **listing.constants}
    exec(compile("\n".join(listing.lines), f"<{name}>", "exec"), namespace)  # noqa: S102 - names are quoted by the writers
    return namespace


def place(
    traceback: TracebackType | None, namespace: Mapping[str, Any], paths: Mapping[int, tuple[Part, ...]]
) -> tuple[str, FrameType | None]:
    """The path of a failure inside compiled code, and the innermost frame of that code."""
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


def shorten(path: str) -> str:
    """Leave out the middle of a long path."""
    half = _LONGEST_PATH // 2
    return path if len(path) <= _LONGEST_PATH else f"{path[:half]}…{path[-half:]}"
