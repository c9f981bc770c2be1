"""What the layers before the routes need to know about a route; `routes/router.py` declares it beside each route."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

__all__ = ["SUBJECT", "ContextForm", "DeclaredRoute", "RouteFacts", "RouteTable"]

SUBJECT = "{subject}"
"""The segment of a route's path that names the subject."""


class ContextForm(Enum):
    """How a request under `/contexts/{ctx}/` becomes a request without this prefix."""

    UNCHANGED = auto()
    SUBJECT = auto()
    """The subject in the path gets the context as prefix."""
    SCOPE = auto()
    """The same; a path that ends before the subject gets the context itself as subject."""
    SUBJECT_PARAMETER = auto()
    """The parameter `subject` gets the context as prefix."""
    SUBJECT_PREFIX = auto()
    """The parameter `subjectPrefix` gets the context as prefix."""
    CONTEXT_PARAMETER = auto()
    """The parameter `context` gets the context's name."""


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """The facts about one route.

    Attributes:
        writes: whether the route writes, so that the node that holds the pen must handle it.
        context: the form of the route under `/contexts/{ctx}/`.
        cacheable: whether the route may mark its answers by `keep_answer`.
        any_media_type: whether the route ignores `Accept`, because its answers have media types of their own.
        about_writer: whether the answer describes the process that writes, so that it must give the answer.
    """

    writes: bool = False
    context: ContextForm = ContextForm.UNCHANGED
    cacheable: bool = False
    any_media_type: bool = False
    about_writer: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredRoute:
    """A route with its facts; `path` has names in braces for segments with any text."""

    method: str
    path: str
    facts: RouteFacts
    segments: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.path.split("/")))

    def matches(self, segments: list[str]) -> bool:
        """Return whether a path of as many segments belongs to this route."""
        return all(mine == given or mine[:1] == "{" for mine, given in zip(self.segments, segments, strict=True))


class RouteTable:
    """The routes of the service, found by method and raw path.

    Args:
        routes: the routes; of several that match, the first counts, as in FastAPI.
    """

    def __init__(self, routes: Iterable[DeclaredRoute]) -> None:
        self._routes: dict[tuple[str, int], list[DeclaredRoute]] = {}
        for route in routes:
            self._routes.setdefault((route.method, len(route.segments)), []).append(route)

    def find(self, method: str, path: str) -> DeclaredRoute | None:
        """Return the route of a request; None if there is none."""
        segments = path.split("/")
        candidates = self._routes.get((method, len(segments)), ())
        return next((route for route in candidates if route.matches(segments)), None)
