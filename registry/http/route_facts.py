"""What the steps before the routes need to know about a route; `api/router.py` declares it beside each route."""

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache, lru_cache
from urllib.parse import unquote

from starlette.responses import Response

from strata.registry.core.rights.route_rights import Need

__all__ = ["PROBES", "SCHEMA_ID", "SUBJECT", "ContextForm", "DeclaredRoute", "Kept", "RouteFacts", "RouteTable"]

PROBES = "/health/"
"""The start of the paths of probes, whose rate is not limited."""

SUBJECT = "{subject}"
"""The segment of a route's path that names the subject."""

SCHEMA_ID = "{schema_id}"
"""The segment of a route's path that is the schema id."""


_PATHS = 256  # of up to 8 KiB each


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


class Kept(Enum):
    """How long the answers of a route may be kept (`pipeline.py`)."""

    NO = auto()
    PER_STATE = auto()
    """While State is the one that the whole answer was computed from: the State that `Exchange.fresh` returned."""
    FOR_GOOD = auto()
    """Until something is deleted, if the route calls `Exchange.keep`; otherwise as `PER_STATE`."""


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """The facts about one route.

    Attributes:
        writes: whether the route writes, so that the node that holds the pen must handle it.
        context: the form of the route under `/contexts/{ctx}/`.
        kept: how long its answers may be kept.
        any_media_type: whether the route ignores `Accept`, because its answers have media types of their own.
        about_writer: whether the answer describes the process that writes, so that it must give the answer.
        need: the rights that the route needs; None only where there is no route.
        bodies: how many times as large as others the body of a request may be.
        takes_forms: whether the bodies of requests are forms of pages, not JSON.
    """

    writes: bool = False
    context: ContextForm = ContextForm.UNCHANGED
    kept: Kept = Kept.NO
    any_media_type: bool = False
    about_writer: bool = False
    need: Need | None = None
    bodies: int = 1
    takes_forms: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredRoute:
    """A route with its facts; `path` has names in braces for segments with any text.

    `respond` returns the response to an `Exchange`; it may raise `RegistryError`. `number` is its place in a table.
    """

    method: str
    path: str
    facts: RouteFacts
    respond: Callable[..., Awaitable[Response]] | None = None
    number: int = field(default=-1, compare=False)

    def numbered(self, number: int) -> "DeclaredRoute":
        """Return the route with a number; `dataclasses.replace` would take twice the time for each route of an app."""
        return DeclaredRoute(self.method, self.path, self.facts, self.respond, number)

    @property
    def segments(self) -> list[str]:
        """The path in parts."""
        return self.path.split("/")

    def segment(self, path: str, name: str) -> str:
        """Return a segment of a path of this route by its name, decoded; empty if the route has none of this name."""
        return unquote(path.split("/")[self.segments.index(name)]) if name in self.segments else ""

    @property
    def pattern(self) -> str:
        """A regular expression for the paths of the route."""
        return _pattern(self.path)


@cache
def _pattern(path: str) -> str:
    return "/".join("[^/]*" if part[:1] == "{" else re.escape(part) for part in path.split("/"))


class RouteTable:
    """The routes of the service, found by method and raw path.

    Args:
        routes: the routes; of several that match, the first counts.
    """

    def __init__(self, routes: Iterable[DeclaredRoute]) -> None:
        self._routes: dict[str, list[DeclaredRoute]] = {}
        # Clients repeat their paths, and a look into this cache takes a tenth of the time of the expression.
        self.find = lru_cache(_PATHS)(self._find)
        """Returns the route of a method and a raw path; None if there is none."""
        self.every = tuple(route.numbered(number) for number, route in enumerate(routes))
        """All routes, in the order in which they are matched; the place of each is its number."""
        for route in self.every:
            self._routes.setdefault(route.method, []).append(route)
        self._patterns = {
            method: re.compile("|".join(f"({route.pattern})" for route in routes_of_method))
            for method, routes_of_method in self._routes.items()
        }

    def _find(self, method: str, path: str) -> DeclaredRoute | None:
        pattern = self._patterns.get(method)
        match = pattern.fullmatch(path) if pattern else None
        return self._routes[method][match.lastindex - 1] if match and match.lastindex else None

    def number(self, route: DeclaredRoute | None) -> int:
        """Return the number of a route; for None, the one after the last."""
        return len(self.every) if route is None else route.number

    def methods(self, path: str) -> list[str]:
        """Return the methods of all routes with a path, without HEAD and OPTIONS; empty if there are none."""
        return [method for method, pattern in self._patterns.items() if pattern.fullmatch(path)]
