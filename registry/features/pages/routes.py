"""The routes of the pages, made from the table of views.

Pages are never kept: they hold what one person may see and do. All that a page shows comes from one State, and is
computed and rendered in a thread, so that a page delays no other request.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from strata.registry.api.views.view import Page, View, names_of
from strata.registry.core import errors
from strata.registry.core.rights.route_rights import OPEN
from strata.registry.features.pages.action_routes import MakePage, action_routes
from strata.registry.features.pages.headers import HTML, PAGE_HEADERS, STATIC_HEADERS
from strata.registry.features.pages.rendering import render
from strata.registry.features.pages.sessions import Session
from strata.registry.features.pages.sign_in import SignIn
from strata.registry.http.bodies import answer
from strata.registry.http.exchange import Exchange
from strata.registry.http.media_types import media_type_for
from strata.registry.http.page_paths import PAGES
from strata.registry.http.route_facts import DeclaredRoute, RouteFacts

__all__ = ["page_routes"]

_STATIC = Path(__file__).parent / "static"
_MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_MOST_FIELDS, _MOST_BYTES = 20, 2 << 20
_OPEN = RouteFacts(any_media_type=True, need=OPEN)


def page_routes(views: Sequence[View], sign_in: SignIn, *, with_actions: bool) -> list[DeclaredRoute]:
    """Return the routes of the pages.

    Args:
        views: all views, in the order of the navigation.
        sign_in: the sign-in to them.
        with_actions: whether the pages have actions.
    """
    make_page = partial(_page, sign_in=sign_in, with_actions=with_actions)
    return [
        DeclaredRoute("GET", "/", _OPEN, _root),
        DeclaredRoute("GET", PAGES, _OPEN, _first_page),
        DeclaredRoute("GET", f"{PAGES}/static/{{name}}", _OPEN, _static_file),
        *sign_in.routes,
        *(action_routes(views, sign_in, make_page) if with_actions else ()),
        *(
            _viewed(views, view, method, sign_in, make_page)
            for view in views
            for method in ("GET", "POST")[: 1 + view.takes_form]
        ),
    ]


def _viewed(views: Sequence[View], view: View, method: str, sign_in: SignIn, make_page: MakePage) -> DeclaredRoute:
    facts = RouteFacts(any_media_type=True, need=view.need, takes_forms=method == "POST")
    route = DeclaredRoute(method, PAGES + view.path, facts)
    segments = route.segments

    async def respond(exchange: Exchange) -> Response:
        scope = exchange.scope
        session, cookie = sign_in.session(scope)
        page = await make_page(exchange, segments, session)
        if method == "POST":
            page = await _with_form(page)
        if view.asks is not None:
            status, _, body = await exchange.ask("GET", view.asks(page), b"")
            page = replace(page, answered=json.loads(body) if status == HTTPStatus.OK else None)
        page = replace(page, told=sign_in.told(scope, session))
        response = await page.exchange.service.writer.in_thread(_rendered, views, view, page)
        if page.told:
            sign_in.forget(response)
        if page.is_guarded or page.may_act:
            sign_in.keep(response, scope, cookie)
        return response

    return DeclaredRoute(route.method, route.path, route.facts, respond)


async def _page(
    exchange: Exchange, segments: list[str], session: Session, *, sign_in: SignIn, with_actions: bool
) -> Page:
    state, scope = await exchange.fresh(), exchange.scope
    query, token = QueryParams(scope["query_string"]), sign_in.sessions.form_token(session)
    names = names_of(scope, segments)
    return Page(
        exchange,
        state,
        scope["path"],
        names,
        query,
        sign_in.origin(scope),
        token,
        may_act=with_actions,
        signed_in=session.principal.user,
    )


async def _with_form(page: Page) -> Page:
    """Return a page whose parameters are the fields of a form; the size of the body is limited before."""
    fields: list[tuple[str, str]] = []
    upload = b""
    try:
        async with Request(page.exchange.scope, page.exchange.receive).form(
            max_files=1, max_fields=_MOST_FIELDS, max_part_size=_MOST_BYTES
        ) as form:
            for name, value in form.multi_items():
                if isinstance(value, str):
                    fields.append((name, value))
                else:
                    upload = await value.read(_MOST_BYTES)
    except HTTPException as error:
        raise errors.unreadable_body(f"The form cannot be read: {error.detail}") from None
    return replace(page, query=QueryParams(fields), upload=upload)


def _rendered(views: Sequence[View], view: View, page: Page) -> Response:
    shown = view.show(page)
    if isinstance(shown, Response):
        shown.headers.update(PAGE_HEADERS)
        return shown
    content = render(view.template, {"page": page, "views": views, "view": view, **shown})
    return Response(content, media_type=HTML, headers=PAGE_HEADERS)


async def _root(exchange: Exchange) -> Response:
    """Send a browser to the pages, and answer an API client as without pages."""
    accept = next((value for name, value in exchange.scope["headers"] if name == b"accept"), b"")
    if b"text/html" in accept.lower():
        return RedirectResponse(PAGES, 303, headers={**PAGE_HEADERS, "Vary": "Accept"})
    if media_type_for(accept) is None:
        raise errors.not_acceptable()
    response = answer({})
    response.headers["Vary"] = "Accept"
    return response


async def _first_page(_exchange: Exchange) -> Response:
    return RedirectResponse(f"{PAGES}/subjects", 303, headers=PAGE_HEADERS)


async def _static_file(exchange: Exchange) -> Response:
    file = _files().get(exchange.scope["path"].rpartition("/")[2])
    if file is None:
        raise errors.not_found()
    content, media_type = file
    return Response(content, media_type=media_type, headers=STATIC_HEADERS)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    files = (path for path in _STATIC.iterdir() if path.suffix in _MEDIA_TYPES)
    return {path.name: (path.read_bytes(), _MEDIA_TYPES[path.suffix]) for path in files}
