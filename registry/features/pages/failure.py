"""Errors as pages, which say what to do; a person who must say who they are is led to the sign-in."""

from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import quote

from strata.registry.api.views.view import View
from strata.registry.core.errors import RegistryError
from strata.registry.features.pages.headers import HTML, PAGE_HEADERS
from strata.registry.features.pages.rendering import render
from strata.registry.http.asgi import Answer, Headers
from strata.registry.http.exchange import Exchange
from strata.registry.http.page_paths import PAGES

__all__ = ["failure_page"]

_ADVICE = {
    400: "The address or the form cannot be read. Go back and check what you entered.",
    401: "Sign in, and try again.",
    403: "Load the page with the form again, and send it from there.",
    40301: "You may not do this. Ask an administrator of the registry for it, or sign in as someone else.",
    404: "Nothing is stored under this address. Search for the name, or list the deleted subjects.",
    409: "What you sent contradicts what is stored. The message above says how.",
    413: "What you sent is too large. Raise --max-body, or register it with a client.",
    422: "The registry does not accept what you sent. The message above says why.",
    429: "You sent too many requests. Wait a moment, and load the page again.",
    500: "The registry failed. Its log names the reason under the id of this request.",
    503: "The registry cannot read or write its log now. Wait a moment, and load the page again.",
}
_OTHERWISE = "Go back, and try again."


def failure_page(views: Sequence[View], exchange: Exchange, error: RegistryError) -> Answer:
    """Return the answer to a request for a page that failed.

    Args:
        views: all views, for the navigation.
        exchange: the request.
        error: the error.
    """
    scope = exchange.scope
    headers: Headers = [(name.lower().encode(), value.encode()) for name, value in PAGE_HEADERS.items()]
    wanted = scope["raw_path"].decode("latin-1").split("?", 1)[0]
    if error.status == HTTPStatus.UNAUTHORIZED and scope["method"] == "GET":
        query = scope["query_string"].decode("latin-1")
        to = quote(f"{wanted}?{query}" if query else wanted, safe="")
        return 303, [*headers, (b"location", f"{PAGES}/sign-in?to={to}".encode())], b""
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers if name == "Retry-After"]
    values = {
        "page": None,
        "person": exchange.access.principal.user,
        "views": views,
        "view": None,
        "error": error,
        "phrase": _phrase(error.status),
        "advice": _ADVICE.get(error.code, _ADVICE.get(error.status, _OTHERWISE)),
        "request_id": exchange.request_id.decode("latin-1"),
    }
    return error.status, [*headers, (b"content-type", HTML.encode())], render("failure.html", values)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
