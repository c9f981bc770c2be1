"""The OpenAPI document, which FastAPI makes from the signatures of the routes.

It is imported on the first request for the document: no other request needs FastAPI.
"""

import inspect
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import cache, wraps
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import fastapi

from strata import __version__
from strata.registry.api.documentation import SECURITY, SECURITY_SCHEMES, body_of, failures
from strata.registry.api.router import DocumentedRoute, Router, TextAnswer
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.http.parameter_marks import Depends, Path, Query
from strata.registry.http.route_facts import PROBES

__all__ = ["documented", "openapi_document", "with_marks_of_fastapi"]

_T = TypeVar("_T")
_TOO_MANY, _REFUSALS = (429,), (401, 40301)
"""The errors of a route while rates are limited, and of one that needs a right while access control is on."""


@cache
def openapi_document(routers: tuple[Router, ...]) -> dict[str, object]:
    """Return the OpenAPI document of some groups of routes; the first call takes a second of computation."""
    application = fastapi.FastAPI(
        title="Strata",
        description="A schema registry: versioned schemas, and the rules by which they evolve.",
        version=__version__,
        license_info={"name": "Apache-2.0"},
    )
    application.router.routes[:] = [route for router in routers for route in documented(router).routes]
    document = application.openapi()
    document["components"]["securitySchemes"] = SECURITY_SCHEMES
    return document


@cache
def documented(router: Router) -> fastapi.APIRouter:
    """Return a group's routes with all that the OpenAPI document says about them."""
    tags: list[str | Enum] | None = [router.tag] if router.tag else None
    group = fastapi.APIRouter(prefix=router.prefix, tags=tags, include_in_schema=router.tag is not None)
    for route in router.documented:
        _add(group, router.prefix, route)
    return group


def _add(group: fastapi.APIRouter, prefix: str, route: DocumentedRoute) -> None:
    is_open = route.facts.need is OPEN
    of_layers = () if (prefix + route.path).startswith(PROBES) else _TOO_MANY
    refusals = failures(*route.errors, *of_layers, *(() if is_open else _REFUSALS), needs_log=route.needs_log)
    more: dict[str, object] = {"security": [] if is_open else SECURITY}
    group.add_api_route(
        route.path,
        with_marks_of_fastapi(route.endpoint),
        methods=[route.method],
        status_code=route.status,
        responses={route.status: _content(route.answer), **refusals, **(route.responses or {})},
        openapi_extra=more | (body_of(route.body) if route.body else {}),
        deprecated=route.deprecated,
    )


def _content(answer: object) -> dict[str, object]:
    if answer is None:
        return {}
    return {"content": {"text/plain": {}}} if answer is TextAnswer else {"model": answer}


def with_marks_of_fastapi(function: Callable[..., Awaitable[_T]]) -> Callable[..., Awaitable[_T]]:
    """Return a function whose signature has FastAPI's own marks in place of ours."""
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)

    @wraps(function)
    async def documented_function(*args: object, **kwargs: object) -> _T:
        return await function(*args, **kwargs)

    documented_function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(annotation=_translated(hints[name])) for name, parameter in signature.parameters.items()
        ],
        return_annotation=hints.get("return", inspect.Signature.empty),
    )
    return documented_function


def _translated(hint: object) -> object:
    if get_origin(hint) is not Annotated:
        return hint
    type_, *notes = get_args(hint)
    return Annotated[(type_, *(_TRANSLATED.get(type(note), _unchanged)(note) for note in notes))]


def _unchanged(note: object) -> object:
    return note


def _query(mark: Query) -> object:
    return fastapi.Query(alias=mark.alias, description=mark.description)


def _path(mark: Path) -> object:
    return fastapi.Path(description=mark.description)


def _depends(mark: Depends) -> object:
    return fastapi.Depends(with_marks_of_fastapi(mark.function))


_TRANSLATED: dict[type, Callable[[Any], object]] = {Query: _query, Path: _path, Depends: _depends}
