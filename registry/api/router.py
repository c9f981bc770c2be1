"""Declares routes, each with its answer, its errors, and what the layers before the routes need to know about it.

What only the OpenAPI document needs is prepared on its first request: the models of answers and errors take longer to
prepare than all else of the routes, and a node should start fast.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypedDict, TypeVar, Unpack

from pydantic import BaseModel
from starlette.responses import Response

from strata.registry.api.parameters import Endpoint
from strata.registry.core.rights.route_rights import Need
from strata.registry.http.route_facts import SUBJECT, ContextForm, DeclaredRoute, Kept, RouteFacts

__all__ = ["DocumentedRoute", "Router", "TextAnswer"]

_Endpoint = TypeVar("_Endpoint", bound=Callable[..., Awaitable[Response]])


class _Options(TypedDict, total=False):
    """Further options of a route; see `Router._declare`."""

    status: int
    body: type[BaseModel]
    responses: dict[int | str, dict[str, object]]
    deprecated: bool


class TextAnswer:
    """The answer of a route that returns plain text."""


@dataclass(frozen=True, slots=True)
class DocumentedRoute:
    """What the OpenAPI document says about a route; the fields are those of `Router.reads` and `Router.writes`."""

    method: str
    path: str
    facts: RouteFacts
    endpoint: Callable[..., Awaitable[Response]]
    answer: object
    errors: tuple[int, ...]
    status: int
    body: type[BaseModel] | None
    needs_log: bool
    responses: dict[int | str, dict[str, object]] | None
    deprecated: bool | None


class Router:
    """A group of routes. FastAPI documents them (`openapi.py`), `parameters.py` serves them.

    Args:
        prefix: the start of all paths.
        tag: the group's name in the OpenAPI document; None if the document leaves the group out.
        place: its place among all groups, in which they are matched and documented.
        context: the form of all routes under `/contexts/{ctx}/`; None: it depends on whether the path has a subject.
    """

    def __init__(
        self, prefix: str = "", tag: str | None = None, *, place: int, context: ContextForm | None = None
    ) -> None:
        self.prefix, self.tag, self.place = prefix, tag, place
        self.declared: list[DeclaredRoute] = []
        self.documented: list[DocumentedRoute] = []
        self._form = context

    def _context(self, path: str) -> ContextForm:
        has_subject = SUBJECT in self.prefix + path
        return self._form or (ContextForm.SUBJECT if has_subject else ContextForm.UNCHANGED)

    def reads(
        self,
        method: str,
        path: str,
        answer: object,
        errors: tuple[int, ...] = (),
        *,
        need: Need,
        context: ContextForm | None = None,
        kept: Kept = Kept.PER_STATE,
        any_media_type: bool = False,
        about_writer: bool = False,
        needs_log: bool = True,
        **options: Unpack[_Options],
    ) -> Callable[[_Endpoint], _Endpoint]:
        """Return a decorator for a route that only reads.

        Args:
            method: the HTTP method.
            path: the path after the group's prefix.
            answer: the type of the answer, `TextAnswer`, or None if it has no body.
            errors: the error codes of the route, besides those of every route.
            need: the rights that the route needs.
            context: the form of the route under `/contexts/{ctx}/`; None: that of the group.
            kept: how long its answers may be kept.
            any_media_type: whether the route ignores `Accept`.
            about_writer: whether the answer describes the process that writes.
            needs_log: whether the answer comes from the log; if not, it is never kept.
            options: the options of `_declare`.
        """
        kept = kept if needs_log else Kept.NO
        facts = RouteFacts(False, context or self._context(path), kept, any_media_type, about_writer, need)
        return self._declare(method, path, facts, answer, errors, needs_log=needs_log, **options)

    def writes(
        self,
        method: str,
        path: str,
        answer: object,
        errors: tuple[int, ...] = (),
        *,
        need: Need,
        context: ContextForm | None = None,
        bodies: int = 1,
        **options: Unpack[_Options],
    ) -> Callable[[_Endpoint], _Endpoint]:
        """Return a decorator for a route that writes, which the node that holds the pen handles; see `reads`.

        `bodies` is how many times as large as others the body of a request may be.
        """
        facts = RouteFacts(True, context or self._context(path), need=need, bodies=bodies)
        return self._declare(method, path, facts, answer, errors, **options)

    def _declare(
        self,
        method: str,
        path: str,
        facts: RouteFacts,
        answer: object,
        errors: tuple[int, ...],
        *,
        status: int = 200,
        body: type[BaseModel] | None = None,
        needs_log: bool = True,
        responses: dict[int | str, dict[str, object]] | None = None,
        deprecated: bool | None = None,
    ) -> Callable[[_Endpoint], _Endpoint]:
        """Return a decorator that adds a route.

        Args:
            method: the HTTP method.
            path: the path after the group's prefix.
            facts: the facts about the route.
            answer: the type of the answer.
            errors: the error codes of the route.
            status: the HTTP status of the answer.
            body: the model of the request body, which the route parses itself.
            needs_log: whether the route may answer the errors of the log.
            responses: further responses for the OpenAPI document.
            deprecated: whether the OpenAPI document marks the route so.
        """

        def add(endpoint: _Endpoint) -> _Endpoint:
            full = self.prefix + path
            self.declared.append(DeclaredRoute(method, full, facts, Endpoint(endpoint, full)))
            self.documented.append(
                DocumentedRoute(
                    method, path, facts, endpoint, answer, errors, status, body, needs_log, responses, deprecated
                )
            )
            return endpoint

        return add
