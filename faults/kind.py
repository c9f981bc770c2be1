"""What a kind of request about an object of a run is: its model, and how it is sent and read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from faults.model import Answer, Request

__all__ = ["Kind", "Perform", "Wire"]

Perform = Callable[[Any, Request], tuple[Any, Answer]]
Wire = tuple[str, str, Mapping[str, Any] | list[Any] | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request: its effect and answer, its form over HTTP, and a reader of its answer."""

    perform: Perform
    wire: Callable[[Request], Wire]
    read: Callable[[Any], Any]
    writes: bool = True
